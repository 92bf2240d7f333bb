use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::model::shards::{ShardError, Statistics};
use latens::store::write_atomically;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Add up the statistics of shards
///
/// Shards can be merged in any order and in several steps. Sums follow a fixed tree over the numbers of the shards, so that
/// the result is the same, bit for bit.
#[derive(Args)]
pub(crate) struct MergeArgs {
    /// Statistics of shards of the same round
    #[arg(required = true, value_name = "STATISTICS")]
    statistics: Vec<PathBuf>,
    /// Path of the statistics to write
    #[arg(short, long, value_name = "STATISTICS")]
    output: PathBuf,
}

#[derive(Serialize)]
struct MergeResult {
    path: String,
    merged: usize,
    shards: usize,
}

pub(crate) fn run(args: &MergeArgs, output: &Output) -> Result<()> {
    let merged = merge(&args.statistics)?;
    write_atomically(&args.output, |out| out.write_all(&merged.to_bytes()))?;
    let result = MergeResult {
        path: args.output.display().to_string(),
        merged: merged.shards().len(),
        shards: merged.n_shards(),
    };
    output.result(&result, |out| {
        writeln!(out, "wrote `{}`: {} of {} shards", result.path, result.merged, result.shards)
    })
}

/// Merges files one by one, so that memory holds the sums and one file.
pub(super) fn merge(paths: &[PathBuf]) -> Result<Statistics> {
    let mut sum: Option<Statistics> = None;
    for path in paths {
        let next = Statistics::open(path)?;
        let kind = latens::shard_kind(next.kind())?;
        let both: Vec<Statistics> = sum.into_iter().chain([next]).collect();
        let merged = kind.merge(both);
        sum = Some(merged.map_err(|error| {
            anyhow::Error::new(error).context(format!("cannot merge `{}`", path.display()))
        })?);
    }
    Ok(sum.ok_or(ShardError::Nothing)?)
}
