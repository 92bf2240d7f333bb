use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::model::{Device, Params};
use latens::word2vec::{Algorithm, Word2vec, Word2vecParams};
use serde_json::Map;

/// Word vectors by word2vec: CBOW or skip-gram with negative sampling
///
/// Text goes in; out comes a vector for each word, for `nearest`, `encode`, `export --to glove` and as features of
/// taggers. With one thread the same seed gives the same vectors; several threads do not wait for each other, so
/// they give slightly other ones each time.
#[derive(Args)]
pub(crate) struct Word2vecArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// What is guessed from what
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AlgorithmArg::SkipGram)]
    algorithm: AlgorithmArg,
    /// How many numbers a vector has
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().dim)]
    dim: usize,
    /// How many words on either side are looked at, at most; drawn anew for each word
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().window)]
    window: usize,
    /// How many random words each right one is told from
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().n_negatives)]
    n_negatives: usize,
    /// Random words are drawn as often as their counts to this power say
    #[arg(long, value_name = "P", default_value_t = Word2vecParams::default().noise_power)]
    noise_power: f64,
    /// Words of a greater share of the text are left out now and then; 0 keeps all
    #[arg(long, value_name = "S", default_value_t = Word2vecParams::default().subsample)]
    subsample: f64,
    /// How often the text is gone through
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().epochs)]
    epochs: usize,
    /// How far the first steps go; the rate falls along a line to zero
    #[arg(long, value_name = "R", default_value_t = Word2vecParams::default().learning_rate)]
    learning_rate: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlgorithmArg {
    /// A word from the mean of the words around it: fast
    Cbow,
    /// A word from each of the words around it: better for rare words and small texts
    SkipGram,
}

pub(crate) fn run(args: &Word2vecArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    if args.training.valid.is_some() {
        return Err(hinted(
            "vectors give no probabilities, so they cannot be measured on another text",
            "run it without `--valid`",
        ));
    }
    let mut training = args.training.begin(output)?;
    let model = training.fit(params, (), Device::Cpu, HeldOut::Afterwards)?;
    training.finish(&model, Map::new(), &["loss", "tokens_per_second"], output)
}

impl Word2vecArgs {
    fn params(&self, seed: u64) -> Word2vecParams {
        Word2vec::params()
            .algorithm(match self.algorithm {
                AlgorithmArg::Cbow => Algorithm::Cbow,
                AlgorithmArg::SkipGram => Algorithm::SkipGram,
            })
            .dim(self.dim)
            .window(self.window)
            .n_negatives(self.n_negatives)
            .noise_power(self.noise_power)
            .subsample(self.subsample)
            .epochs(self.epochs)
            .learning_rate(self.learning_rate)
            .seed(seed)
    }
}
