use crate::args::ReadingArgs;
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::reading::watched;
use anyhow::Result;
use clap::Args;
use latens::model::shards::{Broadcast, Part, Statistics};
use latens::store::write_atomically;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Compute the statistics of one shard
///
/// The result depends only on the broadcast, the text and the number of the shard: a lost shard can be computed again. The
/// topic models `lda` and `glda` also need the shard's own statistics of the last round, with `--previous`.
#[derive(Args)]
pub(crate) struct StatsArgs {
    /// Broadcast of this round
    #[arg(value_name = "BROADCAST")]
    broadcast: PathBuf,
    /// Text files of the shard; `-` reads standard input, `.gz` and `.zst` are decompressed
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Number of the shard, from 1 to the number of shards
    #[arg(long, value_name = "I")]
    shard: usize,
    /// Statistics of this shard in the last round, for `lda` and `glda`
    #[arg(long, value_name = "STATISTICS")]
    previous: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Path of the statistics to write
    #[arg(short, long, value_name = "STATISTICS")]
    output: PathBuf,
}

#[derive(Serialize)]
struct StatsResult {
    path: String,
    shard: usize,
    shards: usize,
    round: u64,
    bytes: usize,
}

pub(crate) fn run(args: &StatsArgs, output: &Output) -> Result<()> {
    let broadcast = Broadcast::open(&args.broadcast)?;
    let kind = latens::shard_kind(broadcast.kind())?;
    let Some(shard) = args.shard.checked_sub(1) else {
        return Err(hinted("there is no shard 0", "shards are counted from 1"));
    };
    let inputs = watched(args.reading.inputs(&args.files)?, output);
    let text = kind.read(&broadcast, shard, &Part::Files(Box::new(inputs)))?;
    let previous = args.previous.as_ref().map(Statistics::open).transpose()?;
    let previous = previous.filter(|previous| previous.has_carry());
    let statistics = kind.statistics(&broadcast, &text, previous.as_ref())?;
    let bytes = statistics.to_bytes();
    write_atomically(&args.output, |out| out.write_all(&bytes))?;
    let result = StatsResult {
        path: args.output.display().to_string(),
        shard: args.shard,
        shards: broadcast.n_shards(),
        round: broadcast.round(),
        bytes: bytes.len(),
    };
    output.result(&result, |out| {
        let StatsResult { path, shard, shards, round, bytes } = &result;
        let bytes = thousands(*bytes);
        writeln!(out, "wrote `{path}`: shard {shard} of {shards} in round {round}, {bytes} bytes")
    })
}
