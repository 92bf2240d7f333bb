use super::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::check_input;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::lds::{HiddenState, Lds};
use latens::model::{Device, Model, Params, check_range};
use latens::neural::{self, FirstWeights, NeuralInputs, NeuralParams};
use serde_json::{Map, json};
use std::path::{Path, PathBuf};

/// Flags of all networks, with the defaults of one.
macro_rules! network_args {
    ($(#[$about:meta])* $name:ident, $defaults:expr, { $($fields:tt)* }) => {
        $(#[$about])*
        #[derive(Args)]
        pub(crate) struct $name {
            #[command(flatten)]
            training: TrainingArgs,
            $($fields)*
            /// How many numbers a word's vector has, and how many units a layer
            #[arg(long, value_name = "N", default_value_t = $defaults.dim)]
            dim: usize,
            /// Whether a word has one vector for being read and being foretold
            #[arg(long, value_enum, default_value_t = $defaults.tying.into())]
            tying: Tying,
            /// What the end of a sentence does to what was read before
            #[arg(long, value_enum, default_value_t = $defaults.memory.into())]
            memory: Memory,
            /// The share of numbers left out after word vectors and layers while learning, 0 to 1
            #[arg(long, value_name = "P", default_value_t = $defaults.dropout)]
            dropout: f64,
            /// First word vectors are drawn evenly between minus this and this
            #[arg(long, value_name = "R", default_value_t = $defaults.init_range)]
            init_range: f64,
            /// How often the text is gone through at most
            #[arg(long, value_name = "N", default_value_t = $defaults.epochs)]
            epochs: usize,
            /// At how many places the text is read at once; for `ff`, how many words a step is of
            #[arg(long, value_name = "N", default_value_t = $defaults.batch_size)]
            batch_size: usize,
            /// How weights follow the gradient
            #[arg(long, value_enum, default_value_t = $defaults.optimizer.into())]
            optimizer: Optimizer,
            /// How the learning rate falls
            #[arg(long, value_enum, default_value_t = $defaults.schedule.into())]
            schedule: Schedule,
            /// How far the first steps go
            #[arg(long, value_name = "R", default_value_t = $defaults.learning_rate)]
            learning_rate: f64,
            /// How strongly weights are pulled to zero (`adamw`)
            #[arg(long, value_name = "W", default_value_t = $defaults.weight_decay)]
            weight_decay: f64,
            /// The largest norm of a gradient; longer ones are cut to it
            #[arg(long, value_name = "N", default_value_t = $defaults.clip)]
            clip: f64,
            /// Where it is learned: `cpu` or `cuda`
            #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
            device: Device,
        }

        impl $name {
            /// What all networks have of parameters.
            fn common_params(&self, seed: u64) -> NeuralParams {
                $defaults
                    .dim(self.dim)
                    .tying(self.tying.into())
                    .memory(self.memory.into())
                    .dropout(self.dropout)
                    .init_range(self.init_range)
                    .epochs(self.epochs)
                    .batch_size(self.batch_size)
                    .optimizer(self.optimizer.into())
                    .schedule(self.schedule.into())
                    .learning_rate(self.learning_rate)
                    .weight_decay(self.weight_decay)
                    .clip(self.clip)
                    .seed(seed)
            }
        }
    };
}

network_args! {
    /// A feed-forward language model of the last few words
    ///
    /// Text goes in; out comes a network that foretells each word from the vectors of the words before it. Give text to
    /// measure on (`--valid`): the best epoch's model is the one that is kept.
    FfArgs, NeuralParams::ff(), {
        /// How many words an n-gram has: the network reads one less
        #[arg(long, value_name = "N", default_value_t = NeuralParams::ff().order)]
        order: usize,
        /// How many layers there are
        #[arg(long, value_name = "N", default_value_t = NeuralParams::ff().n_layers)]
        n_layers: usize,
    }
}

network_args! {
    /// A simple recurrent language model
    ///
    /// Text goes in; out comes a network that carries a hidden vector from word to word and foretells the next one from
    /// it. It can begin as a linear dynamical system (`--init`). Give text to measure on (`--valid`): the best epoch's
    /// model is kept, and the learning rate falls when it no longer gets better.
    RnnArgs, NeuralParams::rnn(), {
        /// What hidden units compute
        #[arg(long, value_enum, default_value_t = NeuralParams::rnn().squash.into())]
        squash: Squash,
        /// After how many words the network learns; it does not look further back for causes
        #[arg(long, value_name = "N", default_value_t = NeuralParams::rnn().bptt)]
        bptt: usize,
        /// A linear dynamical system (`latens train lds`) of the same words and `--dim` to begin with
        #[arg(long, value_name = "LDS")]
        init: Option<PathBuf>,
        /// Which state of that system the hidden vector is
        #[arg(long, value_enum, default_value_t = InitState::Predicted)]
        init_state: InitState,
        /// How long hidden vectors are first, relative to states of that system: small ones keep to where hidden
        /// units are almost linear
        #[arg(long, value_name = "S", default_value_t = 0.5)]
        init_scale: f64,
        /// Output vectors of that system are cut to this length, since a softmax makes too much of long ones
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        init_max_norm: f64,
    }
}

network_args! {
    /// A language model of long short-term memory
    ///
    /// Text goes in; out comes a network that carries vectors from word to word and foretells the next one from them.
    /// Give text to measure on (`--valid`): the best epoch's model is kept, and the learning rate falls when it no
    /// longer gets better.
    LstmArgs, NeuralParams::lstm(), {
        /// How many layers there are
        #[arg(long, value_name = "N", default_value_t = NeuralParams::lstm().n_layers)]
        n_layers: usize,
        /// After how many words the network learns; it does not look further back for causes
        #[arg(long, value_name = "N", default_value_t = NeuralParams::lstm().bptt)]
        bptt: usize,
    }
}

/// A choice of parameters and its flag: the same names.
macro_rules! choice {
    ($name:ident { $($variant:ident $help:literal),+ }) => {
        #[derive(Clone, Copy, ValueEnum)]
        #[value(rename_all = "lowercase")]
        enum $name { $(#[doc = $help] $variant),+ }

        impl From<$name> for neural::$name {
            fn from(choice: $name) -> neural::$name {
                match choice { $($name::$variant => neural::$name::$variant),+ }
            }
        }

        impl From<neural::$name> for $name {
            fn from(choice: neural::$name) -> $name {
                match choice { $(neural::$name::$variant => $name::$variant),+ }
            }
        }
    };
}

choice!(Tying { Shared "One for both", Separate "One for each" });
choice!(Memory {
    Carry "Nothing: text is one long sequence",
    Reset "All is forgotten: every sentence begins like the first one"
});
choice!(Optimizer { Sgd "Stochastic gradient descent", AdamW "Adam with decoupled weight decay" });
choice!(Schedule {
    Constant "Not at all",
    Cosine "Along half a cosine to zero",
    Plateau "By four after each epoch without gain",
    Halving "By half every epoch once an epoch gains less than 0.3%, until that happens again"
});
choice!(Squash { Tanh "The hyperbolic tangent", Sigmoid "The logistic function" });

#[derive(Clone, Copy, ValueEnum)]
enum InitState {
    /// The prediction for the word that comes next
    Predicted,
    /// The state of the word that was read last
    Filtered,
}

pub(crate) fn run_ff(args: &FfArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.common_params(common.seed);
    let params = params.order(args.order).n_layers(args.n_layers);
    train(&args.training, params, args.device, None, output)
}

pub(crate) fn run_rnn(args: &RnnArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.common_params(common.seed);
    let params = params.squash(args.squash.into()).bptt(args.bptt);
    check_range("init_scale", args.init_scale, f64::MIN_POSITIVE..)?;
    check_range("init_max_norm", args.init_max_norm, 0.0..)?;
    let init = args.init.as_deref().map(|path| Init {
        path,
        state: args.init_state,
        scale: args.init_scale,
        max_norm: args.init_max_norm,
    });
    train(&args.training, params, args.device, init, output)
}

pub(crate) fn run_lstm(args: &LstmArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.common_params(common.seed);
    let params = params.n_layers(args.n_layers).bptt(args.bptt);
    train(&args.training, params, args.device, None, output)
}

/// A model to begin with.
struct Init<'a> {
    path: &'a Path,
    state: InitState,
    scale: f64,
    max_norm: f64,
}

fn train(
    args: &TrainingArgs,
    params: NeuralParams,
    device: Device,
    init: Option<Init<'_>>,
    output: &Output,
) -> Result<()> {
    params.check()?;
    let source = init.as_ref().map(open_init).transpose()?;
    let init =
        init.as_ref().zip(source.as_ref()).map(|(init, source)| first_weights(init, &**source));
    let init = init.transpose()?;
    let mut training = args.begin(output)?;
    let mut inputs = NeuralInputs::default();
    inputs.init = init.as_ref();
    let (learning_rate, clip) = (params.learning_rate, params.clip);
    let model = training.fit(params, inputs, device, HeldOut::WhileTraining)?;
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(model.n_weights()));
    if let Some(epoch) = model.facts().get("diverged_in_epoch") {
        output.note(&format!(
            "warning: the loss diverged in epoch {epoch}; keeping the best model before it\n\n\
             hint: lower `--learning-rate` ({learning_rate}) or `--clip` ({clip})"
        ));
    }
    let facts =
        ["epochs", "best_epoch", "train_perplexity", "valid_perplexity", "seconds_per_epoch"];
    training.finish(&model, metrics, &facts, output)
}

fn open_init(init: &Init<'_>) -> Result<Box<dyn Model>> {
    check_input(init.path)?;
    Ok(latens::open(init.path)?)
}

fn first_weights<'a>(init: &Init<'_>, source: &'a dyn Model) -> Result<FirstWeights<'a>> {
    let Some(lds) = source.downcast_ref::<Lds>() else {
        return Err(hinted(
            format!(
                "`{}` is {}: no network begins as one",
                init.path.display(),
                source.description()
            ),
            "`--init` is for a linear dynamical system, e.g., of `latens train lds`",
        ));
    };
    let state = match init.state {
        InitState::Predicted => HiddenState::Predicted,
        InitState::Filtered => HiddenState::Filtered,
    };
    let latens::lds::RnnWeights { dim, recurrent, input, output, bias } = lds.rnn_weights(state);
    let (vocab, scale, max_output_norm) = (&lds.lexicon().vocab, init.scale, init.max_norm);
    Ok(FirstWeights { vocab, dim, recurrent, input, output, bias, scale, max_output_norm })
}
