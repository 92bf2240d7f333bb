use super::args::{HmmModelArgs, WordEmbedding};
use crate::args::Common;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::is_stdin;
use crate::train::training::{HeldOut, TrainingArgs};
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, TaggedSentences, WordId};
use latens::hmm::{HmmInputs, HmmParams, TaggedText};
use latens::model::Params;
use serde_json::{Map, json};

/// Train a hidden Markov language model with thousands of states
///
/// Reads text and writes a model that assigns a probability to every sentence and a hidden state to every word. Words
/// are clustered first (`--constraint brown`), and the states of a cluster emit only its words, which makes large numbers
/// of states tractable. With a validation set (`--valid`), the model of the best epoch is kept.
#[derive(Args)]
pub(crate) struct HmmArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Column of tags to learn for `latens tag`, counted from 1; needs the format `conll`, `conllu` or `jsonl`
    #[arg(long, value_name = "COLUMN", value_parser = clap::value_parser!(u16).range(1..))]
    tags: Option<u16>,
    #[command(flatten)]
    model: HmmModelArgs,
}

/// Name of the training fact that stores the column of the tags.
pub(crate) const TAG_COLUMN: &str = "tag_column";

pub(crate) fn run(args: &HmmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.model.params(common.seed);
    params.check()?;
    args.model.check_files()?;
    args.refuse_tags_of_stdin()?;
    let mut training = match args.model.word_vectors {
        WordEmbedding::Words => args.training.begin_with_unknown_words(output)?,
        // The letters of unknown words say what they are.
        WordEmbedding::Chars => args.training.begin(output)?,
    };
    let tags = args.read_tags(&training.data, output)?;
    // The trainer learns clusters if it needs them.
    let clusters = args.model.read_clusters(&training.data.lexicon)?;
    let mut inputs = HmmInputs::default();
    (inputs.clusters, inputs.tags) = (clusters.as_ref(), tags.as_ref());
    let HmmParams { learning_rate, clip, .. } = params;
    let Some(mut model) =
        training.fit(params, inputs, args.model.device, HeldOut::WhileTraining, output)?
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
        if knows_all && matches!(self.model.word_vectors, WordEmbedding::Words) {
            output.note(
                "warning: the training text has no unknown words, so the model cannot tag unknown words\n\n\
                 hint: `--min-count 2` replaces words that occur once with `<unk>`",
            );
        }
        Ok(Some(tags))
    }
}
