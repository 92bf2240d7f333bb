//! Parameters of a tagger.

use super::spans::Scheme;
use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// Parameters of a [`FeatureTagger`](crate::tagging::FeatureTagger).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TaggerParams {
    /// Whether tags are predicted jointly or one by one.
    pub kind: Kind,
    /// Training algorithm of a conditional random field.
    pub optimizer: Optimizer,
    /// Whether words and their letters are features. Ignored with hidden units, which never use lexical features.
    pub lexical: bool,
    /// Column of parts of speech to use as features, counted from 0.
    pub pos_column: Option<usize>,
    /// Scheme in which spans are modeled. The tagger always returns IOB2.
    pub spans: Scheme,
    /// Pairs of attribute and tag, and of tag and tag, that have a weight.
    pub pairs: Pairs,
    /// Minimum number of occurrences of a lexical attribute; rarer ones are dropped.
    pub min_count: u64,
    /// L2 regularization: c₂ of the term c₂ Σ θ² in the objective, whose first term is −Σ ln p.
    pub l2: f64,
    /// L1 regularization: c₁ of the term c₁ Σ |θ| in the objective. It sets weights to zero.
    pub l1: f64,
    /// Maximum number of L-BFGS iterations.
    pub n_iterations: usize,
    /// Number of passes of the perceptron over the training text.
    pub epochs: usize,
    /// Number of words on either side whose encoder features are used.
    pub window: usize,
    /// Standard deviation to which the features of a dense encoder are scaled.
    pub scale: f64,
    /// Number of hidden units of a local tagger; 0 for a linear one.
    pub n_hidden: usize,
    /// Words to which a local tagger always assigns their most frequent tag. Punctuation is always tagged so.
    pub direct_words: Vec<String>,
    /// Random seed.
    pub seed: u64,
}

/// Whether tags are predicted jointly or one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Jointly, by a linear-chain conditional random field.
    #[default]
    Crf,
    /// One by one, by a classifier of single words.
    Local,
}

/// Training algorithm of a conditional random field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Maximum likelihood by L-BFGS or, with `l1`, OWL-QN.
    #[default]
    Lbfgs,
    /// Averaged structured perceptron.
    Perceptron,
}

/// Pairs of attribute and tag, and of tag and tag, that have a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairs {
    /// Pairs that occur in the training text.
    #[default]
    Observed,
    /// All pairs.
    All,
}

latens_model::setters!(TaggerParams {
    kind: Kind,
    optimizer: Optimizer,
    lexical: bool,
    spans: Scheme,
    pairs: Pairs,
    min_count: u64,
    l2: f64,
    l1: f64,
    n_iterations: usize,
    epochs: usize,
    window: usize,
    scale: f64,
    n_hidden: usize,
    direct_words: Vec<String>,
    seed: u64;
    optional pos_column: usize
});

impl Default for TaggerParams {
    fn default() -> TaggerParams {
        TaggerParams {
            kind: Kind::Crf,
            optimizer: Optimizer::Lbfgs,
            lexical: true,
            pos_column: None,
            spans: Scheme::Iob2,
            pairs: Pairs::Observed,
            min_count: 1,
            l2: 0.5,
            l1: 0.0,
            n_iterations: 200,
            epochs: 10,
            window: 2,
            scale: 0.3,
            n_hidden: 25,
            direct_words: Vec::new(),
            seed: 1,
        }
    }
}

impl Params for TaggerParams {
    fn check(&self) -> Result<(), ParamError> {
        let above_zero = (Bound::Excluded(0.0), Bound::Included(1e6));
        check_range("min_count", self.min_count, 1..)?;
        check_range("l2", self.l2, 0.0..=1e6)?;
        check_range("l1", self.l1, 0.0..=1e6)?;
        check_range("n_iterations", self.n_iterations, 1..=1_000_000)?;
        check_range("epochs", self.epochs, 1..=100_000)?;
        check_range("window", self.window, 0..=5)?;
        check_range("scale", self.scale, above_zero)?;
        check_range("n_hidden", self.n_hidden, 0..=10_000)?;
        check_range("pos_column", self.pos_column.unwrap_or(0), 0..=1_000_000)?;
        let is_perceptron = self.optimizer == Optimizer::Perceptron;
        let must = "`lbfgs` with `kind` = local";
        check_that(!is_perceptron || self.kind == Kind::Crf, "optimizer", must, "perceptron")?;
        let no_l1 = self.l1 == 0.0;
        check_that(no_l1 || !is_perceptron, "l1", "0 with `optimizer` = perceptron", self.l1)?;
        check_that(no_l1 || !self.has_network(), "l1", "0 with hidden units", self.l1)?;
        let has_direct = !self.direct_words.is_empty();
        let must = "empty with `kind` = crf";
        let words = || self.direct_words.join(",");
        check_that(!has_direct || self.kind == Kind::Local, "direct_words", must, words())?;
        let is_written = self.spans != Scheme::Iob1;
        check_that(is_written, "spans", "`iob2` or `bioes`", "iob1")
    }
}

impl TaggerParams {
    /// Whether the tagger has a hidden layer.
    pub(crate) fn has_network(&self) -> bool {
        self.kind == Kind::Local && self.n_hidden > 0
    }

    /// Number of hidden units; 0 without a hidden layer.
    pub(crate) fn n_hidden_units(&self) -> usize {
        if self.has_network() { self.n_hidden } else { 0 }
    }

    /// Whether lexical attributes are features.
    pub(crate) fn has_lexical(&self) -> bool {
        self.lexical && !self.has_network()
    }
}
