use super::TrainingArgs;
use crate::output::Output;
use crate::progress::Watcher;
use anyhow::Result;
use clap::Args;
use latens::AnyModel;
use latens::brown::{Brown, BrownParams};
use latens::model::{Params, Progress};
use serde_json::Map;
use std::time::Instant;

/// Brown clusters: a hierarchy of word classes
///
/// Text goes in; out come clusters of words that stand in similar places, each with a bit string that
/// is its path in a binary tree. `export --to paths` writes them for other programs.
#[derive(Args)]
pub(crate) struct BrownArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// How many clusters to make
    #[arg(long, value_name = "N", default_value_t = BrownParams::default().n_clusters)]
    n_clusters: usize,
}

pub(crate) fn run(args: &BrownArgs, output: &Output) -> Result<()> {
    let started = Instant::now();
    let params = BrownParams { n_clusters: args.n_clusters }.validate()?;
    args.training.refuse_resume()?;
    let text = args.training.read(output)?;
    let mut watcher = Watcher::new(output, args.training.log.as_deref(), None)?;
    let watch = &mut |progress: &Progress<'_>| watcher.watch(progress);
    let fitted = Brown::fit(&params, &text.corpus, watch);
    let model = watcher.finish(fitted)?;
    let mut metrics = Map::new();
    metrics.insert("mutual_information".into(), model.facts()["mutual_information"].clone());
    args.training.finish(&AnyModel::Brown(model), &text, metrics, started, output)
}
