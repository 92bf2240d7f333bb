use super::training::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::choice::choice;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::{check_input, is_stdin};
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, TaggedSentences, WordId, open_input};
use latens::hmm::{self, Hmm, HmmInputs, HmmParams, TaggedText};
use latens::model::{Device, Params, WordClusters};
use serde_json::{Map, json};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Train a hidden Markov language model with thousands of states
///
/// Reads text and writes a model that assigns a probability to every sentence and a hidden state to every word. Words
/// are clustered first (`--constraint brown`), and the states of a cluster emit only its words, which makes large numbers
/// of states tractable. With a validation set (`--valid`), the model of the best epoch is kept.
#[derive(Args)]
pub(crate) struct HmmArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Number of hidden states
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_states)]
    n_states: usize,
    /// Number of word clusters; must divide `--n-states`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_clusters)]
    n_clusters: usize,
    /// Constraint on the states that may emit a word
    #[arg(long, value_enum, default_value_t = Constraint::Brown)]
    constraint: Constraint,
    /// Brown clusters written by `latens export --to paths` [default: learned from the text]
    #[arg(long, value_name = "PATHS")]
    clusters: Option<PathBuf>,
    /// Column of tags to learn for `latens tag`, counted from 1; needs the format `conll`, `conllu` or `jsonl`
    #[arg(long, value_name = "COLUMN", value_parser = clap::value_parser!(u16).range(1..))]
    tags: Option<u16>,
    /// Parameterization of the probabilities
    #[arg(long, value_enum, default_value_t = Parameterization::Neural)]
    parameterization: Parameterization,
    /// Learning algorithm of `scalar` parameters
    #[arg(long, value_enum, default_value_t = Learning::Em)]
    learning: Learning,
    /// Dimension of the embeddings
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().dim)]
    dim: usize,
    /// Standard deviation of the initial embeddings
    #[arg(long, value_name = "S", default_value_t = HmmParams::default().init_deviation)]
    init_deviation: f64,
    /// Sharing of state embeddings between start, transitions and emissions
    #[arg(long, value_enum, default_value_t = Tying::Shared)]
    tying: Tying,
    /// Source of the word vectors
    #[arg(long, value_enum, default_value_t = WordVectors::Words)]
    word_vectors: WordVectors,
    /// Treatment of sentence boundaries
    #[arg(long, value_enum, default_value_t = Memory::Reset)]
    memory: Memory,
    /// Approximate number of tokens per training sequence, with `--memory carry`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().run_tokens)]
    run_tokens: usize,
    /// State dropout rate, 0 to 1
    #[arg(long, value_name = "P", default_value_t = HmmParams::default().state_dropout)]
    state_dropout: f64,
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
    device: Device,
}

/// Name of the training fact that stores the column of the tags.
pub(crate) const TAG_COLUMN: &str = "tag_column";

choice!(Constraint for hmm::Constraint {
    Brown "States of the Brown cluster of the word",
    Uniform "Randomly drawn states, as many as a cluster has",
    None "All states"
});
choice!(Parameterization for hmm::Parameterization {
    Neural "Neural networks over state embeddings",
    Factored "Neural networks over concatenated cluster and state embeddings",
    Scalar "One parameter per probability"
});
choice!(Learning for hmm::Learning { Em "Baum–Welch", Gradient "Gradient descent (AdamW)" });
choice!(Tying for hmm::Tying {
    Shared "One embedding per state",
    Separate "One embedding per state for each of start, transition from, transition to and emission",
});
choice!(WordVectors for hmm::WordVectors {
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

pub(crate) fn run(args: &HmmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    args.clusters.as_deref().map_or(Ok(()), check_input)?;
    args.refuse_tags_of_stdin()?;
    let mut training = match args.word_vectors {
        WordVectors::Words => args.training.begin_with_unknown_words(output)?,
        // The letters of unknown words say what they are.
        WordVectors::Chars => args.training.begin(output)?,
    };
    let tags = args.read_tags(&training.data, output)?;
    let clusters = match (args.constraint, &args.clusters) {
        (Constraint::Brown, Some(path)) => Some(read_clusters(path, &training.data)?),
        (Constraint::Uniform | Constraint::None, Some(_)) => {
            return Err(hinted(
                "`--clusters` requires `--constraint brown`",
                "omit `--clusters` or `--constraint`",
            ));
        }
        // The trainer learns clusters if it needs them.
        (_, None) => None,
    };
    let mut inputs = HmmInputs::default();
    (inputs.clusters, inputs.tags) = (clusters.as_ref(), tags.as_ref());
    let HmmParams { learning_rate, clip, .. } = params;
    let Some(mut model) =
        training.fit(params, inputs, args.device, HeldOut::WhileTraining, output)?
    else {
        return Ok(());
    };
    if let Some(column) = args.tags {
        model.add_fact(TAG_COLUMN, column);
    }
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(model.n_weights()));
    if let Some(epoch) = model.facts().get("diverged_in_epoch") {
        output.note(&format!(
            "warning: the loss diverged in epoch {epoch}; keeping the best model before it\n\n\
             hint: lower `--learning-rate` ({learning_rate}) or `--clip` ({clip})"
        ));
    }
    let facts = ["train_perplexity", "valid_perplexity", "seconds_per_epoch"];
    training.finish(&model, metrics, &facts, output)
}

impl HmmArgs {
    fn refuse_tags_of_stdin(&self) -> Result<()> {
        let has_stdin = self.training.text.files.iter().any(|file| is_stdin(file));
        if self.tags.is_some() && has_stdin {
            let message = "`--tags` reads the text twice, but standard input can be read only once";
            return Err(hinted(message, "write the text to a file first"));
        }
        Ok(())
    }

    fn read_tags(&self, corpus: &Corpus, output: &Output) -> Result<Option<TaggedText>> {
        let Some(column) = self.tags else { return Ok(None) };
        let tagged = TaggedSentences::read(&self.training.text.inputs()?)?;
        let tags = TaggedText::of(&tagged, usize::from(column) - 1, corpus)
            .with_context(|| format!("cannot train on the tags of column {column}"))?;
        let knows_all = corpus.lexicon.vocab.count(WordId::UNK) == 0;
        if knows_all && matches!(self.word_vectors, WordVectors::Words) {
            output.note(
                "warning: the training text has no unknown words, so the model cannot tag unknown words\n\n\
                 hint: `--min-count 2` replaces words that occur once by `<unk>`",
            );
        }
        Ok(Some(tags))
    }

    fn params(&self, seed: u64) -> HmmParams {
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
            .state_dropout(self.state_dropout)
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
}

/// Reads clusters and maps them to the vocabulary of a corpus.
fn read_clusters(path: &Path, corpus: &Corpus) -> Result<WordClusters> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = BufReader::new(open_input(path).with_context(reading)?);
    let preprocessing = &corpus.lexicon.preprocessing;
    let (lexicon, clusters) =
        WordClusters::read_paths(&mut file, preprocessing).with_context(reading)?;
    Ok(clusters.for_words(&lexicon.vocab, &corpus.lexicon.vocab))
}
