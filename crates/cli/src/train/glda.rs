use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::output::Output;
use crate::word_vectors::{VectorFormatArgs, tell_coverage};
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::lda::{Covariance, Glda, GldaInputs, GldaParams, Preset, Sampler, Start};
use latens::model::{Device, Params};
use serde_json::{Map, json};
use std::path::PathBuf;

/// Topics that are Gaussians over word vectors (Das et al. 2015)
///
/// Documents and word vectors go in; out comes a topic model, for `latens topics`. Words without a vector are left
/// out. The same seed gives the same topics, whatever the number of threads.
///
/// Samplers: `parallel` uses all threads; `mh` is better for topics of few tokens; `exact` is for small texts;
/// `cholesky` and `alias` are those of the paper, `naive` is the definition, for comparison. `auto` chooses among the
/// first three by the size of the work. All have the same posterior, with a likelihood weight of 1.
#[derive(Args)]
pub(crate) struct GldaArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// The vectors of words: a model of ours that has some, or a file of word2vec, GloVe, fastText or numpy
    #[arg(long, value_name = "FILE", help_heading = "Word vectors")]
    vectors: PathBuf,
    #[command(flatten)]
    format: VectorFormatArgs,
    /// How many topics there are
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_topics)]
    n_topics: usize,
    /// How often every token is sampled
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_iterations)]
    n_iterations: usize,
    /// How tokens are sampled
    #[arg(long, value_enum, value_name = "NAME", default_value_t = SamplerArg::Auto)]
    sampler: SamplerArg,
    /// What shape topics have
    #[arg(long, value_enum, value_name = "SHAPE", default_value_t = CovarianceArg::Full)]
    covariance: CovarianceArg,
    /// Where the topics of tokens begin
    #[arg(long, value_enum, value_name = "NAME", default_value_t = StartArg::Kmeans)]
    start: StartArg,
    /// What the prior covariance of topics is
    #[arg(long, value_enum, value_name = "NAME", default_value_t = PriorArg::Relative)]
    prior: PriorArg,
    /// How evenly documents mix topics, for each topic [default: 1 / N topics]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Fit an own alpha for each topic, every 20 iterations
    #[arg(long)]
    optimize_alpha: bool,
    /// Of how many vectors the prior location of a topic counts
    #[arg(long, value_name = "K", default_value_t = GldaParams::default().kappa)]
    kappa: f64,
    /// Of how many vectors the prior covariance counts, above dimensions - 1 [default: dimensions + 2; 3 unless full]
    #[arg(long, value_name = "N")]
    nu: Option<f64>,
    /// How much larger than `--prior` says the prior covariance is
    #[arg(long, value_name = "S", default_value_t = GldaParams::default().psi_scale)]
    psi_scale: f64,
    /// The power to which densities are raised: 1 is the paper's model, less gives a document's other words more of a say
    #[arg(long, value_name = "W", default_value_t = GldaParams::default().likelihood_weight)]
    likelihood_weight: f64,
    /// In how many parts the samplers `mh` and `alias` cut the documents
    #[arg(long, value_name = "N", default_value_t = GldaParams::default().n_shards)]
    n_shards: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum SamplerArg {
    /// By the size of the work
    Auto,
    /// Collapsed, with a closed form for a topic without a token of its own
    Exact,
    /// Collapsed, with proposals from a table
    Mh,
    /// With explicit Gaussians, by all threads
    Parallel,
    /// The paper's, with alias tables
    Alias,
    /// The paper's, without
    Cholesky,
    /// Every density from scratch
    Naive,
}

#[derive(Clone, Copy, ValueEnum)]
enum CovarianceArg {
    Full,
    Diagonal,
    Spherical,
}

#[derive(Clone, Copy, ValueEnum)]
enum StartArg {
    /// With the cluster of their word's vector
    Kmeans,
    /// Anywhere
    Random,
}

#[derive(Clone, Copy, ValueEnum)]
enum PriorArg {
    /// That of all words' vectors, made round
    Relative,
    /// 3 times the number of dimensions, as in the authors' program
    Das2015,
}

pub(crate) fn run(args: &GldaArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    args.format.check(&args.vectors)?;
    let (own, vectors) = args.format.read(&args.vectors)?;
    let mut training = args.training.begin_documents(output)?;
    let (vectors, coverage) = vectors.for_words(&own.vocab, &training.data.lexicon.vocab);
    tell_coverage(&coverage, output);
    let enough = coverage.n_found_tokens as usize / (10 * vectors.dim());
    if matches!(args.covariance, CovarianceArg::Full) && args.n_topics > enough {
        output.note(&format!(
            "warning: for {} topics of {} dimensions there are few tokens: their shapes will be mostly the prior's \
             (`--covariance spherical` needs fewer)",
            args.n_topics,
            vectors.dim()
        ));
    }
    let inputs = GldaInputs::default().vectors(&vectors);
    let model = training.fit(params, inputs, Device::Cpu, HeldOut::Afterwards)?;
    let mut metrics = Map::new();
    metrics.insert("coverage".into(), json!(coverage.share()));
    let facts = [
        "log_likelihood",
        "log_likelihood_per_token",
        "tokens_per_second",
        "sampler",
        "empty_topics",
        "documents_without_known_words",
    ];
    training.finish(&model, metrics, &facts, output)
}

impl GldaArgs {
    fn params(&self, seed: u64) -> GldaParams {
        Glda::params()
            .n_topics(self.n_topics)
            .n_iterations(self.n_iterations)
            .sampler(match self.sampler {
                SamplerArg::Auto => Sampler::Auto,
                SamplerArg::Exact => Sampler::Exact,
                SamplerArg::Mh => Sampler::Mh,
                SamplerArg::Parallel => Sampler::Parallel,
                SamplerArg::Alias => Sampler::Alias,
                SamplerArg::Cholesky => Sampler::Cholesky,
                SamplerArg::Naive => Sampler::Naive,
            })
            .covariance(match self.covariance {
                CovarianceArg::Full => Covariance::Full,
                CovarianceArg::Diagonal => Covariance::Diagonal,
                CovarianceArg::Spherical => Covariance::Spherical,
            })
            .start(match self.start {
                StartArg::Kmeans => Start::Kmeans,
                StartArg::Random => Start::Random,
            })
            .prior(match self.prior {
                PriorArg::Relative => Preset::Relative,
                PriorArg::Das2015 => Preset::Das2015,
            })
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
