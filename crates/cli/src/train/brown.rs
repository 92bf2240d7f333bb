use super::training::{HeldOut, TrainingArgs};
use crate::choice::choice;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::brown::{Algorithm, Brown, BrownParams};
use latens::model::{Device, Params};
use serde_json::Map;

/// Train Brown clusters: a hierarchy of word classes
///
/// Reads text and writes clusters of words that occur in similar contexts. Each cluster has a bit string, which is its
/// path in a binary tree. `export --to paths` writes them for other programs.
#[derive(Args)]
pub(crate) struct BrownArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Number of clusters
    #[arg(long, value_name = "N", default_value_t = BrownParams::default().n_clusters)]
    n_clusters: usize,
    /// Clustering algorithm
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AlgorithmArg::Brown)]
    algorithm: AlgorithmArg,
    /// Maximum number of passes of `exchange` over all words
    #[arg(long, value_name = "N", default_value_t = BrownParams::default().n_iterations)]
    n_iterations: usize,
}

choice!(AlgorithmArg for Algorithm {
    Brown "Greedy merging of the pair of clusters with the smallest loss (Brown et al. 1992)",
    Exchange "Repeated moves of words to their best clusters; for large vocabularies",
});

pub(crate) fn run(args: &BrownArgs, output: &Output) -> Result<()> {
    let BrownArgs { n_clusters, algorithm, n_iterations, .. } = *args;
    let params = Brown::params()
        .n_clusters(n_clusters)
        .algorithm(algorithm.into())
        .n_iterations(n_iterations);
    params.check()?;
    if args.training.run.valid.is_some() {
        return Err(hinted(
            "Brown clusters do not support `--valid`: they define no probabilities",
            "omit `--valid`",
        ));
    }
    let mut training = args.training.begin(output)?;
    let Some(model) = training.fit(params, (), Device::Cpu, HeldOut::Afterwards, output)? else {
        return Ok(());
    };
    training.finish(&model, Map::new(), &["mutual_information"], output)
}
