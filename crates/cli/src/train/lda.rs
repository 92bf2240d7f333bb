use super::documents::TopicTrainingArgs;
use super::training::HeldOut;
use crate::args::Common;
use crate::choice::choice;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::lda::{Lda, LdaParams, LdaSampler};
use latens::model::{Device, Params};
use serde_json::Map;

/// Train latent Dirichlet allocation: topics are distributions over words
///
/// Reads documents and writes a topic model for `latens topics`. Stop words, punctuation and numbers are left out,
/// unless `--keep-all` is given; new documents are treated in the same way. The same seed gives the same topics on any
/// number of threads; several threads help from 524,288 tokens on. With `--valid`, the perplexity of held-out documents
/// is measured by document completion: one half of the words of a document predicts the other half.
///
/// Samplers: `dense` computes the weights of all topics; `sparse` draws proposals from the topics of the document and
/// of the word, so that its cost depends only on the number of topics in the document. Both have the same posterior.
#[derive(Args)]
pub(crate) struct LdaArgs {
    #[command(flatten)]
    training: TopicTrainingArgs,
    /// Number of topics
    #[arg(long, value_name = "N", default_value_t = LdaParams::default().n_topics)]
    n_topics: usize,
    /// Number of Gibbs sampling iterations over all tokens
    #[arg(long, value_name = "N", default_value_t = LdaParams::default().n_iterations)]
    n_iterations: usize,
    /// Sampling algorithm
    #[arg(long, value_enum, value_name = "NAME", default_value_t = SamplerArg::Auto)]
    sampler: SamplerArg,
    /// Dirichlet prior on the topics of a document, per topic [default: 1 / number of topics]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Learn one alpha per topic (asymmetric prior), every 20 iterations
    #[arg(long)]
    optimize_alpha: bool,
    /// Dirichlet prior on the words of a topic, per word
    #[arg(long, value_name = "B", default_value_t = LdaParams::default().beta)]
    beta: f64,
}

choice!(SamplerArg for LdaSampler {
    Auto "`dense` or `sparse`, by the number of topics and the length of documents",
    Dense "Gibbs sampling from the weights of all topics",
    Sparse "Metropolis–Hastings sampling, with a cost independent of the number of topics",
});

pub(crate) fn run(args: &LdaArgs, common: &Common, output: &Output) -> Result<()> {
    let LdaArgs { n_topics, n_iterations, alpha, optimize_alpha, beta, .. } = *args;
    let seed = common.seed;
    let params = Lda::params()
        .n_topics(n_topics)
        .n_iterations(n_iterations)
        .sampler(args.sampler.into())
        .alpha(alpha)
        .optimize_alpha(optimize_alpha)
        .beta(beta)
        .seed(seed);
    params.check()?;
    let mut training = args.training.begin(output)?;
    let Some(model) = training.fit(params, (), Device::Cpu, HeldOut::Afterwards, output)? else {
        return Ok(());
    };
    let facts = [
        "log_likelihood",
        "log_likelihood_per_token",
        "tokens_per_second",
        "sampler",
        "empty_topics",
    ];
    args.training.write_mixtures(&model, &training.data.documents, seed)?;
    let mut metrics = Map::new();
    args.training.completion(&model, seed, &mut metrics)?;
    training.finish(&model, metrics, &facts, output)
}
