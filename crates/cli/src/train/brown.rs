use super::TrainingArgs;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::AnyModel;
use latens::brown::{Brown, BrownParams};
use latens::model::{Params, Progress};
use serde_json::Map;

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
    let params = BrownParams { n_clusters: args.n_clusters }.validate()?;
    let mut training = args.training.begin_without_checkpoints(output)?;
    let watch = &mut |progress: &Progress<'_>| training.watcher.watch(progress);
    let fitted = Brown::fit(&params, &training.corpus, watch);
    let model = training.watcher.finish(fitted)?;
    let mut metrics = Map::new();
    metrics.insert("mutual_information".into(), model.facts()["mutual_information"].clone());
    training.finish(&AnyModel::Brown(model), metrics, output)
}
