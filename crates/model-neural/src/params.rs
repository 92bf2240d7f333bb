use latens_model::{ParamError, Params, check_range, check_that};
use latens_nn::Squash;
use serde::{Deserialize, Serialize};

/// The network architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// A feed-forward n-gram network (Bengio et al. 2003).
    Ff,
    /// A simple recurrent network (Elman 1990; Mikolov et al. 2010).
    Rnn,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
}

impl Architecture {
    /// The name on the command line and in model files.
    pub fn kind(self) -> &'static str {
        match self {
            Architecture::Ff => "ff",
            Architecture::Rnn => "rnn",
            Architecture::Lstm => "lstm",
        }
    }
}

/// Whether input and output embeddings are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// One embedding matrix for input and output (Press and Wolf 2017; Inan et al. 2017).
    Shared,
    /// Separate input and output embeddings.
    Separate,
}

/// How the end of a sentence affects the hidden state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Keep the state: text is one sequence, in which the end of a sentence is a regular token.
    Carry,
    /// Reset the state at the end of each sentence.
    Reset,
}

/// How long a dropout mask holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mask {
    /// A new mask for every token (Zaremba et al. 2014).
    Token,
    /// One mask for all steps of a sequence: variational dropout (Gal and Ghahramani 2016).
    Sequence,
}

/// The optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Adam with decoupled weight decay.
    AdamW,
}

/// The learning rate schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// A constant learning rate.
    Constant,
    /// Cosine decay to zero over all epochs.
    Cosine,
    /// Constant for the first 40% of all epochs, then linear decay to zero.
    Linear,
    /// Division by four after each epoch without improvement on the validation text.
    Plateau,
    /// Halving after every epoch, starting with the first that improves the model on the validation text by less than
    /// 0.3%. Training stops after the second such epoch (Mikolov et al. 2010). An epoch that makes the model worse is
    /// reverted.
    Halving,
}

/// Parameters of a neural language model.
///
/// Each architecture has its own defaults: [`NeuralParams::ff`], [`NeuralParams::rnn`], [`NeuralParams::lstm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NeuralParams {
    /// Network architecture.
    pub architecture: Architecture,
    /// Order n of a feed-forward n-gram network, which reads n − 1 words. Ignored by other architectures.
    pub order: usize,
    /// Dimension of the embeddings and hidden layers.
    pub dim: usize,
    /// Number of hidden layers.
    pub n_layers: usize,
    /// Number of units of each LSTM layer except the last, which has `dim`; 0 means `dim`.
    pub hidden_dim: usize,
    /// Activation function of a simple recurrent network. Ignored by other architectures.
    pub squash: Squash,
    /// Whether input and output embeddings are shared.
    pub tying: Tying,
    /// Whether the hidden state is kept or reset at the end of a sentence.
    pub memory: Memory,
    /// Dropout rate after the last hidden layer. Unless the next two are set, also after the embeddings and after each
    /// hidden layer.
    pub dropout: f64,
    /// Dropout rate after the embeddings, if it differs from `dropout`.
    pub input_dropout: Option<f64>,
    /// Dropout rate between LSTM layers, if it differs from `dropout`.
    pub layer_dropout: Option<f64>,
    /// Dropout rate of whole words of the input: all occurrences of a word in a mini-batch.
    pub word_dropout: f64,
    /// Dropout rate of the recurrent weights of LSTM layers (Merity et al. 2018).
    pub weight_dropout: f64,
    /// How long the dropout masks of units hold.
    pub mask: Mask,
    /// Penalty on the mean square of the output of the last layer (activation regularization, Merity et al. 2018).
    pub activation_penalty: f64,
    /// Initial bias of the forget gates of an LSTM. With 1 it remembers from the start; with 0 a large regularized network
    /// learns faster.
    pub forget_bias: f64,
    /// Initial embeddings are uniform in [−`init_range`, `init_range`].
    pub init_range: f64,
    /// Maximum number of passes over the training text.
    pub epochs: usize,
    /// Number of parallel streams of a recurrent network; number of words per mini-batch of a feed-forward network.
    pub batch_size: usize,
    /// Number of time steps of truncated backpropagation through time.
    pub bptt: usize,
    /// Optimizer.
    pub optimizer: Optimizer,
    /// Learning rate schedule.
    pub schedule: Schedule,
    /// Initial learning rate.
    pub learning_rate: f64,
    /// Decoupled weight decay (AdamW only).
    pub weight_decay: f64,
    /// Decay rate β₂ of the average of squared gradients (AdamW only).
    pub beta2: f64,
    /// Maximum norm of the gradient; larger gradients are scaled down to it.
    pub clip: f64,
    /// Rate of the running average of the weights, which is scored and saved instead of the last weights; 0 disables
    /// it.
    pub average: f64,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(NeuralParams {
    architecture: Architecture,
    order: usize,
    dim: usize,
    n_layers: usize,
    hidden_dim: usize,
    squash: Squash,
    tying: Tying,
    memory: Memory,
    dropout: f64,
    input_dropout: Option<f64>,
    layer_dropout: Option<f64>,
    word_dropout: f64,
    weight_dropout: f64,
    mask: Mask,
    activation_penalty: f64,
    forget_bias: f64,
    init_range: f64,
    epochs: usize,
    batch_size: usize,
    bptt: usize,
    optimizer: Optimizer,
    schedule: Schedule,
    learning_rate: f64,
    weight_decay: f64,
    beta2: f64,
    clip: f64,
    average: f64,
    seed: u64,
});

impl NeuralParams {
    /// Defaults for a feed-forward 4-gram model with two hidden layers.
    pub fn ff() -> NeuralParams {
        NeuralParams {
            architecture: Architecture::Ff,
            order: 4,
            dim: 256,
            n_layers: 2,
            hidden_dim: 0,
            squash: Squash::Tanh,
            tying: Tying::Shared,
            memory: Memory::Carry,
            dropout: 0.3,
            input_dropout: None,
            layer_dropout: None,
            word_dropout: 0.0,
            weight_dropout: 0.0,
            mask: Mask::Token,
            activation_penalty: 0.0,
            forget_bias: 1.0,
            init_range: 0.1,
            epochs: 30,
            batch_size: 512,
            bptt: 1,
            optimizer: Optimizer::AdamW,
            schedule: Schedule::Cosine,
            learning_rate: 1e-3,
            weight_decay: 0.01,
            beta2: 0.999,
            clip: 1.0,
            average: 0.0,
            seed: 1,
        }
    }

    /// Defaults for a simple recurrent network with 300 units.
    pub fn rnn() -> NeuralParams {
        NeuralParams {
            architecture: Architecture::Rnn,
            dim: 300,
            n_layers: 1,
            tying: Tying::Separate,
            dropout: 0.2,
            epochs: 30,
            batch_size: 20,
            bptt: 20,
            // With plain SGD, frequent words force tiny steps as soon as hidden units saturate.
            optimizer: Optimizer::AdamW,
            schedule: Schedule::Halving,
            learning_rate: 5e-4,
            weight_decay: 0.0,
            clip: 1.0,
            ..NeuralParams::ff()
        }
    }

    /// Defaults for an LSTM with two layers.
    pub fn lstm() -> NeuralParams {
        NeuralParams {
            architecture: Architecture::Lstm,
            n_layers: 2,
            tying: Tying::Shared,
            dropout: 0.3,
            epochs: 45,
            batch_size: 20,
            bptt: 35,
            optimizer: Optimizer::Sgd,
            schedule: Schedule::Plateau,
            learning_rate: 20.0,
            weight_decay: 0.0,
            clip: 0.25,
            ..NeuralParams::ff()
        }
    }

    /// The recipe of Merity et al. (2018) for small corpora such as the Penn Treebank, with AdamW: an LSTM with three
    /// layers of 1,150 units whose word vectors, layers, words and recurrent weights are dropped, and a running average
    /// of its weights.
    pub fn regularized_lstm() -> NeuralParams {
        NeuralParams {
            dim: 400,
            hidden_dim: 1150,
            n_layers: 3,
            dropout: 0.4,
            input_dropout: Some(0.4),
            layer_dropout: Some(0.25),
            word_dropout: 0.1,
            weight_dropout: 0.5,
            mask: Mask::Sequence,
            activation_penalty: 1.0,
            forget_bias: 0.0,
            epochs: 40,
            batch_size: 40,
            bptt: 70,
            optimizer: Optimizer::AdamW,
            schedule: Schedule::Linear,
            learning_rate: 2e-3,
            weight_decay: 6e-5,
            beta2: 0.99,
            clip: 0.25,
            average: 0.002,
            ..NeuralParams::lstm()
        }
    }

    /// Number of units of each hidden layer.
    pub(crate) fn layer_dims(&self) -> Vec<usize> {
        let inner = if self.hidden_dim == 0 { self.dim } else { self.hidden_dim };
        let mut dims = vec![inner; self.n_layers];
        dims[self.n_layers - 1] = self.dim;
        dims
    }

    /// Number of input words per prediction.
    pub(crate) fn n_context(&self) -> usize {
        if self.architecture == Architecture::Ff { self.order - 1 } else { 1 }
    }
}

impl Default for NeuralParams {
    fn default() -> NeuralParams {
        NeuralParams::lstm()
    }
}

impl Params for NeuralParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("order", self.order, 2..=100)?;
        check_range("dim", self.dim, 1..=1 << 14)?;
        check_range("n_layers", self.n_layers, 1..=100)?;
        check_range("hidden_dim", self.hidden_dim, 0..=1 << 14)?;
        for (name, rate) in [
            ("dropout", self.dropout),
            ("input_dropout", self.input_dropout.unwrap_or(0.0)),
            ("layer_dropout", self.layer_dropout.unwrap_or(0.0)),
            ("word_dropout", self.word_dropout),
            ("weight_dropout", self.weight_dropout),
        ] {
            check_range(name, rate, 0.0..1.0)?;
        }
        check_range("activation_penalty", self.activation_penalty, 0.0..=1e6)?;
        check_range("average", self.average, 0.0..=1.0)?;
        check_range("forget_bias", self.forget_bias, -100.0..=100.0)?;
        check_range("init_range", self.init_range, 0.0..)?;
        check_range("epochs", self.epochs, 0..=1_000_000)?;
        check_range("batch_size", self.batch_size, 1..=1 << 20)?;
        check_range("bptt", self.bptt, 1..=1 << 16)?;
        check_range("learning_rate", self.learning_rate, f64::MIN_POSITIVE..)?;
        check_range("weight_decay", self.weight_decay, 0.0..)?;
        check_range("beta2", self.beta2, 0.0..1.0)?;
        check_range("clip", self.clip, f64::MIN_POSITIVE..)?;
        let has_one_layer = self.architecture != Architecture::Rnn || self.n_layers == 1;
        check_that(has_one_layer, "n_layers", "1 for a simple recurrent network", self.n_layers)?;
        if self.architecture != Architecture::Lstm {
            let must = "unset except for an LSTM";
            check_that(self.hidden_dim == 0, "hidden_dim", must, self.hidden_dim)?;
            check_that(self.weight_dropout == 0.0, "weight_dropout", must, self.weight_dropout)?;
            let one_rate = self.input_dropout.is_none() && self.layer_dropout.is_none();
            check_that(one_rate, "input_dropout", must, "a rate of its own")?;
            check_that(self.word_dropout == 0.0, "word_dropout", must, self.word_dropout)?;
            check_that(self.mask == Mask::Token, "mask", must, "sequence")?;
            let penalty = self.activation_penalty;
            check_that(penalty == 0.0, "activation_penalty", must, penalty)?;
        }
        // A schedule that restores earlier weights would need an average of its own for them.
        let can_average = self.schedule != Schedule::Halving || self.average == 0.0;
        check_that(can_average, "average", "0 with the schedule `halving`", self.average)?;
        let can_decay = self.optimizer == Optimizer::AdamW || self.weight_decay == 0.0;
        check_that(can_decay, "weight_decay", "0 for `sgd`", self.weight_decay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        let networks = [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()];
        for params in networks.into_iter().chain([NeuralParams::regularized_lstm()]) {
            assert_eq!(params.check(), Ok(()), "{params:?}");
        }
    }

    #[test]
    fn incompatible_parameters_are_rejected() {
        let two = NeuralParams { n_layers: 2, ..NeuralParams::rnn() }.check().unwrap_err();
        assert_eq!(two.to_string(), "`n_layers` must be 1 for a simple recurrent network, got 2");
        let decay = NeuralParams { weight_decay: 0.1, ..NeuralParams::lstm() }.check().unwrap_err();
        assert_eq!(decay.to_string(), "`weight_decay` must be 0 for `sgd`, got 0.1");
        let wide = NeuralParams { hidden_dim: 8, ..NeuralParams::ff() }.check().unwrap_err();
        assert_eq!(wide.to_string(), "`hidden_dim` must be unset except for an LSTM, got 8");
        let average = NeuralParams { average: 0.1, ..NeuralParams::rnn() }.check().unwrap_err();
        assert_eq!(average.to_string(), "`average` must be 0 with the schedule `halving`, got 0.1");
    }
}
