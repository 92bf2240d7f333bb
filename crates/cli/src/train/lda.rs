use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::lda::{Lda, LdaParams, LdaSampler};
use latens::model::{Device, Params};
use serde_json::Map;

/// Topics that are distributions over words (latent Dirichlet allocation)
///
/// Documents go in; out comes a topic model, for `latens topics`. Tokens are sampled one after the other, by one
/// thread: the same seed gives the same topics.
///
/// Samplers: `dense` draws from the weights of all topics; `sparse` proposes topics of the document and of other
/// tokens of the word, so that only the topics of the document cost time. Both have the same posterior.
#[derive(Args)]
pub(crate) struct LdaArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// How many topics there are
    #[arg(long, value_name = "N", default_value_t = LdaParams::default().n_topics)]
    n_topics: usize,
    /// How often every token is sampled
    #[arg(long, value_name = "N", default_value_t = LdaParams::default().n_iterations)]
    n_iterations: usize,
    /// How tokens are sampled
    #[arg(long, value_enum, value_name = "NAME", default_value_t = SamplerArg::Auto)]
    sampler: SamplerArg,
    /// How evenly documents mix topics, for each topic [default: 1 / N topics]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Fit an own alpha for each topic, every 20 iterations
    #[arg(long)]
    optimize_alpha: bool,
    /// How evenly topics mix words, for each word
    #[arg(long, value_name = "B", default_value_t = LdaParams::default().beta)]
    beta: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum SamplerArg {
    /// By the number of topics and the length of documents
    Auto,
    /// From the weights of all topics
    Dense,
    /// With proposals, whatever the number of topics
    Sparse,
}

pub(crate) fn run(args: &LdaArgs, common: &Common, output: &Output) -> Result<()> {
    let LdaArgs { n_topics, n_iterations, alpha, optimize_alpha, beta, .. } = *args;
    let sampler = match args.sampler {
        SamplerArg::Auto => LdaSampler::Auto,
        SamplerArg::Dense => LdaSampler::Dense,
        SamplerArg::Sparse => LdaSampler::Sparse,
    };
    let seed = common.seed;
    let params = Lda::params()
        .n_topics(n_topics)
        .n_iterations(n_iterations)
        .sampler(sampler)
        .alpha(alpha)
        .optimize_alpha(optimize_alpha)
        .beta(beta)
        .seed(seed);
    params.check()?;
    let mut training = args.training.begin_documents(output)?;
    let model = training.fit(params, (), Device::Cpu, HeldOut::Afterwards)?;
    let facts = [
        "log_likelihood",
        "log_likelihood_per_token",
        "tokens_per_second",
        "sampler",
        "empty_topics",
    ];
    training.finish(&model, Map::new(), &facts, output)
}
