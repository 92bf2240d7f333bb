//! Word vectors, produced by one model and used by others.

use super::search::SearchTable;
use latens_corpus::{Vocab, WordId};
use latens_math::{dot_wide, get_or_compute};
use latens_store::FlatArray;
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// A vector for each word of a vocabulary. An all-zero vector marks a word without one.
#[derive(Clone, Debug)]
pub struct WordVectors {
    dim: usize,
    values: FlatArray<f32>,
    /// Computed for the first search.
    search: OnceLock<Arc<SearchTable>>,
}

/// The numbers do not form valid word vectors.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("invalid word vectors: {problem}")]
pub struct NoVectors {
    /// The problem.
    pub problem: &'static str,
}

/// Coverage of a vocabulary by word vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of words, without `<unk>` and `<eos>`.
    pub n_words: usize,
    /// Number of words with a vector.
    pub n_found: usize,
    /// Number of words that use the vector of their lowercase form.
    pub n_lowercased: usize,
    /// Number of tokens.
    pub n_tokens: u64,
    /// Number of tokens whose word has a vector.
    pub n_found_tokens: u64,
}

impl Coverage {
    /// Fraction of tokens whose word has a vector; fraction of words if there are no counts; 0 for an empty vocabulary.
    pub fn share(&self) -> f64 {
        let (found, all) = match self.n_tokens {
            0 => (self.n_found as f64, self.n_words as f64),
            n_tokens => (self.n_found_tokens as f64, n_tokens as f64),
        };
        if all > 0.0 { found / all } else { 0.0 }
    }
}

impl WordVectors {
    /// Creates vectors of length `dim` from row-major values, one row per word in the order of the ids.
    pub fn new(dim: usize, values: impl Into<FlatArray<f32>>) -> Result<WordVectors, NoVectors> {
        let values = values.into();
        let problem = if dim == 0 {
            "the dimension is 0"
        } else if !values.len().is_multiple_of(dim) {
            "the number of values is not a multiple of the dimension"
        } else if !values.par_chunks(1 << 16).all(|part| part.iter().all(|value| value.is_finite()))
        {
            "some values are not finite"
        } else {
            return Ok(WordVectors { dim, values, search: OnceLock::new() });
        };
        Err(NoVectors { problem })
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of words, including those without a vector.
    pub fn n_words(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Row-major values of all words in the order of their ids, zeros for words without a vector.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The vector of a word, if it has one.
    pub fn get(&self, word: WordId) -> Option<&[f32]> {
        let vector = &self.values[word.index() * self.dim..][..self.dim];
        vector.iter().any(|&value| value != 0.0).then_some(vector)
    }

    /// Iterates over the words with a vector, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (WordId, &[f32])> {
        let ids = (0..self.n_words()).map(WordId::from);
        ids.filter_map(|word| Some((word, self.get(word)?)))
    }

    /// Maps the vectors to another vocabulary, and returns the coverage. A word without a vector takes that of its
    /// lowercase form.
    pub fn for_words(&self, own: &Vocab, other: &Vocab) -> (WordVectors, Coverage) {
        let mut values = vec![0.0; other.len() * self.dim];
        let mut coverage = Coverage::default();
        for (id, place) in values.chunks_exact_mut(self.dim).enumerate() {
            let (id, word) = (WordId::from(id), other.word(WordId::from(id)));
            let find = |word: &str| own.get(word).and_then(|id| self.get(id));
            let exact = if id == WordId::EOS { self.get(id) } else { find(word) };
            let vector = exact.or_else(|| find(&word.to_lowercase()));
            place.copy_from_slice(vector.unwrap_or(&vec![0.0; self.dim]));
            if id != WordId::UNK && id != WordId::EOS {
                coverage.count(other.count(id), vector.is_some(), exact.is_none());
            }
        }
        (WordVectors { dim: self.dim, values: values.into(), search: OnceLock::new() }, coverage)
    }

    /// The vectors minus their mean, each scaled to length one. Lengths, which depend on word frequency, are discarded:
    /// Gaussian topics then compare directions only. Words without a vector still have none, and a word at the mean has
    /// none afterwards.
    #[must_use]
    pub fn centered_and_normalized(&self) -> WordVectors {
        let mut mean = vec![0.0f64; self.dim];
        let n_vectors = self.iter().count().max(1) as f64;
        for (_, vector) in self.iter() {
            mean.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x) / n_vectors);
        }
        // Equal vectors differ from their mean by rounding errors, which have no direction.
        let least = 1e-6 * mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut values = vec![0.0; self.values.len()];
        let mut centered = vec![0.0; self.dim];
        for (word, vector) in self.iter() {
            for ((centered, &x), mean) in centered.iter_mut().zip(vector).zip(&mean) {
                *centered = f64::from(x) - mean;
            }
            let norm = centered.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm > least {
                let place = &mut values[word.index() * self.dim..][..self.dim];
                place.iter_mut().zip(&centered).for_each(|(place, x)| *place = (x / norm) as f32);
            }
        }
        WordVectors { dim: self.dim, values: values.into(), search: OnceLock::new() }
    }

    /// The `n` words with the highest cosine similarity to `query`, in descending order; fewer if fewer words have
    /// vectors. Excludes the words in `except`, `<unk>` and `<eos>`. The first search computes a table of a quarter of the
    /// size of the vectors, which makes the next ones faster.
    ///
    /// # Panics
    /// If the length of `query` is not [`WordVectors::dim`].
    pub fn nearest(&self, query: &[f32], n: usize, except: &[WordId]) -> Vec<(WordId, f32)> {
        assert_eq!(query.len(), self.dim, "the query must have the dimension of the vectors");
        self.search_table().nearest(&self.values, query, n, except)
    }

    /// Computes the table that searches need, so that the first one is as fast as the next ones.
    pub fn prepare_search(&self) {
        self.search_table();
    }

    fn search_table(&self) -> &SearchTable {
        let table = || Arc::new(SearchTable::new(self.dim, &self.values));
        get_or_compute(&self.search, table).as_ref()
    }

    /// The query vector of the analogy "`a` is to `b` as `c` is to …" (Mikolov et al. 2013): b − a + c, where each vector
    /// is normalized to length one first. `None` if one of the words has no vector.
    pub fn analogy(&self, a: WordId, b: WordId, c: WordId) -> Option<Vec<f32>> {
        let mut sum = vec![0.0; self.dim];
        for (word, sign) in [(a, -1.0), (b, 1.0), (c, 1.0)] {
            let vector = self.get(word)?;
            let scale = sign / norm(vector);
            sum.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += (scale * f64::from(x)) as f32);
        }
        Some(sum)
    }
}

impl Coverage {
    fn count(&mut self, n_seen: u64, is_found: bool, is_lowercased: bool) {
        self.n_words += 1;
        // A forged file may contain any numbers.
        self.n_tokens = self.n_tokens.saturating_add(n_seen);
        if is_found {
            self.n_found += 1;
            self.n_found_tokens = self.n_found_tokens.saturating_add(n_seen);
            self.n_lowercased += usize::from(is_lowercased);
        }
    }
}

fn norm(vector: &[f32]) -> f64 {
    dot_wide(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{EOS, UNK};

    fn vocab(words: &[&str]) -> Vocab {
        let counts = (0..words.len() as u64 + 2).collect();
        Vocab::from_parts([UNK, EOS].iter().chain(words), counts).unwrap()
    }

    /// `<unk>`, `<eos>`, then four words, of which the last has no vector.
    fn plane() -> WordVectors {
        WordVectors::new(2, vec![1., 1., 0., 0., 2., 0., 3., 3., 0., -1., 0., 0.]).unwrap()
    }

    #[test]
    fn invalid_vectors_are_rejected() {
        for (dim, values) in
            [(0, vec![]), (2, vec![1.0; 3]), (1, vec![f32::NAN]), (1, vec![f32::INFINITY])]
        {
            assert!(WordVectors::new(dim, values).is_err());
        }
        assert!(WordVectors::new(3, vec![]).is_ok());
    }

    #[test]
    fn neighbors_have_the_highest_cosine_similarity() {
        let vectors = plane();
        let near = vectors.nearest(&[1.0, 0.0], 10, &[]);
        let half = std::f32::consts::FRAC_1_SQRT_2;
        assert_eq!(near, [(WordId(2), 1.0), (WordId(3), half), (WordId(4), 0.0)]);
        assert_eq!(vectors.nearest(&[1.0, 0.0], 1, &[WordId(2)]), [(WordId(3), half)]);
        assert_eq!(vectors.nearest(&[1.0, 0.0], 0, &[]), []);
    }

    #[test]
    fn an_analogy_is_a_sum_of_unit_vectors() {
        let vectors = plane();
        let half = std::f32::consts::FRAC_1_SQRT_2;
        assert_eq!(
            vectors.analogy(WordId(2), WordId(3), WordId(4)),
            Some(vec![half - 1.0, half - 1.0])
        );
        assert_eq!(vectors.analogy(WordId(2), WordId(3), WordId(5)), None);
    }

    #[test]
    fn unit_vectors_are_centered_and_have_length_one() {
        // Four words have vectors, whose mean is (1.5, 0.75).
        let unit = plane().centered_and_normalized();
        for (word, centered) in [(0, [-0.5, 0.25]), (2, [0.5, -0.75]), (3, [1.5, 2.25])] {
            let norm = f32::hypot(centered[0], centered[1]);
            let found = unit.get(WordId(word)).unwrap();
            for (found, centered) in found.iter().zip(centered) {
                assert!((found - centered / norm).abs() < 1e-6, "{word}: {found}");
            }
        }
        assert_eq!((unit.get(WordId::EOS), unit.get(WordId(5))), (None, None));
        // A word at the mean has no direction.
        let equal = WordVectors::new(2, vec![0.1; 14]).unwrap();
        assert_eq!(equal.centered_and_normalized().values(), [0.0; 14]);
    }

    #[test]
    fn words_of_another_vocabulary_fall_back_to_their_lowercase_form() {
        let own = vocab(&["a", "b", "c", "none"]);
        let other = vocab(&["B", "a", "none", "C", "absent"]);
        let (vectors, coverage) = plane().for_words(&own, &other);
        let expected: [Option<&[f32]>; 7] =
            [Some(&[1., 1.]), None, Some(&[3., 3.]), Some(&[2., 0.]), None, Some(&[0., -1.]), None];
        for (id, expected) in expected.into_iter().enumerate() {
            assert_eq!(vectors.get(WordId::from(id)), expected);
        }
        // The word counts are 2, 3, 4, 5 and 6.
        let expected =
            Coverage { n_words: 5, n_found: 3, n_lowercased: 2, n_tokens: 20, n_found_tokens: 10 };
        assert_eq!(coverage, expected);
        assert_eq!(coverage.share(), 0.5);
        assert_eq!(Coverage::default().share(), 0.0);
    }
}
