//! Interpreting the transition: its singular vectors, with the words closest to each.

use crate::linalg::dense::singular;
use crate::linalg::error::NumericError;
use crate::model::Lds;
use latens_corpus::WordId;
use latens_math::linalg::Mat;

/// A direction of the state, and the direction that the transition maps it to.
#[derive(Clone, Debug, PartialEq)]
pub struct SingularPair {
    /// The singular value: 1 preserves all information about the direction, 0 none.
    pub strength: f64,
    /// The words most likely in the first direction, in descending order, with their components in it.
    pub from: Vec<(WordId, f64)>,
    /// The words most likely in the second direction, in descending order, with their components in it.
    pub to: Vec<(WordId, f64)>,
}

impl Lds {
    /// The singular values of the transition matrix A, in descending order.
    pub fn singular_values(&self) -> Result<Vec<f64>, NumericError> {
        Ok(singular(&self.dynamics.a, "A")?.values)
    }

    /// The first `n_pairs` pairs of singular vectors of A by descending singular value, each with `n_words` words per
    /// side among those with at least `min_count` occurrences.
    ///
    /// Singular vectors depend on the gauge; these are those of the canonical gauge. The sign of a pair is chosen so
    /// that its words have the larger components.
    pub fn singular_pairs(
        &self,
        n_pairs: usize,
        n_words: usize,
        min_count: u64,
    ) -> Result<Vec<SingularPair>, NumericError> {
        let parts = singular(&self.dynamics.a, "A")?;
        let words: Vec<WordId> = (0..self.counts.len())
            .map(WordId::from)
            .filter(|word| word.index() > WordId::EOS.index() && self.count(*word) >= min_count)
            .collect();
        let pair = |i: usize| {
            let sides = [&parts.right, &parts.left].map(|vectors| self.along(vectors, i, &words));
            let candidates = [1.0, -1.0].map(|sign| {
                let [from, to] = [&sides[0], &sides[1]].map(|side| top(side, sign, n_words));
                SingularPair { strength: parts.values[i], from, to }
            });
            let [plus, minus] = candidates;
            if plus.weight() >= minus.weight() { plus } else { minus }
        };
        Ok((0..n_pairs.min(self.dim())).map(pair).collect())
    }

    /// C z of some words, where z is a column of `vectors`.
    fn along(&self, vectors: &Mat<f64>, column: usize, words: &[WordId]) -> Vec<(WordId, f64)> {
        let value = |word: &WordId| {
            let row = self.words.row(word.index()).iter().enumerate();
            row.map(|(j, &c)| f64::from(c) * vectors[(j, column)]).sum::<f64>()
        };
        words.iter().map(|word| (*word, value(word))).collect()
    }
}

impl SingularPair {
    fn weight(&self) -> f64 {
        self.from.iter().chain(&self.to).map(|&(_, value)| value).sum()
    }
}

fn top(side: &[(WordId, f64)], sign: f64, n: usize) -> Vec<(WordId, f64)> {
    let mut side: Vec<_> = side.iter().map(|&(word, value)| (word, sign * value)).collect();
    side.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    side.truncate(n);
    side
}
