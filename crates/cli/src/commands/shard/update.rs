use super::merge::merge;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::model::shards::{Broadcast, Round};
use latens::store::write_atomically;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Write the next broadcast, or the model after the last round
///
/// The result has `"done":true` if the output is the model or the vocabulary.
#[derive(Args)]
pub(crate) struct UpdateArgs {
    /// Broadcast of this round
    #[arg(value_name = "BROADCAST")]
    broadcast: PathBuf,
    /// Statistics of all shards, merged or not
    #[arg(required = true, value_name = "STATISTICS")]
    statistics: Vec<PathBuf>,
    /// Path of the broadcast or of the model to write
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

#[derive(Serialize)]
struct UpdateResult {
    path: String,
    done: bool,
    round: u64,
    rounds: Option<u64>,
    metrics: BTreeMap<String, f64>,
}

pub(crate) fn run(args: &UpdateArgs, output: &Output) -> Result<()> {
    let broadcast = Broadcast::open(&args.broadcast)?;
    let kind = latens::shard_kind(broadcast.kind())?;
    let updated = kind.update(&broadcast, merge(&args.statistics)?)?;
    let mut result = UpdateResult {
        path: args.output.display().to_string(),
        done: true,
        round: broadcast.round().saturating_add(1),
        rounds: broadcast.n_rounds(),
        metrics: BTreeMap::new(),
    };
    match updated {
        Round::Next(next) => {
            write_atomically(&args.output, |out| out.write_all(&next.to_bytes()))?;
            result.done = false;
            (result.rounds, result.metrics) = (next.n_rounds(), next.metrics().clone());
        }
        Round::Model(model) => model.save(&args.output)?,
        Round::Lexicon(lexicon) => lexicon.save(&args.output)?,
    }
    output.result(&result, |out| {
        let what = if result.done { "the result" } else { "the broadcast" };
        let of = result.rounds.map_or(String::new(), |n| format!(" of {n}"));
        write!(out, "wrote `{}`: {what} after round {}{of}", result.path, result.round)?;
        result.metrics.iter().try_for_each(|(name, value)| write!(out, ", {name} {value:.4}"))?;
        writeln!(out)
    })
}
