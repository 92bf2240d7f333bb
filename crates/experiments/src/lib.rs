//! The papers' tables and figures, run again: ours beside theirs.
//!
//! An experiment reads corpora from a folder of the user's, since most of them may not be passed on.

mod fhmm_tagging;
mod glda_oov;
mod glda_speed;
mod glda_topics;
mod hmm_ablation;
mod hmm_language;
mod hmm_tagging;
mod kept_models;
mod lds_dynamics;
mod lds_rnn;
mod lds_ner;
mod lds_pos;
mod lds_tagging;
mod lm_baselines;
mod penn_treebank;
mod svg;
mod tagging;
mod topic_corpora;
mod topic_map;

pub use topic_map::{MapWord, topic_map};

use serde::Serialize;
use std::path::Path;

/// One figure of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The row's name, usually a model.
    pub row: String,
    /// The column's name, usually a data set.
    pub column: String,
    /// What the paper reports, if it does.
    pub paper: Option<f64>,
    /// What we measured.
    pub ours: f64,
}

/// An experiment of a paper.
pub struct Experiment {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// Runs it on the corpora in a folder; `true` is for a smaller run of the same code; messages go to
    /// the last argument.
    pub run: Run,
}

/// How an experiment is run; see [`Experiment::run`].
pub type Run = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Row>>;

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    lm_baselines::EXPERIMENT,
    hmm_language::PTB,
    hmm_language::WIKITEXT_2,
    hmm_ablation::EXPERIMENT,
    hmm_tagging::EXPERIMENT,
    lds_dynamics::EXPERIMENT,
    lds_rnn::EXPERIMENT,
    lds_pos::EXPERIMENT,
    lds_ner::EXPERIMENT,
    fhmm_tagging::PARTS_OF_SPEECH,
    fhmm_tagging::CHUNKS,
    glda_speed::EXPERIMENT,
    glda_topics::EXPERIMENT,
    glda_oov::EXPERIMENT,
];

/// Goes on with the experiment of this name where a run that was stopped left off, if it keeps its models.
pub fn resume(name: &str) -> Option<Run> {
    let kept: [(Experiment, Run); 3] = [
        (hmm_language::PTB, |data, quick, note| hmm_language::ptb(data, quick, true, note)),
        (hmm_language::WIKITEXT_2, |data, quick, note| {
            hmm_language::wikitext_2(data, quick, true, note)
        }),
        (hmm_ablation::EXPERIMENT, |data, quick, note| {
            hmm_ablation::ablate(data, quick, true, note)
        }),
    ];
    kept.into_iter().find(|(experiment, _)| experiment.name == name).map(|(_, run)| run)
}

/// Runs the experiment of this name and draws what it found, as SVG, if it has a figure.
pub fn figure(name: &str) -> Option<Draw> {
    let draws: [(&str, Draw); 3] = [
        (lds_dynamics::EXPERIMENT.name, lds_dynamics::draw),
        (lds_rnn::EXPERIMENT.name, lds_rnn::draw),
        (glda_speed::EXPERIMENT.name, glda_speed::draw),
    ];
    draws.into_iter().find(|&(of, _)| of == name).map(|(_, draw)| draw)
}

/// As [`Run`], with a picture besides the rows.
pub type Draw = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<(Vec<Row>, String)>;
