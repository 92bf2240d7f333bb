use super::training::{HeldOut, TrainingArgs};
use crate::args::Common;
use crate::choice::choice;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::check_input;
use anyhow::Result;
use clap::Args;
use latens::lds::{HiddenState, Lds};
use latens::model::{Device, Model, Params, check_range};
use latens::neural::{self, FirstWeights, NeuralInputs, NeuralParams};
use serde_json::{Map, json};
use std::path::{Path, PathBuf};

/// Declares the flags of a network: those of all networks, with its own defaults, and `$fields`.
macro_rules! network_args {
    ($(#[$about:meta])* $name:ident, $defaults:expr, { $($fields:tt)* }) => {
        $(#[$about])*
        #[derive(Args)]
        pub(crate) struct $name {
            #[command(flatten)]
            training: TrainingArgs,
            $($fields)*
            /// Dimension of word vectors and hidden layers
            #[arg(long, value_name = "N", default_value_t = $defaults.dim)]
            dim: usize,
            /// Sharing of input and output word vectors
            #[arg(long, value_enum, default_value_t = $defaults.tying.into())]
            tying: Tying,
            /// Treatment of sentence boundaries
            #[arg(long, value_enum, default_value_t = $defaults.memory.into())]
            memory: Memory,
            /// Dropout rate after word vectors and after each layer, 0 to 1
            #[arg(long, value_name = "P", default_value_t = $defaults.dropout)]
            dropout: f64,
            /// Range of the initial word vectors, which are drawn uniformly from -R to R
            #[arg(long, value_name = "R", default_value_t = $defaults.init_range)]
            init_range: f64,
            /// Maximum number of passes over the training text
            #[arg(long, value_name = "N", default_value_t = $defaults.epochs)]
            epochs: usize,
            /// Batch size: number of parallel text streams (`rnn`, `lstm`) or of words (`ff`)
            #[arg(long, value_name = "N", default_value_t = $defaults.batch_size)]
            batch_size: usize,
            /// Optimizer
            #[arg(long, value_enum, default_value_t = $defaults.optimizer.into())]
            optimizer: Optimizer,
            /// Learning rate schedule
            #[arg(long, value_enum, default_value_t = $defaults.schedule.into())]
            schedule: Schedule,
            /// Initial learning rate
            #[arg(long, value_name = "R", default_value_t = $defaults.learning_rate)]
            learning_rate: f64,
            /// Weight decay (`adamw` only)
            #[arg(long, value_name = "W", default_value_t = $defaults.weight_decay)]
            weight_decay: f64,
            /// Decay rate of the average of squared gradients (`adamw` only)
            #[arg(long, value_name = "R", default_value_t = $defaults.beta2)]
            beta2: f64,
            /// Maximum norm of the gradient; larger gradients are clipped
            #[arg(long, value_name = "N", default_value_t = $defaults.clip)]
            clip: f64,
            /// Rate of the running average of the weights, which is saved instead of the last weights; 0 disables it
            #[arg(long, value_name = "R", default_value_t = $defaults.average)]
            average: f64,
            /// Device to train on: `cpu` or `cuda`
            #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
            device: Device,
        }

        impl $name {
            /// Parameters of all networks.
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
                    .beta2(self.beta2)
                    .clip(self.clip)
                    .average(self.average)
                    .seed(seed)
            }
        }
    };
}

network_args! {
    /// Train a feed-forward neural language model
    ///
    /// Reads text and writes a network that predicts each word from the vectors of the preceding words. With a
    /// validation set (`--valid`), the model of the best epoch is kept.
    FfArgs, NeuralParams::ff(), {
        /// Order of the model: the network reads the N - 1 preceding words
        #[arg(long, value_name = "N", default_value_t = NeuralParams::ff().order)]
        order: usize,
        /// Number of layers
        #[arg(long, value_name = "N", default_value_t = NeuralParams::ff().n_layers)]
        n_layers: usize,
    }
}

network_args! {
    /// Train a simple recurrent neural language model
    ///
    /// Reads text and writes a network that predicts each word from a recurrent hidden state. It can be initialized from
    /// a linear dynamical system (`--init`). With a validation set (`--valid`), the model of the best epoch is kept, and
    /// the learning rate is reduced when validation perplexity no longer improves.
    RnnArgs, NeuralParams::rnn(), {
        /// Activation function of the hidden units
        #[arg(long, value_enum, default_value_t = NeuralParams::rnn().squash.into())]
        squash: Squash,
        /// Number of time steps of truncated backpropagation through time
        #[arg(long, value_name = "N", default_value_t = NeuralParams::rnn().bptt)]
        bptt: usize,
        /// Linear dynamical system to initialize from (`latens train lds`), with the same vocabulary and `--dim`
        #[arg(long, value_name = "LDS")]
        init: Option<PathBuf>,
        /// State of the linear dynamical system that initializes the hidden state
        #[arg(long, value_enum, default_value_t = InitState::Predicted)]
        init_state: InitState,
        /// Scale of the initial hidden states relative to the linear dynamical system; small values keep hidden units
        /// in their linear range
        #[arg(long, value_name = "S", default_value_t = 0.5)]
        init_scale: f64,
        /// Maximum norm of the initial output vectors; longer ones saturate the softmax
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        init_max_norm: f64,
    }
}

network_args! {
    /// Train an LSTM language model
    ///
    /// Reads text and writes a network of long short-term memory cells that predicts each word from the preceding ones.
    /// With a validation set (`--valid`), the model of the best epoch is kept, and the learning rate is reduced when
    /// validation perplexity no longer improves.
    LstmArgs, NeuralParams::lstm(), {
        /// Number of layers
        #[arg(long, value_name = "N", default_value_t = NeuralParams::lstm().n_layers)]
        n_layers: usize,
        /// Number of time steps of truncated backpropagation through time
        #[arg(long, value_name = "N", default_value_t = NeuralParams::lstm().bptt)]
        bptt: usize,
        /// Number of units of each layer except the last [default: `--dim`]
        #[arg(long, value_name = "N")]
        hidden_dim: Option<usize>,
        /// Dropout rate of word vectors, 0 to 1 [default: `--dropout`]
        #[arg(long, value_name = "P")]
        input_dropout: Option<f64>,
        /// Dropout rate between layers, 0 to 1 [default: `--dropout`]
        #[arg(long, value_name = "P")]
        layer_dropout: Option<f64>,
        /// Rate at which all occurrences of a word in a mini-batch are dropped, 0 to 1
        #[arg(long, value_name = "P", default_value_t = NeuralParams::lstm().word_dropout)]
        word_dropout: f64,
        /// Dropout rate of the recurrent weights, 0 to 1
        #[arg(long, value_name = "P", default_value_t = NeuralParams::lstm().weight_dropout)]
        weight_dropout: f64,
        /// Scope of a dropout mask
        #[arg(long, value_enum, default_value_t = NeuralParams::lstm().mask.into())]
        mask: Mask,
        /// Initial bias of the forget gates; 0 suits large networks with dropout
        #[arg(
            long,
            value_name = "B",
            allow_negative_numbers = true,
            default_value_t = NeuralParams::lstm().forget_bias
        )]
        forget_bias: f64,
        /// Penalty on the mean square of the outputs of the last layer
        #[arg(long, value_name = "W", default_value_t = NeuralParams::lstm().activation_penalty)]
        activation_penalty: f64,
    }
}

choice!(Tying for neural::Tying {
    Shared "Same vectors for input and output",
    Separate "Separate vectors for input and output",
});
choice!(Memory for neural::Memory {
    Carry "Carry the state over: the text is one long sequence",
    Reset "Reset the state: sentences are independent"
});
choice!(Mask for neural::Mask {
    Token "A new mask for every token",
    Sequence "One mask for all steps of a sequence (variational dropout)",
});
choice!(
    #[value(rename_all = "lowercase")]
    Optimizer for neural::Optimizer {
        Sgd "Stochastic gradient descent",
        AdamW "AdamW: Adam with decoupled weight decay",
    }
);
choice!(Schedule for neural::Schedule {
    Constant "Constant learning rate",
    Cosine "Cosine decay to zero over all epochs",
    Linear "Constant for 40 % of all epochs, then linear decay to zero",
    Plateau "Divide by four after each epoch without improvement on the validation set",
    Halving "Halve after each epoch once validation improves by less than 0.3 %; stop when that happens again"
});
choice!(Squash for neural::Squash { Tanh "Hyperbolic tangent", Sigmoid "Logistic function" });

choice!(InitState for HiddenState {
    Predicted "Predicted state of the next word",
    Filtered "Filtered state of the last word",
});

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
    let params = params
        .n_layers(args.n_layers)
        .bptt(args.bptt)
        .hidden_dim(args.hidden_dim.unwrap_or(0))
        .input_dropout(args.input_dropout)
        .layer_dropout(args.layer_dropout)
        .word_dropout(args.word_dropout)
        .weight_dropout(args.weight_dropout)
        .mask(args.mask.into())
        .activation_penalty(args.activation_penalty)
        .forget_bias(args.forget_bias);
    train(&args.training, params, args.device, None, output)
}

/// A model to initialize from.
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
    let Some(model) = training.fit(params, inputs, device, HeldOut::WhileTraining, output)? else {
        return Ok(());
    };
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
                "cannot initialize from `{}`: it is {}",
                init.path.display(),
                source.description()
            ),
            "`--init` needs a linear dynamical system, which `latens train lds` writes",
        ));
    };
    let latens::lds::RnnWeights { dim, recurrent, input, output, bias } =
        lds.rnn_weights(init.state.into());
    let (vocab, scale, max_output_norm) = (&lds.lexicon().vocab, init.scale, init.max_norm);
    Ok(FirstWeights { vocab, dim, recurrent, input, output, bias, scale, max_output_norm })
}
