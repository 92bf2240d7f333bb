//! The parameters of a hidden Markov model.

use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// The constraint on the states that may emit a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constraint {
    /// The states of the word's Brown cluster.
    Brown,
    /// A random subset of the states per word, as large as a cluster.
    Uniform,
    /// All states.
    None,
}

/// How probabilities are parameterized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parameterization {
    /// One parameter per probability.
    Scalar,
    /// Neural networks over state embeddings.
    Neural,
    /// Neural networks over state embeddings that are composed of a cluster embedding and a state embedding.
    Factored,
}

/// The learning algorithm of scalar parameters; networks are always trained by gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Learning {
    /// Expectation maximization in closed form (Baum–Welch).
    Em,
    /// Gradient descent on mini-batches (AdamW).
    Gradient,
}

/// Whether the uses of a state share an embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// One embedding for starts, for transitions from and to the state, and for emissions.
    Shared,
    /// One embedding for each of these uses.
    Separate,
}

/// How word vectors are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordEmbedding {
    /// One embedding per word.
    Words,
    /// A convolutional network over the characters of the word.
    Chars,
}

/// Whether the state distribution is carried over sentence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Text is one long sequence, in which the end of a sentence is a word like any other.
    Carry,
    /// Sentences are independent.
    Reset,
}

/// The learning rate schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Constant.
    Constant,
    /// Cosine decay to zero over all epochs.
    Cosine,
    /// Divided by four after each epoch that does not improve the model on the validation set.
    Plateau,
}

/// Parameters of a hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HmmParams {
    /// Number of hidden states.
    pub n_states: usize,
    /// Number of word clusters, which divide the states equally.
    pub n_clusters: usize,
    /// Constraint on the states that may emit a word.
    pub constraint: Constraint,
    /// Parameterization of the probabilities.
    pub parameterization: Parameterization,
    /// Learning algorithm of scalar parameters.
    pub learning: Learning,
    /// Dimension of the embeddings.
    pub dim: usize,
    /// Standard deviation of the initial embeddings. With 1, as in the authors' implementation, the initial
    /// transitions are almost deterministic (logits have a standard deviation of √dim), and models with few states
    /// never recover.
    pub init_deviation: f64,
    /// Whether the uses of a state share an embedding.
    pub tying: Tying,
    /// Source of the word vectors.
    pub word_vectors: WordEmbedding,
    /// Whether the state distribution is carried over sentence ends.
    pub memory: Memory,
    /// Approximate number of tokens per training sequence of running text, for [`Memory::Carry`].
    pub run_tokens: usize,
    /// State dropout rate: fraction of states dropped in each mini-batch. `None` chooses it by the number of states and
    /// the size of the text; see [`HmmParams::state_dropout_of`].
    pub state_dropout: Option<f64>,
    /// Dropout rate of the hidden units of the networks.
    pub dropout: f64,
    /// Number of passes over the training text.
    pub epochs: usize,
    /// Approximate number of tokens per mini-batch; 0 chooses 1/400 of the text, between 256 and 2,048.
    pub batch_tokens: usize,
    /// Initial learning rate.
    pub learning_rate: f64,
    /// Learning rate schedule.
    pub schedule: Schedule,
    /// Weight decay.
    pub weight_decay: f64,
    /// Maximum norm of the gradient; larger gradients are clipped.
    pub clip: f64,
    /// Pseudo-count that Baum–Welch adds to the expected count of every allowed event.
    pub prior: f64,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(HmmParams {
    n_states: usize,
    n_clusters: usize,
    constraint: Constraint,
    parameterization: Parameterization,
    learning: Learning,
    dim: usize,
    init_deviation: f64,
    tying: Tying,
    word_vectors: WordEmbedding,
    memory: Memory,
    run_tokens: usize,
    dropout: f64,
    epochs: usize,
    batch_tokens: usize,
    learning_rate: f64,
    schedule: Schedule,
    weight_decay: f64,
    clip: f64,
    prior: f64,
    seed: u64;
    optional state_dropout: f64,
});

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
            word_vectors: WordEmbedding::Words,
            memory: Memory::Reset,
            run_tokens: 128,
            state_dropout: None,
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
        // The scalar transitions of 2^17 states take 64 GiB.
        check_range("n_states", self.n_states, 1..=1 << 17)?;
        check_range("n_clusters", self.n_clusters, 1..=1 << 15)?;
        check_range("dim", self.dim, 2..=1 << 14)?;
        check_range("batch_tokens", self.batch_tokens, 0..=1 << 24)?;
        check_range("run_tokens", self.run_tokens, 1..=1 << 24)?;
        check_range("epochs", self.epochs, 0..=1_000_000)?;
        let state_dropout = self.state_dropout.unwrap_or(0.0);
        check_range("state_dropout", state_dropout, 0.0..1.0)?;
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
        let chars = self.word_vectors == WordEmbedding::Chars;
        check_that(
            !(is_scalar && chars),
            "word_vectors",
            "`words` for the scalar parameterization",
            "chars",
        )?;
        check_that(
            !(self.by_em() && state_dropout > 0.0),
            "state_dropout",
            "0 for Baum–Welch (state dropout needs `learning` = gradient)",
            state_dropout,
        )
    }
}

impl HmmParams {
    /// Whether only some of the states may emit each word.
    pub fn has_clusters(&self) -> bool {
        self.constraint != Constraint::None
    }

    /// Number of states that may emit each word.
    pub fn states_per_word(&self) -> usize {
        if self.has_clusters() { self.n_states / self.n_clusters } else { self.n_states }
    }

    /// Approximate number of tokens per mini-batch, for a text of `n_tokens` tokens.
    pub(crate) fn batch_tokens_of(&self, n_tokens: usize) -> usize {
        /// Steps per epoch: a compromise between small and large texts.
        const N_STEPS: usize = 400;
        match self.batch_tokens {
            0 => (n_tokens / N_STEPS).clamp(256, 2048),
            n => n,
        }
    }

    /// The state dropout rate for a text of `n_tokens` tokens: the given one, or else one that grows with the number of
    /// states and falls with the size of the text.
    ///
    /// The rule fits the best rates of 1,024 to 65,536 states on the Penn Treebank: 0.1 for 4,096 states, and 0.11 more for
    /// every doubling. It leaves at least eight states to every word.
    pub fn state_dropout_of(&self, n_tokens: usize) -> f64 {
        const PENN_TREEBANK: f64 = 929_589.0;
        if let Some(rate) = self.state_dropout {
            return rate;
        }
        let k = self.states_per_word() as f64;
        if self.by_em() || k <= 8.0 {
            return 0.0;
        }
        let relative = self.n_states as f64 / 4096.0 * PENN_TREEBANK / n_tokens.max(1) as f64;
        let rate = (0.1 + 0.11 * relative.log2()).clamp(0.1, 0.7);
        let mut kept = (k * (1.0 - rate)).round();
        // A GPU is fastest with a multiple of eight. Fewer states do not leave the choice.
        if k >= 64.0 {
            kept = (kept / 8.0).round() * 8.0;
        }
        1.0 - kept.max(8.0) / k
    }

    /// These parameters with the state dropout rate for a text of `n_tokens` tokens.
    pub(crate) fn for_text(&self, n_tokens: usize) -> HmmParams {
        self.clone().state_dropout(self.state_dropout_of(n_tokens))
    }

    /// Whether the model is trained by Baum–Welch.
    pub fn by_em(&self) -> bool {
        self.parameterization == Parameterization::Scalar && self.learning == Learning::Em
    }

    fn is_factored(&self) -> bool {
        self.parameterization == Parameterization::Factored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best rates that were measured are those of `docs/results/hmm.md`.
    #[test]
    fn the_state_dropout_rate_is_close_to_the_best_one_measured() {
        const PENN_TREEBANK: usize = 929_589;
        const WIKITEXT_2: usize = 2_088_628;
        for (n_states, n_clusters, n_tokens, best) in [
            (1024, 4, PENN_TREEBANK, 0.0..0.2),
            (2048, 128, PENN_TREEBANK, 0.0..0.2),
            (4096, 128, PENN_TREEBANK, 0.0..0.2),
            (8192, 64, PENN_TREEBANK, 0.1..0.3),
            (8192, 128, PENN_TREEBANK, 0.1..0.3),
            (16_384, 128, PENN_TREEBANK, 0.25..0.4),
            (32_768, 128, PENN_TREEBANK, 0.375..0.5),
            (65_536, 128, PENN_TREEBANK, 0.5..0.625),
            (8192, 128, WIKITEXT_2, 0.0..0.2),
            (256, 16, 31_500, 0.1..0.3),
        ] {
            let params = HmmParams::default().n_states(n_states).n_clusters(n_clusters);
            let rate = params.state_dropout_of(n_tokens);
            assert!(best.contains(&rate), "{rate} for {n_states} states, {n_tokens} tokens");
            let kept = (1.0 - rate) * params.states_per_word() as f64;
            assert!((kept - kept.round()).abs() < 1e-9, "{kept} states");
        }
    }

    #[test]
    fn a_given_rate_is_kept_and_small_models_keep_their_states() {
        let params = HmmParams::default().n_states(64).n_clusters(1);
        assert_eq!(params.clone().state_dropout(0.9).state_dropout_of(100), 0.9);
        // A long way from any measurement: about 0.7, with 16 of 64 states.
        assert_eq!(params.state_dropout_of(1), 0.75);
        assert_eq!(params.clone().n_clusters(8).state_dropout_of(1), 0.0);
        assert!(params.clone().n_clusters(4).state_dropout_of(1) <= 0.5);
        let em = params.parameterization(Parameterization::Scalar);
        assert_eq!(em.state_dropout_of(100), 0.0);
    }
}
