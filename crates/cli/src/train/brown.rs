use super::{HeldOut, TrainingArgs};
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::brown::{Algorithm, Brown, BrownParams};
use latens::model::{Device, Params};
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
    /// How to find them
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AlgorithmArg::Brown)]
    algorithm: AlgorithmArg,
    /// How many times `exchange` goes through all words at most
    #[arg(long, value_name = "N", default_value_t = BrownParams::default().n_iterations)]
    n_iterations: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlgorithmArg {
    /// The classic one: merge the two clusters that lose the least, as words come in
    Brown,
    /// Move every word to its best cluster, again and again: for large vocabularies
    Exchange,
}

pub(crate) fn run(args: &BrownArgs, output: &Output) -> Result<()> {
    let algorithm = match args.algorithm {
        AlgorithmArg::Brown => Algorithm::Brown,
        AlgorithmArg::Exchange => Algorithm::Exchange,
    };
    let BrownArgs { n_clusters, n_iterations, .. } = *args;
    let params =
        Brown::params().n_clusters(n_clusters).algorithm(algorithm).n_iterations(n_iterations);
    params.check()?;
    if args.training.valid.is_some() {
        return Err(hinted(
            "clusters give no probabilities, so they cannot be measured on another text",
            "run it without `--valid`",
        ));
    }
    let mut training = args.training.begin(output)?;
    let model = training.fit(params, (), Device::Cpu, HeldOut::Afterwards)?;
    training.finish(&model, Map::new(), &["mutual_information"], output)
}
