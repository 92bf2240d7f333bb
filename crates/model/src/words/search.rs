//! Search for vectors of similar direction.
//!
//! Reading the vectors takes most of the time of a search. It therefore reads a copy with 8 bits per number first, which
//! bounds each similarity from both sides, and computes exact similarities where the bounds leave a choice.

use latens_corpus::WordId;
use latens_math::{dot_wide, vectorized};
use rayon::prelude::*;

/// Number of words that a thread compares at a time.
pub(super) const BLOCK: usize = 4096;
/// Largest rounded number of a vector.
const MAX_ROUNDED: f32 = i8::MAX as f32;
/// Largest error of a rounded number: a half, and errors of single precision.
const ROUNDING: f64 = 0.51;
/// Covers errors of single precision in bounds.
const SLACK: f64 = 1e-6;
/// The step of vectors that cannot be rounded. The bounds of their similarities exclude nothing.
const NO_STEP: f32 = 2.0;

/// What searches need besides the vectors.
#[derive(Debug)]
pub(super) struct SearchTable {
    /// Lengths of the vectors, zero for words without one.
    norms: Vec<f64>,
    /// Vectors in steps, row by row.
    rounded: Vec<i8>,
    /// The step of each vector, divided by its length.
    steps: Vec<f32>,
}

/// The query in steps.
struct RoundedQuery {
    values: Vec<i16>,
    /// The step, divided by the length of the query.
    step: f32,
    /// Bound on the error of a similarity: this, and `error_per_step` times the step of the vector.
    error: f32,
    error_per_step: f32,
}

/// A word with bounds of its similarity.
#[derive(Clone, Copy)]
struct Candidate {
    word: WordId,
    low: f32,
    high: f32,
}

impl SearchTable {
    pub(super) fn new(dim: usize, values: &[f32]) -> SearchTable {
        let n_words = values.len() / dim;
        let (mut norms, mut steps) = (vec![0.0; n_words], vec![0.0; n_words]);
        let mut rounded = vec![0; values.len()];
        let lengths = norms.par_chunks_mut(BLOCK).zip(steps.par_chunks_mut(BLOCK));
        let rows = values.par_chunks(BLOCK * dim).zip(rounded.par_chunks_mut(BLOCK * dim));
        rows.zip(lengths).for_each(|((vectors, rounded), (norms, steps))| {
            vectorized(
                #[inline(always)]
                || {
                    let rows = vectors.chunks_exact(dim).zip(rounded.chunks_exact_mut(dim));
                    for (at, (vector, rounded)) in rows.enumerate() {
                        norms[at] = dot_wide(vector, vector).sqrt();
                        steps[at] = round(vector, norms[at], rounded);
                    }
                },
            );
        });
        SearchTable { norms, rounded, steps }
    }

    /// The `n` nearest words in descending order of cosine similarity, words with smaller ids first among equals.
    pub(super) fn nearest(
        &self,
        vectors: &[f32],
        query: &[f32],
        n: usize,
        except: &[WordId],
    ) -> Vec<(WordId, f32)> {
        let dim = query.len();
        let length = dot_wide(query, query).sqrt();
        let rounded = RoundedQuery::new(query, length);
        let candidates_of_block = |(block, (rows, steps)): (usize, (&[i8], &[f32]))| {
            let mut candidates = Vec::with_capacity(steps.len());
            vectorized(
                #[inline(always)]
                || {
                    for (at, row) in rows.chunks_exact(dim).enumerate() {
                        let word = WordId::from(block * BLOCK + at);
                        candidates.push(rounded.compare(word, row, steps[at]));
                    }
                },
            );
            candidates.retain(|candidate| {
                let word = candidate.word;
                word > WordId::EOS && self.norms[word.index()] > 0.0 && !except.contains(&word)
            });
            possible(candidates, n)
        };
        let blocks = self.rounded.par_chunks(BLOCK * dim).zip(self.steps.par_chunks(BLOCK));
        let found: Vec<Vec<Candidate>> = blocks.enumerate().map(candidates_of_block).collect();
        let similarity = |candidate: &Candidate| {
            let word = candidate.word.index();
            let dot = dot_wide(query, &vectors[word * dim..][..dim]);
            (candidate.word, (dot / (length * self.norms[word])) as f32)
        };
        let mut found: Vec<(WordId, f32)> =
            possible(found.concat(), n).par_iter().map(similarity).collect();
        found.par_sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(n);
        found
    }
}

/// Writes a vector in steps, and returns the step divided by the length of the vector.
#[inline(always)]
fn round(vector: &[f32], norm: f64, rounded: &mut [i8]) -> f32 {
    /// The sum of this and a small number ends with the bits of the nearest integer.
    const SHIFT: f32 = 12_582_912.0;
    let largest = largest(vector);
    let scale = MAX_ROUNDED / largest;
    if !scale.is_finite() {
        return NO_STEP;
    }
    for (rounded, x) in rounded.iter_mut().zip(vector) {
        *rounded = (x * scale + SHIFT).to_bits() as i8;
    }
    (f64::from(largest / MAX_ROUNDED) / norm) as f32
}

/// The largest magnitude of a vector.
#[inline(always)]
fn largest(vector: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (blocks, rest) = vector.as_chunks::<16>();
    // Not `f32::max`, which treats NaN differently, and is slower.
    let max = |a: f32, b: f32| if a > b { a } else { b };
    for block in blocks {
        lanes = std::array::from_fn(|lane| max(block[lane].abs(), lanes[lane]));
    }
    rest.iter().map(|x| x.abs()).chain(lanes).fold(0.0, max)
}

impl RoundedQuery {
    fn new(query: &[f32], length: f64) -> RoundedQuery {
        // A sum of products must fit in 32 bits.
        let products = i32::MAX as usize / i8::MAX as usize / query.len();
        let max_rounded = products.min(i16::MAX as usize) as f32;
        let largest = largest(query);
        let scale = max_rounded / largest;
        if !scale.is_finite() || max_rounded < 1.0 {
            let values = vec![0; query.len()];
            return RoundedQuery { values, step: 0.0, error: f32::INFINITY, error_per_step: 0.0 };
        }
        let values = query.iter().map(|x| (x * scale).round_ties_even() as i16).collect();
        let step = f64::from(largest / max_rounded) / length;
        // For unit vectors q = q' + f and v = v' + e, where q' and v' are rounded, q v − q' v' = q e + f v', and the length
        // of v' is at most 1 + |e|.
        let per_step = ROUNDING * (query.len() as f64).sqrt();
        let own = per_step * step;
        RoundedQuery {
            values,
            step: step as f32,
            error: (own + SLACK) as f32,
            error_per_step: (per_step * (1.0 + own)) as f32,
        }
    }

    /// Bounds the similarity to a vector.
    #[inline(always)]
    fn compare(&self, word: WordId, rounded: &[i8], step: f32) -> Candidate {
        let terms = self.values.iter().zip(rounded).map(|(&a, &b)| i32::from(a) * i32::from(b));
        let rough = terms.sum::<i32>() as f32 * (self.step * step);
        let error = self.error + self.error_per_step * step;
        Candidate { word, low: rough - error, high: rough + error }
    }
}

/// The candidates that may be among the `n` nearest: at most `n − 1` others are nearer for certain.
fn possible(mut candidates: Vec<Candidate>, n: usize) -> Vec<Candidate> {
    if n == 0 {
        return Vec::new();
    }
    if n < candidates.len() {
        let (_, last, _) = candidates.select_nth_unstable_by(n - 1, |a, b| b.low.total_cmp(&a.low));
        let least = last.low;
        candidates.retain(|candidate| candidate.high >= least);
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn nearest(values: &[f32], query: &[f32], n: usize) -> Vec<(WordId, f32)> {
        SearchTable::new(query.len(), values).nearest(values, query, n, &[WordId(7)])
    }

    /// All words by exact similarities.
    fn by_similarity(values: &[f32], query: &[f32]) -> Vec<(WordId, f32)> {
        let norm = |vector: &[f32]| dot_wide(vector, vector).sqrt();
        let cosine = |(word, vector): (usize, &[f32])| {
            let cosine = dot_wide(query, vector) / (norm(query) * norm(vector));
            (WordId::from(word), cosine as f32)
        };
        let rows = values.chunks_exact(query.len()).enumerate();
        let is_word =
            |(word, vector): &(usize, &[f32])| ![0, 1, 7].contains(word) && norm(vector) > 0.0;
        let mut all: Vec<(WordId, f32)> = rows.filter(is_word).map(cosine).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all
    }

    fn random(n: usize, rng: &mut Rng) -> Vec<f32> {
        (0..n).map(|_| rng.normal() as f32).collect()
    }

    #[test]
    fn searches_in_blocks_find_the_same_words_in_the_same_order() {
        // Words whose numbers differ by a multiple of 997 have the same direction, in different blocks.
        let n_words = 3 * BLOCK + 17;
        let row = |word: usize| {
            let (angle, length) = ((word % 997) as f32, 1.0 + (word % 3) as f32);
            [length * angle.cos(), length * angle.sin()]
        };
        let values: Vec<f32> = (0..n_words).flat_map(row).collect();
        let query = &values[10..12];
        let all = by_similarity(&values, query);
        for n_threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            for n in [0, 1, 30, n_words] {
                let found = pool.install(|| nearest(&values, query, n));
                assert_eq!(found, all[..n.min(all.len())], "{n_threads} threads, {n} words");
            }
        }
    }

    #[test]
    fn rounding_changes_no_result() {
        let mut rng = Rng::new(3);
        for dim in [1, 3, 16, 50, 131] {
            let mut values = random(1000 * dim, &mut rng);
            for (word, vector) in values.chunks_exact_mut(dim).enumerate() {
                // Vectors of all lengths, and words without one.
                let scale = [1.0, 1e-20, 1e20, 1e-38, 1e38, 1e-44, 0.0, 0.3][word % 8];
                vector.iter_mut().for_each(|x| *x *= scale / 8.0);
                if word % 5 == 0 {
                    // Beside it, all other numbers are rounded to zero.
                    vector[0] = scale;
                }
            }
            // Copies have equal similarities.
            values.copy_within(10 * dim..20 * dim, 900 * dim);
            let query = |word: usize| values[word * dim..][..dim].to_vec();
            let mut queries = [2, 3, 4, 5, 8, 10, 12].map(query).to_vec();
            queries.extend([random(dim, &mut rng), vec![1e-45; dim]]);
            for (at, query) in queries.iter().enumerate() {
                let all = by_similarity(&values, query);
                for n in [1, 20, 300, 1000] {
                    let expected = &all[..n.min(all.len())];
                    assert_eq!(nearest(&values, query, n), expected, "query {at}, {dim} × {n}");
                }
            }
            // Similarities to zero are not numbers.
            let found = nearest(&values, &vec![0.0; dim], 4);
            assert!(found.len() == 4 && found.iter().all(|(_, cosine)| cosine.is_nan()));
        }
    }

    #[test]
    fn few_candidates_are_compared_exactly() {
        let dim = 100;
        let values = random(BLOCK * dim, &mut Rng::new(5));
        let table = SearchTable::new(dim, &values);
        let query = RoundedQuery::new(&values[..dim], table.norms[0]);
        let rows = table.rounded.chunks_exact(dim).zip(&table.steps).enumerate();
        let compare = |(at, (row, &step))| query.compare(WordId::from(at), row, step);
        let candidates = rows.map(compare).collect();
        assert!(possible(candidates, 20).len() < 60);
    }
}
