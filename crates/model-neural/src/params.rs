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
    /// Activation function of a simple recurrent network. Ignored by other architectures.
    pub squash: Squash,
    /// Whether input and output embeddings are shared.
    pub tying: Tying,
    /// Whether the hidden state is kept or reset at the end of a sentence.
    pub memory: Memory,
    /// Dropout rate after the embeddings and after each hidden layer.
    pub dropout: f64,
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
    /// Maximum norm of the gradient; larger gradients are scaled down to it.
    pub clip: f64,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(NeuralParams {
    architecture: Architecture,
    order: usize,
    dim: usize,
    n_layers: usize,
    squash: Squash,
    tying: Tying,
    memory: Memory,
    dropout: f64,
    init_range: f64,
    epochs: usize,
    batch_size: usize,
    bptt: usize,
    optimizer: Optimizer,
    schedule: Schedule,
    learning_rate: f64,
    weight_decay: f64,
    clip: f64,
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
            squash: Squash::Tanh,
            tying: Tying::Shared,
            memory: Memory::Carry,
            dropout: 0.3,
            init_range: 0.1,
            epochs: 30,
            batch_size: 512,
            bptt: 1,
            optimizer: Optimizer::AdamW,
            schedule: Schedule::Cosine,
            learning_rate: 1e-3,
            weight_decay: 0.01,
            clip: 1.0,
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
        check_range("dropout", self.dropout, 0.0..1.0)?;
        check_range("init_range", self.init_range, 0.0..)?;
        check_range("epochs", self.epochs, 0..=1_000_000)?;
        check_range("batch_size", self.batch_size, 1..=1 << 20)?;
        check_range("bptt", self.bptt, 1..=1 << 16)?;
        check_range("learning_rate", self.learning_rate, f64::MIN_POSITIVE..)?;
        check_range("weight_decay", self.weight_decay, 0.0..)?;
        check_range("clip", self.clip, f64::MIN_POSITIVE..)?;
        let has_one_layer = self.architecture != Architecture::Rnn || self.n_layers == 1;
        check_that(has_one_layer, "n_layers", "1 for a simple recurrent network", self.n_layers)?;
        let can_decay = self.optimizer == Optimizer::AdamW || self.weight_decay == 0.0;
        check_that(can_decay, "weight_decay", "0 for `sgd`", self.weight_decay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        for params in [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()] {
            assert_eq!(params.check(), Ok(()), "{params:?}");
        }
    }

    #[test]
    fn incompatible_parameters_are_rejected() {
        let two = NeuralParams { n_layers: 2, ..NeuralParams::rnn() }.check().unwrap_err();
        assert_eq!(two.to_string(), "`n_layers` must be 1 for a simple recurrent network, got 2");
        let decay = NeuralParams { weight_decay: 0.1, ..NeuralParams::lstm() }.check().unwrap_err();
        assert_eq!(decay.to_string(), "`weight_decay` must be 0 for `sgd`, got 0.1");
    }
}
