use super::spans::Scheme;
use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// What a [`FeatureTagger`](super::FeatureTagger) is made of, and how it learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaggerParams {
    /// Whether the tags of neighbours are found together.
    pub kind: Kind,
    /// How a conditional random field learns.
    pub optimizer: Optimizer,
    /// Whether the words themselves, and their letters, are features. A network has none of them.
    pub lexical: bool,
    /// The column of parts of speech that are features, counted from 0.
    pub pos_column: Option<usize>,
    /// How the tagger writes spans down for itself; it always answers in IOB2.
    pub spans: Scheme,
    /// Which tags an attribute of words has weights for.
    pub pairs: Pairs,
    /// Attributes of words that are seen fewer times are left out.
    pub min_count: u64,
    /// c₂ of c₂ Σ w², which is added to −Σ ln p.
    pub l2: f64,
    /// c₁ of c₁ Σ |w|, which is added, too, and puts weights to zero.
    pub l1: f64,
    /// The most steps of L-BFGS.
    pub n_iterations: usize,
    /// How often the perceptron goes through the text.
    pub epochs: usize,
    /// How many words on either side an encoder's features are taken from.
    pub window: usize,
    /// The standard deviation that the numbers of a dense encoder are scaled to.
    pub scale: f64,
    /// Hidden units of a local tagger; 0 for a linear one.
    pub n_hidden: usize,
    /// Words that a local tagger gives the tag that they have most often, as it does with punctuation.
    pub direct_words: Vec<String>,
    /// Where random choices begin.
    pub seed: u64,
}

/// Whether the tags of neighbours are found together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Yes: a linear-chain conditional random field.
    #[default]
    Crf,
    /// No: a classifier of each word by itself.
    Local,
}

/// How a conditional random field learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// To the maximum of the likelihood, by L-BFGS or, with `l1`, OWL-QN.
    #[default]
    Lbfgs,
    /// From its errors, sentence by sentence; the weights of all times are averaged.
    Perceptron,
}

/// Which tags an attribute of words has weights for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairs {
    /// Those that it was seen with.
    #[default]
    Observed,
    /// All.
    All,
}

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
    /// Whether a network reads the features.
    pub(crate) fn has_network(&self) -> bool {
        self.kind == Kind::Local && self.n_hidden > 0
    }

    /// Whether words and their letters are features.
    pub(crate) fn has_lexical(&self) -> bool {
        self.lexical && !self.has_network()
    }
}
