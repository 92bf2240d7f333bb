use super::training::{HeldOut, TrainingArgs};
use crate::args::parse_size;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::counts::Budget;
use latens::model::{Device, Params};
use latens::ngram::{Ngram, NgramParams};
use serde_json::{Map, json};

/// Train an n-gram language model (interpolated modified Kneser–Ney)
///
/// Reads text and writes a language model for `perplexity`, `sample` and `export --to arpa`. N-grams are counted in one
/// pass over the text.
#[derive(Args)]
pub(crate) struct NgramArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Order of the model: number of words per n-gram, 1 to 6
    #[arg(long, value_name = "N", default_value_t = NgramParams::default().order)]
    order: usize,
    /// Minimum number of occurrences of an n-gram, one value per order from 1; the last one holds for higher orders
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_values_t = NgramParams::default().min_counts)]
    min_counts: Vec<u64>,
    /// Interpolation weight of the cache of recent words, 0 to 1; 0 disables the cache
    #[arg(long, value_name = "W", default_value_t = NgramParams::default().cache_weight)]
    cache_weight: f64,
    /// Size of the cache in words
    #[arg(long, value_name = "N", default_value_t = NgramParams::default().cache_size)]
    cache_size: usize,
    /// Memory limit for text, counts and probabilities, in bytes or with a unit (K, M, G); what exceeds it is written to
    /// temporary files [default: all n-grams are in memory]
    ///
    /// The limit does not include the vocabulary (about 0.3 KiB per word) and the program (about 20 MiB). The model is the
    /// same with any limit. Temporary files are in the system's temporary folder (`TMPDIR`) and need about 120 bytes per
    /// distinct n-gram of the highest order. A run with a limit writes no checkpoints.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "resume")]
    memory: Option<usize>,
}

pub(crate) fn run(args: &NgramArgs, output: &Output) -> Result<()> {
    let params = Ngram::params()
        .order(args.order)
        .min_counts(args.min_counts.clone())
        .cache_weight(args.cache_weight)
        .cache_size(args.cache_size);
    params.check()?;
    let (mut training, budget, _folder) = match args.memory {
        None => (args.training.begin(output)?, None, None),
        Some(bytes) => {
            let budget = Budget::default().bytes(bytes);
            let (training, budget, folder) = args.training.begin_within(&budget, output)?;
            (training, Some(budget), folder)
        }
    };
    let Some(model) = training.fit(params, budget, Device::Cpu, HeldOut::Afterwards, output)?
    else {
        return Ok(());
    };
    let mut metrics = Map::new();
    metrics.insert("ngrams".into(), json!(model.n_ngrams()));
    training.finish(&model, metrics, &[], output)
}
