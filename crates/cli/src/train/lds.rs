use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::commands::count::{BoundaryArg, merge_files};
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

/// A linear dynamical system: representations of words in their context
///
/// Text goes in, or counts of it (`latens count`), one file or several; out comes a model that gives every
/// word a vector, and every token one that depends on the words around it. The text is counted in one pass and
/// not read again. `gain` is in nats a token over independent words. Give text to measure on (`--valid`): then
/// learning stops when the model no longer gets better on it, and the best one is kept.
#[derive(Args)]
pub(crate) struct LdsArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// How many numbers the state has
    #[arg(long, value_name = "N", default_value_t = LdsParams::default().dim)]
    dim: usize,
    /// How many tokens apart words are that EM looks at
    #[arg(long, value_name = "K", default_value_t = LdsParams::default().lags)]
    lags: usize,
    /// How many blocks the matrix has that the first model is made of; it needs counts of 2 K − 1 lags
    #[arg(long, value_name = "K", default_value_t = LdsParams::default().ssid_lags)]
    ssid_lags: usize,
    /// How often each word is taken to have been seen besides; more keeps rare words from being learned by
    /// heart [default: a fifth of how often a word is seen on average, at least 1]
    #[arg(long, value_name = "N")]
    pseudo_counts: Option<f64>,
    /// How many steps of EM follow the first model at most
    #[arg(long, value_name = "N", default_value_t = LdsParams::default().n_iterations)]
    n_iterations: usize,
    /// Whether pairs may stand in two sentences of a file [default: stream, or as in the counts]
    #[arg(long, value_enum)]
    boundary: Option<BoundaryArg>,
    /// How often the randomised decomposition refines its basis
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
    let model = training.fit(params, inputs, Device::Cpu, HeldOut::WhileTraining)?;
    model.warnings().iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    let facts = ["gain", "valid_gain", "best_iteration", "pseudo_counts"];
    training.finish(&model, Map::new(), &facts, output)
}

impl LdsArgs {
    /// The counts, if that is what the files are.
    fn open_counts(&self) -> Result<Option<LagCounts>> {
        let files = &self.training.text.files;
        let n_counts = files.iter().filter(|path| is_container(path)).count();
        if n_counts == 0 {
            return Ok(None);
        }
        ensure!(n_counts == files.len(), "the files are partly counts and partly text");
        self.refuse_reading_flags()?;
        let counts = merge_files(files, &Budget::default())?;
        if let Some(path) = &self.training.words.vocab {
            let lexicon = Lexicon::open(path)?;
            if !lexicon.vocab.words().eq(counts.vocab().words()) {
                let message =
                    format!("the counts have another vocabulary than `{}`", path.display());
                return Err(hinted(message, "count the text with this `--vocab`"));
            }
        }
        let boundary: Option<Boundary> = self.boundary.map(Into::into);
        if boundary.is_some_and(|boundary| boundary != counts.boundary()) {
            let made = format!("{:?}", counts.boundary()).to_lowercase();
            return Err(hinted(
                format!("the counts were made with `--boundary {made}`"),
                "leave `--boundary` out, or count the text again",
            ));
        }
        let needed = self.lags.max(2 * self.ssid_lags - 1);
        if counts.n_lags() < needed {
            return Err(hinted(
                format!("the counts have {} lags, but {needed} are needed", counts.n_lags()),
                format!(
                    "count the text with `--lags {needed}`, or lower `--lags` and `--ssid-lags`"
                ),
            ));
        }
        Ok(Some(counts))
    }

    /// Counts have their words already.
    fn refuse_reading_flags(&self) -> Result<()> {
        let learned = &self.training.words.learned;
        let is_usual = learned.preprocessing() == Preprocessing::default()
            && learned.limits() == VocabLimits::default();
        if !is_usual || self.training.cache.cache.is_some() {
            return Err(hinted(
                "counts bring their own words with them",
                "leave out what says how text is read",
            ));
        }
        Ok(())
    }
}
