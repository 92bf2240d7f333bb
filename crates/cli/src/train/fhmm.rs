use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::errors::hinted;
use crate::output::{Output, thousands};
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::fhmm::{self, Fhmm, FhmmParams, frequent_sentences};
use latens::model::{Device, Params};
use serde_json::Map;

/// A factorial hidden Markov model: several hidden states behind every word
///
/// Text goes in; out comes a model that gives every word a state in each of its layers, or how likely each of them is,
/// as features for taggers. Bounds are of the log-likelihood, in nats a token; `--valid` measures them on other text after
/// each epoch. Words that are seen once stand for words that were never seen (`--unknown`), so leave `--min-count` alone.
#[derive(Args)]
pub(crate) struct FhmmArgs {
    #[command(flatten)]
    training: TrainingArgs,
    /// How many layers there are
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().n_layers)]
    n_layers: usize,
    /// How many states each layer has
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().n_states)]
    n_states: usize,
    /// How the states behind a sentence are found
    #[arg(long, value_enum, default_value_t = Inference::Auto)]
    inference: Inference,
    /// How the scores of words are learned
    #[arg(long, value_enum, default_value_t = MStep::Layers)]
    m_step: MStep,
    /// The most steps of L-BFGS in an M-step
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().lbfgs_iterations)]
    lbfgs_iterations: usize,
    /// How often the text is gone through
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().epochs)]
    epochs: usize,
    /// How many sentences a mini-batch has [default: 1000, or so few that there are 500 mini-batches in all]
    #[arg(long, value_name = "N")]
    batch_sentences: Option<usize>,
    /// Mini-batch k makes a step of (k + 2) to the power of minus this; 0 forgets all batches before it
    #[arg(long, value_name = "A", default_value_t = FhmmParams::default().step_power)]
    step_power: f64,
    /// The most sweeps over the layers of a sentence while learning
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().sweeps)]
    sweeps: usize,
    /// How many tokens are taken to have been seen besides, in all states alike [default: 50 a state of a layer]
    #[arg(long, value_name = "N")]
    pseudo_tokens: Option<f64>,
    /// What is added to the expected count of every first state and every transition
    #[arg(long, value_name = "C", default_value_t = FhmmParams::default().prior)]
    prior: f64,
    /// What every word scores in all states
    #[arg(long, value_enum, default_value_t = BaseMeasure::Unigram)]
    base_measure: BaseMeasure,
    /// Words that were seen fewer times are unknown ones
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().min_count)]
    rare_count: u64,
    /// What becomes of unknown words
    #[arg(long, value_enum, default_value_t = Unknown::Signature)]
    unknown: Unknown,
    /// How many first models are tried for two epochs; the best one is learned to the end
    #[arg(long, value_name = "N", default_value_t = FhmmParams::default().restarts)]
    restarts: usize,
    /// Learn only from the N sentences whose words are the most frequent ones
    #[arg(long, value_name = "N")]
    keep_sentences: Option<usize>,
}

/// A choice of parameters and its flag: the same names.
macro_rules! choice {
    ($name:ident { $($variant:ident $help:literal),+ }) => {
        #[derive(Clone, Copy, ValueEnum)]
        enum $name { $(#[doc = $help] $variant),+ }

        impl From<$name> for fhmm::$name {
            fn from(choice: $name) -> fhmm::$name {
                match choice { $($name::$variant => fhmm::$name::$variant),+ }
            }
        }
    };
}

choice!(Inference {
    Auto "`exact-mf` if states to the power of layers are at most 2^20, else `tilted`",
    ExactMf "Mean field with the exact normaliser of words, from a table of all joint states",
    Tilted "Mean field with a bound of the normaliser, for any number of joint states",
    Jensen "Mean field with the paper's looser bound",
    Exact "No approximation, for at most 2^17 joint states: slow"
});
choice!(MStep {
    Layers "One layer after the other in closed form",
    Lbfgs "L-BFGS, as in the paper: slow"
});
choice!(BaseMeasure {
    Unigram "The logarithm of its frequency",
    Uniform "Nothing, as in the paper"
});
choice!(Unknown {
    Signature "Unknown words that look alike are one word",
    Unk "All unknown words are one word, as in the paper",
    Missing "Unknown words say nothing: their states come from the words around them"
});

pub(crate) fn run(args: &FhmmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.params(common.seed);
    params.check()?;
    if args.keep_sentences == Some(0) {
        return Err(hinted(
            "there is nothing to learn from no sentence",
            "raise `--keep-sentences`",
        ));
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
    let model = training.fit(params, (), Device::Cpu, HeldOut::WhileTraining)?;
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
