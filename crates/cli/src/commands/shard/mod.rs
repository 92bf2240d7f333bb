//! Learning from the shards of a text, with files between the steps.

mod begin;
mod merge;
mod stats;
mod update;

use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Train a model from the parts of a text, on several machines
///
/// Each step reads and writes files, so that Slurm, Make or any other scheduler can run them: `begin` writes the first
/// broadcast, `stats` computes the statistics of one shard, `merge` adds them up, and `update` writes the next broadcast,
/// or the model after the last round. The result does not depend on which machine computes which shard, nor on the order
/// of merging.
#[derive(Args)]
pub(crate) struct ShardArgs {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    Begin(begin::BeginArgs),
    Stats(stats::StatsArgs),
    Merge(merge::MergeArgs),
    Update(update::UpdateArgs),
}

pub(crate) fn run(args: &ShardArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.step {
        Step::Begin(args) => begin::run(args, common, output),
        Step::Stats(args) => stats::run(args, output),
        Step::Merge(args) => merge::run(args, output),
        Step::Update(args) => update::run(args, output),
    }
}
