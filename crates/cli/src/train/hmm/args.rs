//! Flags of hidden Markov models, for training and for distillation.

use crate::choice::choice;
use crate::errors::hinted;
use crate::paths::check_input;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Lexicon, open_input};
use latens::hmm::{self, Hmm, HmmParams};
use latens::model::{Device, WordClusters};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The model and its training.
#[derive(Args)]
pub(super) struct HmmModelArgs {
    /// Number of hidden states
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_states)]
    pub(super) n_states: usize,
    /// Number of word clusters; must divide `--n-states`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_clusters)]
    pub(super) n_clusters: usize,
    /// Constraint on the states that may emit a word
    #[arg(long, value_enum, default_value_t = Constraint::Brown)]
    pub(super) constraint: Constraint,
    /// Brown clusters written by `latens export --to paths` [default: learned from the text by exchange]
    #[arg(long, value_name = "PATHS")]
    pub(super) clusters: Option<PathBuf>,
    /// Parameterization of the probabilities
    #[arg(long, value_enum, default_value_t = Parameterization::Neural)]
    pub(super) parameterization: Parameterization,
    /// Learning algorithm of `scalar` parameters
    #[arg(long, value_enum, default_value_t = Learning::Em)]
    pub(super) learning: Learning,
    /// Dimension of the embeddings
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().dim)]
    dim: usize,
    /// Standard deviation of the initial embeddings
    #[arg(long, value_name = "S", default_value_t = HmmParams::default().init_deviation)]
    init_deviation: f64,
    /// Sharing of state embeddings between start, transitions and emissions, for `neural` parameters only
    #[arg(long, value_enum, default_value_t = Tying::Shared)]
    tying: Tying,
    /// Source of the word vectors
    #[arg(long, value_enum, default_value_t = WordEmbedding::Words)]
    pub(super) word_vectors: WordEmbedding,
    /// Treatment of sentence boundaries
    #[arg(long, value_enum, default_value_t = Memory::Reset)]
    memory: Memory,
    /// Approximate number of tokens per training sequence, with `--memory carry`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().run_tokens)]
    run_tokens: usize,
    /// State dropout rate, 0 to 1; `auto` chooses it by the number of states and the size of the text
    #[arg(long, value_name = "P", default_value = "auto")]
    state_dropout: StateDropout,
    /// Dropout rate of the hidden units of the networks, 0 to 1
    #[arg(long, value_name = "P", default_value_t = HmmParams::default().dropout)]
    dropout: f64,
    /// Number of passes over the training text
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().epochs)]
    epochs: usize,
    /// Approximate number of tokens per mini-batch; 0 chooses 1/400 of the text, between 256 and 2,048
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().batch_tokens)]
    batch_tokens: usize,
    /// Initial learning rate
    #[arg(long, value_name = "R", default_value_t = HmmParams::default().learning_rate)]
    learning_rate: f64,
    /// Learning rate schedule
    #[arg(long, value_enum, default_value_t = Schedule::Cosine)]
    schedule: Schedule,
    /// Weight decay
    #[arg(long, value_name = "W", default_value_t = HmmParams::default().weight_decay)]
    weight_decay: f64,
    /// Maximum norm of the gradient; larger gradients are clipped
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().clip)]
    clip: f64,
    /// Pseudo-count that Baum–Welch adds to the expected count of every allowed event
    #[arg(long, value_name = "C", default_value_t = HmmParams::default().prior)]
    prior: f64,
    /// Device to train on: `cpu` or `cuda`
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    pub(super) device: Device,
}

choice!(pub(super) Constraint for hmm::Constraint {
    Brown "States of the Brown cluster of the word",
    Uniform "Randomly chosen states, as many as a cluster has",
    None "All states"
});
choice!(pub(super) Parameterization for hmm::Parameterization {
    Neural "Neural networks over state embeddings",
    Factored "Neural networks over concatenated cluster and state embeddings",
    Scalar "One parameter per probability"
});
choice!(pub(super) Learning for hmm::Learning { Em "Baum–Welch", Gradient "Gradient descent (AdamW)" });
choice!(Tying for hmm::Tying {
    Shared "One embedding per state",
    Separate "One embedding per state for each of start, transition from, transition to and emission",
});
choice!(pub(super) WordEmbedding for hmm::WordEmbedding {
    Words "One embedding per word",
    Chars "Convolutional network over the characters of the word",
});
choice!(Memory for hmm::Memory {
    Carry "Carry the state over: the text is one long sequence",
    Reset "Reset the state: sentences are independent"
});
choice!(Schedule for hmm::Schedule {
    Constant "Constant learning rate",
    Cosine "Cosine decay to zero over all epochs",
    Plateau "Divide by four after each epoch without improvement on the validation set"
});

/// A rate, or `None` for `auto`.
#[derive(Clone, Copy)]
struct StateDropout(Option<f64>);

impl FromStr for StateDropout {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<StateDropout, String> {
        match text {
            "auto" => Ok(StateDropout(None)),
            _ => text
                .parse()
                .map(|rate| StateDropout(Some(rate)))
                .map_err(|_| "must be a number or `auto`".to_owned()),
        }
    }
}

impl HmmModelArgs {
    pub(super) fn params(&self, seed: u64) -> HmmParams {
        Hmm::params()
            .n_states(self.n_states)
            .n_clusters(self.n_clusters)
            .constraint(self.constraint.into())
            .parameterization(self.parameterization.into())
            .learning(self.learning.into())
            .dim(self.dim)
            .init_deviation(self.init_deviation)
            .tying(self.tying.into())
            .word_vectors(self.word_vectors.into())
            .memory(self.memory.into())
            .run_tokens(self.run_tokens)
            .state_dropout(self.state_dropout.0)
            .dropout(self.dropout)
            .epochs(self.epochs)
            .batch_tokens(self.batch_tokens)
            .learning_rate(self.learning_rate)
            .schedule(self.schedule.into())
            .weight_decay(self.weight_decay)
            .clip(self.clip)
            .prior(self.prior)
            .seed(seed)
    }

    /// Reads the clusters of `--clusters`, for the words of a text. `None` if they are to be learned.
    pub(super) fn read_clusters(&self, lexicon: &Lexicon) -> Result<Option<WordClusters>> {
        match (self.constraint, &self.clusters) {
            (Constraint::Brown, Some(path)) => read_clusters(path, lexicon).map(Some),
            (Constraint::Uniform | Constraint::None, Some(_)) => Err(hinted(
                "`--clusters` requires `--constraint brown`",
                "omit `--clusters` or `--constraint`",
            )),
            (_, None) => Ok(None),
        }
    }

    /// Checks the files before any work.
    pub(super) fn check_files(&self) -> Result<()> {
        self.clusters.as_deref().map_or(Ok(()), check_input)
    }
}

/// Reads clusters and maps them to a vocabulary.
fn read_clusters(path: &Path, lexicon: &Lexicon) -> Result<WordClusters> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = BufReader::new(open_input(path).with_context(reading)?);
    let preprocessing = &lexicon.preprocessing;
    let (own, clusters) =
        WordClusters::read_paths(&mut file, preprocessing).with_context(reading)?;
    Ok(clusters.for_words(&own.vocab, &lexicon.vocab))
}
