use super::documents::TopicTrainingArgs;
use super::training::HeldOut;
use crate::args::Common;
use crate::choice::choice;
use crate::data::word_vectors::{VectorFormatArgs, tell_coverage};
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::lda::{Covariance, Glda, GldaInputs, GldaParams, Preset, Sampler, Start};
use latens::model::{Device, Params};
use serde_json::{Map, json};
use std::path::PathBuf;

/// Train Gaussian LDA: topics are Gaussians over word vectors (Das et al. 2015)
///
/// Reads documents and word vectors, and writes a topic model for `latens topics`. Words without a vector are ignored,
/// and so are stop words, punctuation and numbers unless `--keep-all` is given. The same seed gives the same topics for
/// any number of threads.
///
/// Samplers: `parallel` uses all threads; `mh` mixes better for topics with few tokens; `exact` suits small corpora;
/// `cholesky` and `alias` are those of the paper, and `naive` follows the definition, for comparison. `auto` chooses
/// among the first three. With a likelihood weight of 1, all have the same posterior.
#[derive(Args)]
pub(crate) struct GldaArgs {
    #[command(flatten)]
    training: TopicTrainingArgs,
    /// Word vectors: a latens model with vectors, or a word2vec, GloVe, fastText or NumPy file
    #[arg(long, value_name = "FILE", help_heading = "Word vectors")]
    vectors: PathBuf,
    #[command(flatten)]
    format: VectorFormatArgs,
    /// Number of topics
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_topics)]
    n_topics: usize,
    /// Number of Gibbs sampling iterations over all tokens
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_iterations)]
    n_iterations: usize,
    /// Sampling algorithm
    #[arg(long, value_enum, value_name = "NAME", default_value_t = SamplerArg::Auto)]
    sampler: SamplerArg,
    /// Shape of the covariance matrices of topics
    #[arg(long, value_enum, value_name = "SHAPE", default_value_t = CovarianceArg::Full)]
    covariance: CovarianceArg,
    /// Initialization of the topics of tokens
    #[arg(long, value_enum, value_name = "NAME", default_value_t = StartArg::Kmeans)]
    start: StartArg,
    /// Prior covariance of topics
    #[arg(long, value_enum, value_name = "NAME", default_value_t = PriorArg::Relative)]
    prior: PriorArg,
    /// Dirichlet prior on the topics of a document, per topic [default: 1 / number of topics]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Learn one alpha per topic (asymmetric prior), every 20 iterations
    #[arg(long)]
    optimize_alpha: bool,
    /// Weight of the prior mean of a topic, as a number of word vectors
    #[arg(long, value_name = "K", default_value_t = GldaParams::default().kappa)]
    kappa: f64,
    /// Degrees of freedom of the prior covariance; above dimensions - 1 with `--covariance full`
    /// [default: dimensions + 2, dimensions with `--prior das2015`, 3 unless full]
    #[arg(long, value_name = "N")]
    nu: Option<f64>,
    /// Scale factor of the prior covariance set by `--prior`
    #[arg(long, value_name = "S", default_value_t = GldaParams::default().psi_scale)]
    psi_scale: f64,
    /// Exponent of the densities; 1 is the model of the paper, smaller values give the document more influence
    #[arg(long, value_name = "W", default_value_t = GldaParams::default().likelihood_weight)]
    likelihood_weight: f64,
    /// Number of document shards of the samplers `mh` and `alias`
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_shards)]
    n_shards: usize,
}

choice!(SamplerArg for Sampler {
    Auto "`exact`, `mh` or `parallel`, by their estimated time",
    Exact "Collapsed Gibbs sampling with closed-form removal of the current token",
    Mh "Collapsed Metropolis–Hastings sampling with proposals from a table",
    Parallel "Sampling with explicit means and covariances on all threads",
    Alias "Das et al. (2015) with alias tables",
    Cholesky "Das et al. (2015) with Cholesky updates",
    Naive "Every density from scratch, for comparison",
});
choice!(CovarianceArg for Covariance {
    Full "Full covariance matrix",
    Diagonal "Diagonal covariance matrix",
    Spherical "Multiple of the identity matrix",
});
choice!(StartArg for Start {
    Kmeans "k-means clusters of the word vectors",
    Random "Random topics",
});
choice!(PriorArg for Preset {
    Relative "Spherical, with the variance of all word vectors",
    Das2015 "Identity matrix times 3 times the number of dimensions, as in the implementation of Das et al. (2015)",
});

pub(crate) fn run(args: &GldaArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    args.format.check(&args.vectors)?;
    if args.training.run.valid.is_some() {
        return Err(hinted(
            "Gaussian topics do not support `--valid`: densities of vectors are not probabilities of words",
            "omit `--valid` and run `latens topics eval` after training",
        ));
    }
    let (own, vectors) = args.format.read(&args.vectors)?;
    let mut training = args.training.begin(output)?;
    let (vectors, coverage) = vectors.for_words(&own.vocab, &training.data.lexicon.vocab);
    tell_coverage(&coverage, output);
    let enough = coverage.n_found_tokens as usize / (10 * vectors.dim());
    if matches!(args.covariance, CovarianceArg::Full) && args.n_topics > enough {
        output.note(&format!(
            "warning: too few tokens for {} topics with full covariance in {} dimensions: the prior will dominate\n\n\
             hint: `--covariance spherical` needs fewer tokens",
            args.n_topics,
            vectors.dim()
        ));
    }
    let inputs = GldaInputs::default().vectors(&vectors);
    let Some(model) = training.fit(params, inputs, Device::Cpu, HeldOut::Afterwards, output)?
    else {
        return Ok(());
    };
    let mut metrics = Map::new();
    metrics.insert("coverage".into(), json!(coverage.share()));
    let facts = [
        "log_likelihood",
        "log_likelihood_per_token",
        "tokens_per_second",
        "sampler",
        "sampler_reason",
        "empty_topics",
        "documents_without_known_words",
    ];
    args.training.write_mixtures(&model, &training.data.documents, common.seed)?;
    training.finish(&model, metrics, &facts, output)
}

impl GldaArgs {
    fn params(&self, seed: u64) -> GldaParams {
        Glda::params()
            .n_topics(self.n_topics)
            .n_iterations(self.n_iterations)
            .sampler(self.sampler.into())
            .covariance(self.covariance.into())
            .start(self.start.into())
            .prior(self.prior.into())
            .alpha(self.alpha)
            .optimize_alpha(self.optimize_alpha)
            .kappa(self.kappa)
            .nu(self.nu)
            .psi_scale(self.psi_scale)
            .likelihood_weight(self.likelihood_weight)
            .n_shards(self.n_shards)
            .seed(seed)
    }
}
