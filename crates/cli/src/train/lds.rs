use super::training::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::data::lag_counts::{BoundaryArg, merge_files};
use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Result, ensure};
use clap::Args;
use latens::corpus::{Lexicon, Preprocessing, VocabLimits};
use latens::counts::{Boundary, Budget, LagCounts};
use latens::lds::{Lds, LdsInputs, LdsParams};
use latens::model::{Device, Params};
use latens::store::is_container;
use serde_json::Map;
use std::borrow::Cow;

/// Train a linear dynamical system: vectors of words in context
///
/// Reads text, or counts written by `latens count`, and writes a model with one vector per word and one per token, which
/// depends on the context. The text is read once. `gain` is the improvement over independent words in nats per token.
/// With a validation set (`--valid`), training stops when the model no longer improves on it, and the best model is kept.
#[derive(Args)]
pub(crate) struct LdsArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Dimension of the state
    #[arg(long, value_name = "N", default_value_t = LdsParams::default().dim)]
    dim: usize,
    /// Maximum distance in tokens of the pairs of words that EM uses
    #[arg(long, value_name = "K", default_value_t = LdsParams::default().lags)]
    lags: usize,
    /// Number of block rows of the Hankel matrix for the initial model, which needs counts of 2 K − 1 lags
    #[arg(long, value_name = "K", default_value_t = LdsParams::default().ssid_lags)]
    ssid_lags: usize,
    /// Pseudo-count added to the count of every word; larger values reduce overfitting of rare words [default: a
    /// fifth of the mean count of a word, at least 1]
    #[arg(long, value_name = "N")]
    pseudo_counts: Option<f64>,
    /// Maximum number of EM iterations
    #[arg(long, value_name = "N", default_value_t = LdsParams::default().n_iterations)]
    n_iterations: usize,
    /// Boundary that pairs of words do not cross [default: stream, or as in the counts]
    #[arg(long, value_enum)]
    boundary: Option<BoundaryArg>,
    /// Number of power iterations of the randomized decomposition
    #[arg(long, value_name = "N", default_value_t = LdsParams::default().power_iterations)]
    power_iterations: usize,
}

pub(crate) fn run(args: &LdsArgs, common: &Common, output: &Output) -> Result<()> {
    let mut params = Lds::params()
        .dim(args.dim)
        .lags(args.lags)
        .ssid_lags(args.ssid_lags)
        .pseudo_counts(args.pseudo_counts)
        .n_iterations(args.n_iterations)
        .boundary(args.boundary.unwrap_or_default().into())
        .power_iterations(args.power_iterations)
        .seed(common.seed);
    params.check()?;
    let counts = args.open_counts()?;
    if let (Some(counts), None) = (&counts, args.boundary) {
        params.boundary = counts.boundary();
    }
    let mut training = match &counts {
        Some(counts) => {
            let n_tokens = counts.n_tokens() as usize;
            args.training.begin_counted(counts.lexicon().clone(), n_tokens, output)?
        }
        None => args.training.begin(output)?,
    };
    let mut inputs = LdsInputs::default();
    inputs.counts = counts.map(Cow::Owned);
    let Some(model) = training.fit(params, inputs, Device::Cpu, HeldOut::WhileTraining, output)?
    else {
        return Ok(());
    };
    model.warnings().iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    let facts = ["gain", "valid_gain", "best_iteration", "pseudo_counts"];
    training.finish(&model, Map::new(), &facts, output)
}

impl LdsArgs {
    /// The counts, if the files are counts instead of text.
    fn open_counts(&self) -> Result<Option<LagCounts>> {
        let files = &self.training.text.files;
        let n_counts = files.iter().filter(|path| is_container(path)).count();
        if n_counts == 0 {
            return Ok(None);
        }
        ensure!(
            n_counts == files.len(),
            "cannot mix counts and text: {n_counts} of {} files are counts",
            files.len()
        );
        self.refuse_reading_flags()?;
        let counts = merge_files(files, &Budget::default())?;
        if let Some(path) = &self.training.words.vocab {
            let lexicon = Lexicon::open(path)?;
            if !lexicon.vocab.words().eq(counts.vocab().words()) {
                let message =
                    format!("the vocabulary of the counts differs from `{}`", path.display());
                return Err(hinted(message, "run `latens count` with this `--vocab`"));
            }
        }
        let boundary: Option<Boundary> = self.boundary.map(Into::into);
        if boundary.is_some_and(|boundary| boundary != counts.boundary()) {
            let counted = format!("{:?}", counts.boundary()).to_lowercase();
            return Err(hinted(
                format!("the counts were computed with `--boundary {counted}`"),
                "omit `--boundary`, or run `latens count` again",
            ));
        }
        let needed = self.lags.max(2 * self.ssid_lags - 1);
        if counts.n_lags() < needed {
            return Err(hinted(
                format!("the counts have {} lags, but the model needs {needed}", counts.n_lags()),
                format!(
                    "run `latens count` with `--lags {needed}`, or reduce `--lags` and `--ssid-lags`"
                ),
            ));
        }
        Ok(Some(counts))
    }

    /// Rejects options for reading text, which have no effect on counts.
    fn refuse_reading_flags(&self) -> Result<()> {
        let learned = &self.training.words.learned;
        let is_default = learned.preprocessing() == Preprocessing::default()
            && learned.limits() == VocabLimits::default();
        if !is_default || self.training.run.cache.cache.is_some() {
            return Err(hinted(
                "options for reading text cannot be used with counts",
                "omit `--cache` and the options for words",
            ));
        }
        Ok(())
    }
}
