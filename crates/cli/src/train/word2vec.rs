use super::training::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::choice::choice;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::model::{Device, Params};
use latens::word2vec::{Algorithm, Word2vec, Word2vecParams};
use serde_json::Map;

/// Train word vectors with word2vec: CBOW or skip-gram with negative sampling
///
/// Reads text and writes one vector per word, for `nearest`, `encode`, `export --to glove` and as features for taggers.
/// With one thread, the same seed gives the same vectors. Several threads update the vectors without locks, so results
/// vary slightly between runs.
#[derive(Args)]
pub(crate) struct Word2vecArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Training objective
    #[arg(long, value_name = "NAME", value_enum, default_value_t = AlgorithmArg::SkipGram)]
    algorithm: AlgorithmArg,
    /// Dimension of the vectors
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().dim)]
    dim: usize,
    /// Maximum number of context words on either side; drawn uniformly from 1 to N for each word
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().window)]
    window: usize,
    /// Number of negative samples per positive
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().n_negatives)]
    n_negatives: usize,
    /// Exponent of the word counts in the distribution of negative samples
    #[arg(long, value_name = "P", default_value_t = Word2vecParams::default().noise_power)]
    noise_power: f64,
    /// Relative frequency above which tokens of a word are randomly dropped; 0 keeps all tokens
    #[arg(long, value_name = "S", default_value_t = Word2vecParams::default().subsample)]
    subsample: f64,
    /// Number of passes over the training text
    #[arg(long, value_name = "N", default_value_t = Word2vecParams::default().epochs)]
    epochs: usize,
    /// Initial learning rate; decreases linearly to 0.01 % of this value
    #[arg(long, value_name = "R", default_value_t = Word2vecParams::default().learning_rate)]
    learning_rate: f64,
}

choice!(AlgorithmArg for Algorithm {
    Cbow "Continuous bag of words: predict a word from the mean of its context; fast",
    SkipGram "Predict a word from each context word; better for rare words and small corpora",
});

pub(crate) fn run(args: &Word2vecArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    if args.training.run.valid.is_some() {
        return Err(hinted(
            "word2vec does not support `--valid`: word vectors define no probabilities",
            "omit `--valid`",
        ));
    }
    let mut training = args.training.begin(output)?;
    let Some(model) = training.fit(params, (), Device::Cpu, HeldOut::Afterwards, output)? else {
        return Ok(());
    };
    training.finish(&model, Map::new(), &["loss", "tokens_per_second"], output)
}

impl Word2vecArgs {
    fn params(&self, seed: u64) -> Word2vecParams {
        Word2vec::params()
            .algorithm(self.algorithm.into())
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
