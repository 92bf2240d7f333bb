//! Experiments that reproduce tables and figures of papers, with our results next to the published
//! ones.
//!
//! An experiment reads its corpora from a folder that the user provides, since most corpora may not
//! be redistributed.
//!
//! ```
//! use latens_experiments::{EXPERIMENTS, Effort};
//!
//! let experiment = EXPERIMENTS.iter().find(|experiment| experiment.name == "lm-baselines").unwrap();
//! // Fails here: the folder does not contain the corpora.
//! let folder = tempfile::tempdir().unwrap();
//! assert!((experiment.run)(folder.path(), Effort::Quick, &mut |_| ()).is_err());
//! ```

mod experiment;
mod cache;
mod corpora;
mod tagging;
mod hmm;
mod lds;
mod fhmm;
mod glda;

pub use experiment::{Draw, Effort, Experiment, Row, Run};

use hmm::kept_models::Earlier;

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    hmm::baselines::EXPERIMENT,
    hmm::language::PTB,
    hmm::language::WIKITEXT_2,
    hmm::ablation::EXPERIMENT,
    hmm::dropout::EXPERIMENT,
    hmm::distillation::EXPERIMENT,
    hmm::control::EXPERIMENT,
    hmm::tagging::EXPERIMENT,
    lds::dynamics::EXPERIMENT,
    lds::rnn::EXPERIMENT,
    lds::pos::EXPERIMENT,
    lds::ner::EXPERIMENT,
    fhmm::tagging::PARTS_OF_SPEECH,
    fhmm::tagging::CHUNKS,
    fhmm::tuned::PARTS_OF_SPEECH,
    fhmm::tuned::CHUNKS,
    glda::speed::EXPERIMENT,
    glda::topics::EXPERIMENT,
    glda::oov::EXPERIMENT,
];

/// Returns the function that resumes an interrupted run of an experiment, if the experiment keeps its models.
pub fn resume(name: &str) -> Option<Run> {
    let resumable: [(Experiment, Run); 6] = [
        (hmm::language::PTB, |data, effort, note| {
            hmm::language::ptb(data, effort, Earlier::Reuse, note)
        }),
        (hmm::language::WIKITEXT_2, |data, effort, note| {
            hmm::language::wikitext_2(data, effort, Earlier::Reuse, note)
        }),
        (hmm::ablation::EXPERIMENT, |data, effort, note| {
            hmm::ablation::ablate(data, effort, Earlier::Reuse, note)
        }),
        (hmm::dropout::EXPERIMENT, |data, effort, note| {
            hmm::dropout::compare(data, effort, Earlier::Reuse, note)
        }),
        (hmm::distillation::EXPERIMENT, |data, effort, note| {
            hmm::distillation::distill(data, effort, Earlier::Reuse, note)
        }),
        (hmm::control::EXPERIMENT, |data, effort, note| {
            hmm::control::control(data, effort, Earlier::Reuse, note)
        }),
    ];
    resumable.into_iter().find(|(experiment, _)| experiment.name == name).map(|(_, run)| run)
}

/// Returns the function that runs an experiment and draws its results, if the experiment has a figure.
pub fn figure(name: &str) -> Option<Draw> {
    let draws: [(&str, Draw); 3] = [
        (lds::dynamics::EXPERIMENT.name, lds::dynamics::draw),
        (lds::rnn::EXPERIMENT.name, lds::rnn::draw),
        (glda::speed::EXPERIMENT.name, glda::speed::draw),
    ];
    draws.into_iter().find(|&(of, _)| of == name).map(|(_, draw)| draw)
}
