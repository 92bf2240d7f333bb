use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// Which states may emit a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constraint {
    /// The states of the word's cluster.
    Brown,
    /// Some states that are drawn for the word, as many as a cluster would have.
    Uniform,
    /// All of them.
    None,
}

/// What the probabilities are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parameterization {
    /// Every probability is a number of its own.
    Scalar,
    /// Networks of state embeddings.
    Neural,
    /// Networks of state embeddings that are made of a cluster's and a state's own part.
    Factored,
}

/// How numbers of their own are learned; networks are always learned by gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Learning {
    /// Expectation maximisation in closed form (Baum–Welch).
    Em,
    /// Steps along the gradient of mini-batches (AdamW).
    Gradient,
}

/// Whether a state has one embedding for all its uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// One for start, transitions from and to it, and emissions.
    Shared,
    /// One for each of them.
    Separate,
}

/// What a word's vector is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordVectors {
    /// It is a row of numbers of its own.
    Words,
    /// A convolutional network reads it off the letters.
    Chars,
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
}

/// Parameters of a hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HmmParams {
    /// How many hidden states there are.
    pub n_states: usize,
    /// How many clusters of words share the states, an equal number each.
    pub n_clusters: usize,
    /// Which states may emit a word.
    pub constraint: Constraint,
    /// What the probabilities are made of.
    pub parameterization: Parameterization,
    /// How scalar probabilities are learned.
    pub learning: Learning,
    /// How many numbers an embedding has.
    pub dim: usize,
    /// The standard deviation of the first embeddings. With 1, as in the authors' program, the first
    /// transitions are almost certain (logits of deviation √dim), and models of few states never get
    /// away from them.
    pub init_deviation: f64,
    /// Whether a state has one embedding for all its uses.
    pub tying: Tying,
    /// What a word's vector is made of.
    pub word_vectors: WordVectors,
    /// What the end of a sentence does to what was read before.
    pub memory: Memory,
    /// About how many tokens of running text are learned from as one sequence, where the end of a sentence
    /// changes nothing.
    pub run_tokens: usize,
    /// The share of states that is left out of each mini-batch.
    pub state_dropout: f64,
    /// The share of hidden units of the networks that is left out of each mini-batch.
    pub dropout: f64,
    /// How often the text is gone through.
    pub epochs: usize,
    /// About how many tokens there are in a mini-batch; 0 for a 400th of the text, but from 256 to 2,048.
    pub batch_tokens: usize,
    /// How far the first steps go.
    pub learning_rate: f64,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// How strongly weights are pulled to zero.
    pub weight_decay: f64,
    /// The largest norm of a gradient; longer ones are cut to it.
    pub clip: f64,
    /// What Baum–Welch adds to the expected count of everything that is allowed.
    pub prior: f64,
    /// Where all random choices come from.
    pub seed: u64,
}

impl Default for HmmParams {
    fn default() -> Self {
        HmmParams {
            n_states: 1024,
            n_clusters: 32,
            constraint: Constraint::Brown,
            parameterization: Parameterization::Neural,
            learning: Learning::Em,
            dim: 256,
            init_deviation: 0.1,
            tying: Tying::Shared,
            word_vectors: WordVectors::Words,
            memory: Memory::Reset,
            run_tokens: 128,
            state_dropout: 0.0,
            dropout: 0.0,
            epochs: 20,
            batch_tokens: 0,
            learning_rate: 0.003,
            schedule: Schedule::Cosine,
            weight_decay: 0.0,
            clip: 5.0,
            prior: 0.01,
            seed: 1,
        }
    }
}

impl Params for HmmParams {
    fn check(&self) -> Result<(), ParamError> {
        // 2^17 states fill 64 GiB with transitions, where every one is a number.
        check_range("n_states", self.n_states, 1..=1 << 17)?;
        check_range("n_clusters", self.n_clusters, 1..=1 << 15)?;
        check_range("dim", self.dim, 2..=1 << 14)?;
        check_range("batch_tokens", self.batch_tokens, 0..=1 << 24)?;
        check_range("run_tokens", self.run_tokens, 1..=1 << 24)?;
        check_range("epochs", self.epochs, 0..=1_000_000)?;
        check_range("state_dropout", self.state_dropout, 0.0..1.0)?;
        check_range("dropout", self.dropout, 0.0..1.0)?;
        check_range("learning_rate", self.learning_rate, f64::MIN_POSITIVE..)?;
        check_range("init_deviation", self.init_deviation, f64::MIN_POSITIVE..)?;
        check_range("clip", self.clip, f64::MIN_POSITIVE..)?;
        check_range("weight_decay", self.weight_decay, 0.0..)?;
        check_range("prior", self.prior, 0.0..)?;
        let n_clusters = self.n_clusters;
        let divides = self.n_states.is_multiple_of(n_clusters) || !self.has_clusters();
        let must = format!("a multiple of `n_clusters` = {n_clusters}");
        check_that(divides, "n_states", must, self.n_states)?;
        let is_even = self.dim.is_multiple_of(2);
        check_that(
            is_even || !self.is_factored(),
            "dim",
            "even for factored embeddings",
            self.dim,
        )?;
        let is_scalar = self.parameterization == Parameterization::Scalar;
        let chars = self.word_vectors == WordVectors::Chars;
        check_that(
            !(is_scalar && chars),
            "word_vectors",
            "`words` for scalar probabilities, which have no networks",
            "chars",
        )?;
        check_that(
            !(self.by_em() && self.state_dropout > 0.0),
            "state_dropout",
            "0 for Baum–Welch, which has no mini-batches (`learning` = gradient has)",
            self.state_dropout,
        )
    }
}

impl HmmParams {
    /// Whether states belong to clusters of words.
    pub fn has_clusters(&self) -> bool {
        self.constraint != Constraint::None
    }

    /// How many states may emit a word.
    pub fn states_per_word(&self) -> usize {
        if self.has_clusters() { self.n_states / self.n_clusters } else { self.n_states }
    }

    /// How many tokens there are in a mini-batch of a text.
    pub(crate) fn batch_tokens_of(&self, n_tokens: usize) -> usize {
        /// Enough steps an epoch for small texts, and few enough for large ones.
        const N_STEPS: usize = 400;
        match self.batch_tokens {
            0 => (n_tokens / N_STEPS).clamp(256, 2048),
            n => n,
        }
    }

    /// Whether the model is learned in closed form.
    pub fn by_em(&self) -> bool {
        self.parameterization == Parameterization::Scalar && self.learning == Learning::Em
    }

    fn is_factored(&self) -> bool {
        self.parameterization == Parameterization::Factored
    }
}
