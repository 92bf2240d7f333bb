//! What the transition does, in words: its singular vectors, and the words most likely on each side.

use crate::dense::{NumericError, singular};
use crate::model::Lds;
use latens_corpus::WordId;
use latens_math::linalg::Mat;

/// A direction of the state that the transition maps to another.
#[derive(Clone, Debug, PartialEq)]
pub struct TransitionPair {
    /// The singular value: 1 keeps all that is known of the state, 0 forgets it.
    pub strength: f64,
    /// The words most likely in the first direction, best first, with how much they lie in it.
    pub from: Vec<(WordId, f64)>,
    /// The words most likely in the second one.
    pub to: Vec<(WordId, f64)>,
}

impl Lds {
    /// The first `n_pairs` pairs of singular vectors of A, strongest first, with the `n_words` words on each
    /// side that were seen at least `min_count` times.
    ///
    /// They belong to the canonical gauge: singular vectors are not the same in another one. A pair has two
    /// signs; the one is taken whose words lie further out.
    pub fn transition_pairs(
        &self,
        n_pairs: usize,
        n_words: usize,
        min_count: u64,
    ) -> Result<Vec<TransitionPair>, NumericError> {
        let parts = singular(&self.dynamics.a, "A")?;
        let words: Vec<WordId> = (0..self.counts.len())
            .map(WordId::from)
            .filter(|word| word.index() > WordId::EOS.index() && self.count(*word) >= min_count)
            .collect();
        let pair = |i: usize| {
            let sides = [&parts.right, &parts.left].map(|vectors| self.along(vectors, i, &words));
            let candidates = [1.0, -1.0].map(|sign| {
                let [from, to] = [&sides[0], &sides[1]].map(|side| top(side, sign, n_words));
                TransitionPair { strength: parts.values[i], from, to }
            });
            let [plus, minus] = candidates;
            if plus.weight() >= minus.weight() { plus } else { minus }
        };
        Ok((0..n_pairs.min(self.dim())).map(pair).collect())
    }

    /// C z of some words, for the column z.
    fn along(&self, vectors: &Mat<f64>, column: usize, words: &[WordId]) -> Vec<(WordId, f64)> {
        let value = |word: &WordId| {
            let row = self.words.row(word.index()).iter().enumerate();
            row.map(|(j, &c)| f64::from(c) * vectors[(j, column)]).sum::<f64>()
        };
        words.iter().map(|word| (*word, value(word))).collect()
    }
}

impl TransitionPair {
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
