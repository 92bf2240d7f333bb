use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::{check_input, is_stdin};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use latens::corpus::{Corpus, TaggedSentences, WordId, open_input};
use latens::hmm::{self, Hmm, HmmInputs, HmmParams, TaggedText};
use latens::model::{Device, Params, WordClusters};
use serde_json::{Map, json};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A hidden Markov model: a language model with thousands of states
///
/// Text goes in; out comes a model that gives every sentence a probability and every word a hidden
/// state. Words are clustered first (`--constraint brown`), and the states of a cluster emit its words
/// alone: that is what makes many states affordable. Give text to measure on (`--valid`): the best
/// epoch's model is the one that is kept.
#[derive(Args)]
pub(crate) struct HmmArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// How many hidden states there are
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_states)]
    n_states: usize,
    /// How many clusters of words share the states; must divide `--n-states`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().n_clusters)]
    n_clusters: usize,
    /// Which states may emit a word: those of its Brown cluster, as many drawn for it, or all
    #[arg(long, value_enum, default_value_t = Constraint::Brown)]
    constraint: Constraint,
    /// Clusters of the words, as `latens export --to paths` writes them; learned from the text if not given
    #[arg(long, value_name = "PATHS")]
    clusters: Option<PathBuf>,
    /// Learn tags as well: the column that has them, the first one being 1. For `latens tag`; the text must be
    /// `conll`, `conllu` or `jsonl`
    #[arg(long, value_name = "COLUMN", value_parser = clap::value_parser!(u16).range(1..))]
    tags: Option<u16>,
    /// What the probabilities are made of
    #[arg(long, value_enum, default_value_t = Parameterization::Neural)]
    parameterization: Parameterization,
    /// How `scalar` probabilities are learned: Baum–Welch, or gradient steps
    #[arg(long, value_enum, default_value_t = Learning::Em)]
    learning: Learning,
    /// How many numbers an embedding has
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().dim)]
    dim: usize,
    /// The standard deviation of the first embeddings
    #[arg(long, value_name = "S", default_value_t = HmmParams::default().init_deviation)]
    init_deviation: f64,
    /// Whether a state has one embedding for all its uses, or one for each
    #[arg(long, value_enum, default_value_t = Tying::Shared)]
    tying: Tying,
    /// What a word's vector is made of: numbers of its own, or a network that reads its letters
    #[arg(long, value_enum, default_value_t = WordVectors::Words)]
    word_vectors: WordVectors,
    /// What the end of a sentence does to what was read before
    #[arg(long, value_enum, default_value_t = Memory::Reset)]
    memory: Memory,
    /// About how many tokens of running text are learned from as one sequence, with `--memory carry`
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().run_tokens)]
    run_tokens: usize,
    /// The share of states left out of each mini-batch, 0 to 1
    #[arg(long, value_name = "P", default_value_t = HmmParams::default().state_dropout)]
    state_dropout: f64,
    /// The share of hidden units of the networks left out of each mini-batch, 0 to 1
    #[arg(long, value_name = "P", default_value_t = HmmParams::default().dropout)]
    dropout: f64,
    /// How often the text is gone through
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().epochs)]
    epochs: usize,
    /// About how many tokens there are in a mini-batch; 0 for a 400th of the text, but from 256 to
    /// 2,048
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().batch_tokens)]
    batch_tokens: usize,
    /// How far the first steps go
    #[arg(long, value_name = "R", default_value_t = HmmParams::default().learning_rate)]
    learning_rate: f64,
    /// How the learning rate falls
    #[arg(long, value_enum, default_value_t = Schedule::Cosine)]
    schedule: Schedule,
    /// How strongly weights are pulled to zero
    #[arg(long, value_name = "W", default_value_t = HmmParams::default().weight_decay)]
    weight_decay: f64,
    /// The largest norm of a gradient; longer ones are cut to it
    #[arg(long, value_name = "N", default_value_t = HmmParams::default().clip)]
    clip: f64,
    /// What Baum–Welch adds to the count of everything that is allowed
    #[arg(long, value_name = "C", default_value_t = HmmParams::default().prior)]
    prior: f64,
    /// Where it is learned: `cpu` or `cuda`
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

/// The fact of a model that remembers the column of its tags.
pub(crate) const TAG_COLUMN: &str = "tag_column";

/// A choice of parameters and its flag: the same names.
macro_rules! choice {
    ($name:ident { $($variant:ident $help:literal),+ }) => {
        #[derive(Clone, Copy, ValueEnum)]
        enum $name { $(#[doc = $help] $variant),+ }

        impl From<$name> for hmm::$name {
            fn from(choice: $name) -> hmm::$name {
                match choice { $($name::$variant => hmm::$name::$variant),+ }
            }
        }
    };
}

choice!(Constraint {
    Brown "The states of its Brown cluster",
    Uniform "States that are drawn for it, as many as a cluster has",
    None "All states"
});
choice!(Parameterization {
    Neural "Networks of state embeddings",
    Factored "Networks of embeddings made of a cluster's and a state's own part",
    Scalar "A number for each probability"
});
choice!(Learning { Em "Baum–Welch", Gradient "Gradient steps (AdamW)" });
choice!(Tying { Shared "One embedding for all uses", Separate "One for each use" });
choice!(WordVectors { Words "Numbers of its own", Chars "A convolutional network of its letters" });
choice!(Memory {
    Carry "Nothing: text is one long sequence",
    Reset "All is forgotten: every sentence begins like the first one"
});
choice!(Schedule {
    Constant "Not at all",
    Cosine "Along half a cosine to zero",
    Plateau "By four after each epoch without gain"
});

pub(crate) fn run(args: &HmmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    args.clusters.as_deref().map_or(Ok(()), check_input)?;
    args.refuse_tags_of_stdin()?;
    let mut training = args.training.begin(output)?;
    let tags = args.read_tags(&training.data, output)?;
    let clusters = match (args.constraint, &args.clusters) {
        (Constraint::Brown, Some(path)) => Some(read_clusters(path, &training.data)?),
        (Constraint::Uniform | Constraint::None, Some(_)) => {
            return Err(hinted(
                "`--clusters` is for `--constraint brown` alone",
                "leave one of the two out",
            ));
        }
        // They are learned where they are needed.
        (_, None) => None,
    };
    let mut inputs = HmmInputs::default();
    (inputs.clusters, inputs.tags) = (clusters.as_ref(), tags.as_ref());
    let HmmParams { epochs, learning_rate, clip, .. } = params;
    let mut model = training.fit(params, inputs, args.device, HeldOut::WhileTraining)?;
    if let Some(column) = args.tags {
        model.add_fact(TAG_COLUMN, column);
    }
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(model.n_weights()));
    let is_judged = model.facts().contains_key("valid_perplexity");
    if training.valid.is_some() && epochs > 0 && !is_judged {
        output.note(
            "warning: the text of `--valid` has probability zero under the model of every epoch; keeping the last model\n\n\
             hint: `--min-count 2` replaces words that occur once by `<unk>`, so that new words are possible; \
             Baum–Welch needs a `--prior` above 0",
        );
    }
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
            let message =
                "`--tags` reads the text twice, and the standard input can be read once only";
            return Err(hinted(message, "write it to a file first"));
        }
        Ok(())
    }

    fn read_tags(&self, corpus: &Corpus, output: &Output) -> Result<Option<TaggedText>> {
        let Some(column) = self.tags else { return Ok(None) };
        let tagged = TaggedSentences::read(&self.training.text.inputs()?)?;
        let tags = TaggedText::of(&tagged, usize::from(column) - 1, corpus)
            .with_context(|| format!("cannot learn tags from column {column}"))?;
        let knows_all = corpus.lexicon.vocab.count(WordId::UNK) == 0;
        if knows_all && matches!(self.word_vectors, WordVectors::Words) {
            output.note(
                "warning: without any unknown word in its text, the model cannot tag unknown words\n\n\
                 hint: `--min-count 2` makes words that are seen once unknown ones",
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

/// The clusters of the words of a text, from a list of other words perhaps.
fn read_clusters(path: &Path, corpus: &Corpus) -> Result<WordClusters> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = BufReader::new(open_input(path).with_context(reading)?);
    let preprocessing = &corpus.lexicon.preprocessing;
    let (lexicon, clusters) =
        WordClusters::read_paths(&mut file, preprocessing).with_context(reading)?;
    Ok(clusters.for_words(&lexicon.vocab, &corpus.lexicon.vocab))
}
