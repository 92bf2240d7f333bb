//! The papers' tables and figures, run again: ours beside theirs.
//!
//! An experiment reads corpora from a folder of the user's, since most of them may not be passed on.

mod experiment;
mod cache;
mod corpora;
mod tagging;
mod hmm;
mod lds;
mod fhmm;
mod glda;

pub use experiment::{Draw, Experiment, Row, Run};

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    hmm::baselines::EXPERIMENT,
    hmm::language::PTB,
    hmm::language::WIKITEXT_2,
    hmm::ablation::EXPERIMENT,
    hmm::tagging::EXPERIMENT,
    lds::dynamics::EXPERIMENT,
    lds::rnn::EXPERIMENT,
    lds::pos::EXPERIMENT,
    lds::ner::EXPERIMENT,
    fhmm::tagging::PARTS_OF_SPEECH,
    fhmm::tagging::CHUNKS,
    glda::speed::EXPERIMENT,
    glda::topics::EXPERIMENT,
    glda::oov::EXPERIMENT,
];

/// Goes on with the experiment of this name where a run that was stopped left off, if it keeps its models.
pub fn resume(name: &str) -> Option<Run> {
    let kept: [(Experiment, Run); 3] = [
        (hmm::language::PTB, |data, quick, note| hmm::language::ptb(data, quick, true, note)),
        (hmm::language::WIKITEXT_2, |data, quick, note| {
            hmm::language::wikitext_2(data, quick, true, note)
        }),
        (hmm::ablation::EXPERIMENT, |data, quick, note| {
            hmm::ablation::ablate(data, quick, true, note)
        }),
    ];
    kept.into_iter().find(|(experiment, _)| experiment.name == name).map(|(_, run)| run)
}

/// Runs the experiment of this name and draws what it found, as SVG, if it has a figure.
pub fn figure(name: &str) -> Option<Draw> {
    let draws: [(&str, Draw); 3] = [
        (lds::dynamics::EXPERIMENT.name, lds::dynamics::draw),
        (lds::rnn::EXPERIMENT.name, lds::rnn::draw),
        (glda::speed::EXPERIMENT.name, glda::speed::draw),
    ];
    draws.into_iter().find(|&(of, _)| of == name).map(|(_, draw)| draw)
}
