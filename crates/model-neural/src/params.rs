use latens_model::{ParamError, Params, check_range, check_that};
use latens_nn::Squash;
use serde::{Deserialize, Serialize};

/// What the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// A feed-forward network of the last words (Bengio et al. 2003).
    Ff,
    /// A simple recurrent network (Elman 1990; Mikolov et al. 2010).
    Rnn,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
}

impl Architecture {
    /// What the command line and the model file call it.
    pub fn kind(self) -> &'static str {
        match self {
            Architecture::Ff => "ff",
            Architecture::Rnn => "rnn",
            Architecture::Lstm => "lstm",
        }
    }
}

/// Whether a word has one vector for both of its uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// One, whether it is read or foretold (Press and Wolf 2017; Inan et al. 2017).
    Shared,
    /// One for each.
    Separate,
}

/// What the end of a sentence does to what was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Nothing: text is one long sequence, in which the end of a sentence is a word like any other.
    Carry,
    /// All is forgotten: every sentence begins like the first one.
    Reset,
}

/// How weights follow the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Adam with decoupled weight decay.
    AdamW,
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// It does not.
    Constant,
    /// Along half a cosine to zero, over all epochs.
    Cosine,
    /// By a factor of four after each epoch that did not improve the model on held-out text.
    Plateau,
    /// By half every epoch, from the first one on that improved the model on held-out text by less than 0.3%; the
    /// second such epoch is the last (Mikolov et al. 2010). An epoch that made it worse is taken back.
    Halving,
}

/// Parameters of a neural language model. There are defaults for each architecture: [`NeuralParams::ff`],
/// [`NeuralParams::rnn`], [`NeuralParams::lstm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NeuralParams {
    /// What the network is.
    pub architecture: Architecture,
    /// A feed-forward network reads this many words less one; for others it says nothing.
    pub order: usize,
    /// How many numbers a word's vector has, and how many units a layer.
    pub dim: usize,
    /// How many layers there are between the words that are read and the one that is foretold.
    pub n_layers: usize,
    /// What the units of a simple recurrent network compute; for others it says nothing.
    pub squash: Squash,
    /// Whether a word has one vector for both of its uses.
    pub tying: Tying,
    /// What the end of a sentence does.
    pub memory: Memory,
    /// The share of numbers that is left out after the vectors of words and after each layer, while learning.
    pub dropout: f64,
    /// First vectors of words are drawn evenly between minus this and this.
    pub init_range: f64,
    /// How often the text is gone through at most.
    pub epochs: usize,
    /// A recurrent network reads the text at so many places at once; a feed-forward network so many words.
    pub batch_size: usize,
    /// After so many words a recurrent network learns: it does not look further back for causes.
    pub bptt: usize,
    /// How weights follow the gradient.
    pub optimizer: Optimizer,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// How far the first steps go.
    pub learning_rate: f64,
    /// How strongly weights are pulled to zero (AdamW).
    pub weight_decay: f64,
    /// The largest norm of a gradient; longer ones are cut to it.
    pub clip: f64,
    /// Where all random choices come from.
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
    /// A feed-forward 4-gram model with two layers.
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

    /// A simple recurrent network of 300 units.
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
            // Plain descent is bound to tiny steps by the frequent words as soon as hidden units saturate.
            optimizer: Optimizer::AdamW,
            schedule: Schedule::Halving,
            learning_rate: 5e-4,
            weight_decay: 0.0,
            clip: 1.0,
            ..NeuralParams::ff()
        }
    }

    /// Two layers of long short-term memory.
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

    /// How many words are read to foretell the next one.
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
    fn the_defaults_are_sound() {
        for params in [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()] {
            assert_eq!(params.check(), Ok(()), "{params:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let two = NeuralParams { n_layers: 2, ..NeuralParams::rnn() }.check().unwrap_err();
        assert_eq!(two.to_string(), "`n_layers` must be 1 for a simple recurrent network, got 2");
        let decay = NeuralParams { weight_decay: 0.1, ..NeuralParams::lstm() }.check().unwrap_err();
        assert_eq!(decay.to_string(), "`weight_decay` must be 0 for `sgd`, got 0.1");
    }
}
