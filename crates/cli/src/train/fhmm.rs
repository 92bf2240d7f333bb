use super::training::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::choice::choice;
use crate::output::{Output, thousands};
use anyhow::Result;
use clap::Args;
use latens::fhmm::{self, Fhmm, FhmmParams, frequent_sentences};
use latens::model::{Device, Params};
use serde_json::Map;

/// Train a factorial hidden Markov model
///
/// Reads text and writes a model that assigns every word one state per layer, or the posterior of the states, as
/// features for taggers. Bounds are lower bounds on the log-likelihood in nats per token; `--valid` evaluates them on a
/// validation set after each epoch. Rare words train the treatment of unknown words (`--unknown`), so keep the default
/// of `--min-count`.
#[derive(Args)]
pub(crate) struct FhmmArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// Number of layers
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().n_layers)]
    n_layers: usize,
    /// Number of hidden states per layer
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().n_states)]
    n_states: usize,
    /// Inference of the hidden states
    #[arg(long, value_enum, default_value_t = Inference::Auto)]
    inference: Inference,
    /// Optimizer of the emission scores in the M-step
    #[arg(long, value_enum, default_value_t = MStep::Lazy)]
    m_step: MStep,
    /// Maximum number of L-BFGS iterations per M-step
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().lbfgs_iterations)]
    lbfgs_iterations: usize,
    /// Number of passes over the training text
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().epochs)]
    epochs: usize,
    /// Number of sentences per mini-batch [default: 1000, or fewer to get 1000 mini-batches in total, or 500 unless
    /// `--m-step` is `lazy`]
    #[arg(long, value_name = "N")]
    batch_sentences: Option<usize>,
    /// Exponent A of the step size (k + 2)^-A of mini-batch k; with 0, each batch replaces all earlier statistics
    #[arg(long, value_name = "A", default_value_t = FhmmParams::default().step_power)]
    step_power: f64,
    /// Maximum number of mean-field sweeps per sentence in training
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().sweeps)]
    sweeps: usize,
    /// Number of pseudo-tokens, distributed uniformly over the states [default: 50 per state of a layer]
    #[arg(long, value_name = "N")]
    pseudo_tokens: Option<f64>,
    /// Pseudo-count added to the expected count of every start state and every transition
    #[arg(long, value_name = "C", default_value_t = FhmmParams::default().prior)]
    prior: f64,
    /// Base score of a word in all states
    #[arg(long, value_enum, default_value_t = BaseMeasure::Unigram)]
    base_measure: BaseMeasure,
    /// Minimum number of occurrences of a word; rarer words are treated as unknown
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().min_count)]
    rare_count: u64,
    /// Treatment of unknown words
    #[arg(long, value_enum, default_value_t = Unknown::Signature)]
    unknown: Unknown,
    /// Number of random initializations; each is trained for two epochs, and training continues with the best one
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().restarts)]
    restarts: usize,
    /// Train only on the N sentences with the highest mean log-count of words
    #[arg(long, value_name = "N")]
    keep_sentences: Option<usize>,
}

choice!(Inference for fhmm::Inference {
    Auto "`exact-mf` for at most 2^20 joint states, otherwise `tilted`",
    ExactMf "Mean field with the exact expected log-normalizer, from a table of all joint states",
    Tilted "Mean field with a tilted bound on the log-normalizer, for any number of joint states",
    Jensen "Mean field with Jensen's bound, as in Nepal and Yates (2013); looser",
    Exact "Exact inference, for at most 2^17 joint states; slow"
});
choice!(MStep for fhmm::MStep {
    Lazy "Closed-form updates of the words of the mini-batch, and of all words from time to time",
    Layers "Closed-form updates of all words, layer by layer; slow with small mini-batches",
    Lbfgs "L-BFGS, as in Nepal and Yates (2013); slow"
});
choice!(BaseMeasure for fhmm::BaseMeasure {
    Unigram "Logarithm of the relative frequency of the word",
    Uniform "Zero, as in Nepal and Yates (2013)"
});
choice!(Unknown for fhmm::Unknown {
    Signature "Map unknown words to classes by capitalization, digits, hyphens and suffix",
    Unk "Map all unknown words to `<unk>`, as in Nepal and Yates (2013)",
    Missing "Treat unknown words as unobserved and infer their states from the context"
});

pub(crate) fn run(args: &FhmmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    if args.keep_sentences == Some(0) {
        anyhow::bail!("`--keep-sentences` must be at least 1, got 0");
    }
    let mut training = args.training.begin(output)?;
    if let Some(n) = args.keep_sentences {
        training.data = frequent_sentences(&training.data, n);
        training.n_tokens = training.data.sentences.n_tokens();
        let n_sentences = training.data.sentences.len();
        output.note(&format!(
            "kept {} sentences, {} tokens",
            thousands(n_sentences),
            thousands(training.n_tokens)
        ));
    }
    let Some(model) = training.fit(params, (), Device::Cpu, HeldOut::WhileTraining, output)? else {
        return Ok(());
    };
    model.warnings().iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    let facts =
        ["train_bound", "valid_bound", "sweeps", "words", "e_step_seconds", "m_step_seconds"];
    training.finish(&model, Map::new(), &facts, output)
}

impl FhmmArgs {
    fn params(&self, seed: u64) -> FhmmParams {
        Fhmm::params()
            .n_layers(self.n_layers)
            .n_states(self.n_states)
            .inference(self.inference.into())
            .m_step(self.m_step.into())
            .lbfgs_iterations(self.lbfgs_iterations)
            .epochs(self.epochs)
            .batch_sentences(self.batch_sentences)
            .step_power(self.step_power)
            .sweeps(self.sweeps)
            .pseudo_tokens(self.pseudo_tokens)
            .prior(self.prior)
            .base_measure(self.base_measure.into())
            .min_count(self.rare_count)
            .unknown(self.unknown.into())
            .restarts(self.restarts)
            .seed(seed)
    }
}
