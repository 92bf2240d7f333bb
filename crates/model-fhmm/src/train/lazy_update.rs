//! M-step of the emission scores of some words only. The cost of its matrix products does not depend on the size of the
//! vocabulary.
//!
//! The objective F of [`crate::train::score_update`] is bounded from below, with G(s) = n(s)/Z(s) of the current scores,
//! by
//!
//! ```text
//! Σ N[Y,m,k] θ[Y,m,k] − Σ_s G(s) Z(s) + constant
//! ```
//!
//! (ln Z ≤ ln Z₀ + Z/Z₀ − 1). This bound is a sum over words. θ += ln(N/W) of one layer of any set of words maximizes it
//! over these scores, where W takes G from before the pass. A pass over the layers therefore never decreases F, whichever
//! words it updates. It needs two matrix products for all layers, since Z need not be computed after each of them.

use crate::distribution::Distribution;
use crate::emission::partition::{BLOCK_WORDS, PartitionTable, add_parts};
use crate::shape::Shape;
use crate::train::score_update::{Pass, update_word};
use crate::train::statistics::Statistics;
use crate::word_rows::MISSING;
use latens_math::Real;
use rayon::prelude::*;

/// Words whose scores an M-step updates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// All words. Z is then computed anew.
    All,
    /// The words of the batch, in ascending order.
    Batch(Vec<u32>),
}

impl Turn {
    /// Whether all words are updated after batch number `batch` of an epoch of `n_tokens`: every few batches, and at the
    /// end of the epoch, so that the model never depends on what earlier batches left undone.
    pub(crate) fn is_of_all(batch: usize, n_batches: usize, n_words: usize, n_tokens: u64) -> bool {
        let period = Turn::period(n_batches as f64, n_words as f64, n_tokens as f64);
        batch + 1 >= n_batches || (batch + 1).is_multiple_of(period as usize)
    }

    /// Number of batches from one update of all V words to the next: those with 2 V tokens, such that these updates take
    /// no more time than the others.
    pub(crate) fn period(n_batches: f64, n_words: f64, n_tokens: f64) -> f64 {
        (2.0 * n_words * n_batches / n_tokens.max(1.0)).ceil().clamp(1.0, 1e9)
    }

    /// The words of a batch.
    pub(crate) fn of_batch(sentences: &[&[u32]]) -> Turn {
        let mut words = sentences.concat();
        words.sort_unstable();
        words.dedup();
        words.retain(|&word| word != MISSING);
        Turn::Batch(words)
    }
}

/// Expected counts N of words and states in which the count of every word is the true one.
///
/// Statistics of a few batches contain the share of each state among the occurrences of a word, and a poor estimate of
/// the count of the word. Here the counts are those of the text, and only the shares are estimated. The share of a word
/// does not change with batches that do not contain it, so that its scores may wait. Words without statistics have equal
/// shares.
pub(crate) struct StateShares<'a> {
    statistics: &'a Statistics,
    /// Distribution of the words of tokens and pseudo-tokens.
    unigrams: &'a [f64],
    n_observed: f64,
    pseudo_tokens: f64,
    /// Ratio of the count of a state by joint states to its count by words, layers × states. Without it, words that are
    /// updated would gain on those that are not.
    scales: Vec<f64>,
}

impl<'a> StateShares<'a> {
    /// Counts of a text of `n_tokens`.
    pub(crate) fn new(
        statistics: &'a Statistics,
        n_tokens: f64,
        pseudo_tokens: f64,
        unigrams: &'a [f64],
    ) -> StateShares<'a> {
        let (row, k) = (statistics.shape.row(), statistics.shape.n_states);
        let (mut observed, mut by_words) = (vec![0.0; row], vec![0.0; row]);
        for (shares, &unigram) in statistics.words.chunks_exact(row).zip(unigrams) {
            let (factor, constant) = split_count(shares, k, unigram);
            let sums = observed.iter_mut().zip(&mut by_words);
            for ((observed, by_words), share) in sums.zip(shares) {
                *observed += share;
                *by_words += factor * share + constant;
            }
        }
        let n_observed = n_tokens * observed[..k].iter().sum::<f64>();
        let pseudo = pseudo_tokens / k as f64;
        let scale = |(observed, by_words): (&f64, &f64)| {
            let scale = (observed * n_tokens + pseudo) / (by_words * n_observed + pseudo);
            if scale.is_finite() { scale } else { 1.0 }
        };
        let scales = observed.iter().zip(&by_words).map(scale).collect();
        StateShares { statistics, unigrams, n_observed, pseudo_tokens, scales }
    }

    /// N of a word: layers × states.
    pub(crate) fn of<T: Real>(&self, word: usize, out: &mut [T]) {
        let (row, k) = (self.statistics.shape.row(), self.statistics.shape.n_states);
        let (shares, unigram) =
            (&self.statistics.words[word * row..(word + 1) * row], self.unigrams[word]);
        let (factor, constant) = split_count(shares, k, unigram * self.n_observed);
        let constant = constant + self.pseudo_tokens * unigram / k as f64;
        for ((out, share), scale) in out.iter_mut().zip(shares).zip(&self.scales) {
            *out = T::of((share * factor + constant) * scale);
        }
    }
}

/// Factor and summand that make the statistics of a word sum to its count in every layer.
fn split_count(statistics: &[f64], n_states: usize, count: f64) -> (f64, f64) {
    /// Below it, statistics have faded away.
    const SMALLEST: f64 = 1e-200;
    let sum: f64 = statistics[..n_states].iter().sum();
    if sum > SMALLEST { (count / sum, 0.0) } else { (0.0, count / n_states as f64) }
}

/// Updates θ and e^θ of some words in all layers in turn, given G. Returns the change of Z if `wants_change`.
pub(crate) fn update_words<T: Real>(
    distribution: &mut Distribution<T>,
    table: &mut PartitionTable<T>,
    shares: &StateShares<'_>,
    ratios: &[T],
    words: &[u32],
    wants_change: bool,
) -> Vec<T> {
    /// Maximum number of parts. It is fixed, so that results do not depend on the number of threads.
    const PARTS: usize = 16;
    /// Minimum number of words per part.
    const PART_WORDS: usize = 48;
    let (shape, row) = (distribution.shape, distribution.shape.row());
    let part = words.len().div_ceil(PARTS).max(PART_WORDS);
    let (theta, exps, base) = (&distribution.theta, &table.exps, &table.base);
    let parts: Vec<(Vec<Block<T>>, Vec<T>)> = words
        .par_chunks(part)
        .map(|words| {
            let mut pass = Pass::new(shape, ratios);
            let mut change = vec![T::zero(); if wants_change { shape.n_joint() } else { 0 }];
            let update = |words: &[u32]| {
                let mut block = Block::gather(row, words, theta, exps, base);
                block.update(&mut pass, shape, shares, words, &mut change);
                block
            };
            let blocks = words.chunks(BLOCK_WORDS).map(update).collect();
            (blocks, change)
        })
        .collect();
    let (blocks, changes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut words = words.iter();
    for block in blocks.iter().flatten() {
        let rows = block.theta.chunks_exact(row).zip(block.exps.chunks_exact(row));
        for ((theta, exps), &word) in rows.zip(words.by_ref()) {
            let range = word as usize * row..(word as usize + 1) * row;
            distribution.theta[range.clone()].copy_from_slice(theta);
            table.exps[range].copy_from_slice(exps);
        }
    }
    add_parts(changes)
}

/// A copy of the scores of a block of words.
struct Block<T> {
    /// θ: words × layers × states.
    theta: Vec<T>,
    /// e^θ.
    exps: Vec<T>,
    /// e^b.
    base: Vec<T>,
}

impl<T: Real> Block<T> {
    fn gather(row: usize, words: &[u32], theta: &[T], exps: &[T], base: &[T]) -> Block<T> {
        let rows = |from: &[T]| -> Vec<T> {
            let row = |&word: &u32| &from[word as usize * row..(word as usize + 1) * row];
            words.iter().flat_map(row).copied().collect()
        };
        let base = words.iter().map(|&word| base[word as usize]).collect();
        Block { theta: rows(theta), exps: rows(exps), base }
    }

    /// Updates all layers, and adds the change of Z to `change` unless that is empty.
    fn update(
        &mut self,
        pass: &mut Pass<'_, T>,
        shape: Shape,
        shares: &StateShares<'_>,
        words: &[u32],
        change: &mut [T],
    ) {
        let mut counts = vec![T::zero(); self.theta.len()];
        for (counts, &word) in counts.chunks_exact_mut(shape.row()).zip(words) {
            shares.of(word as usize, counts);
        }
        let negative: Vec<T> = self.base.iter().map(|&base| -base).collect();
        pass.products.fill(&self.exps, &negative);
        if !change.is_empty() {
            pass.products.add_partition(change);
        }
        if !shape.first().is_empty() {
            pass.multiply(shape.first().start);
        }
        shape.first().for_each(|layer| self.update_layer(pass, shape, layer, &counts));
        pass.products.fill_first(&self.exps, &self.base);
        pass.multiply(shape.second().start);
        shape.second().for_each(|layer| self.update_layer(pass, shape, layer, &counts));
        self.fix_gauge(shape);
        if !change.is_empty() {
            pass.products.fill_first(&self.exps, &self.base);
            pass.products.fill_second(&self.exps);
            pass.products.add_partition(change);
        }
    }

    /// Shifts the scores of each word such that their mean is the same in all layers. This changes no probability, since
    /// the sum of the shifts of a word is zero. Without it, scores would drift apart.
    fn fix_gauge(&mut self, shape: Shape) {
        let per_layer = T::of(1.0 / shape.n_states as f64);
        let per_word = T::of(1.0 / shape.row() as f64);
        let rows = self.theta.chunks_exact_mut(shape.row());
        for (theta, exps) in rows.zip(self.exps.chunks_exact_mut(shape.row())) {
            let mean = theta.iter().copied().sum::<T>() * per_word;
            for layer in theta.chunks_exact_mut(shape.n_states) {
                let shift = mean - layer.iter().copied().sum::<T>() * per_layer;
                layer.iter_mut().for_each(|theta| *theta = Distribution::clamp(*theta + shift));
            }
            exps.iter_mut().zip(theta).for_each(|(exp, theta)| *exp = theta.exp_of());
        }
    }

    fn update_layer(&mut self, pass: &mut Pass<'_, T>, shape: Shape, layer: usize, counts: &[T]) {
        let (row, range) = (shape.row(), shape.layer(layer));
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows = self.theta.chunks_exact_mut(row).zip(self.exps.chunks_exact_mut(row));
                let rows = rows.zip(counts.chunks_exact(row)).zip(&self.base);
                for (word, (((theta, exps), counts), &base)) in rows.enumerate() {
                    pass.expect(layer, word, exps, base);
                    let counts = &counts[range.clone()];
                    let (theta, exps) = (&mut theta[range.clone()], &mut exps[range.clone()]);
                    update_word(theta, exps, &pass.out, |state| counts[state], 1.0);
                }
            },
        );
    }
}

/// Adds the change of Z. Returns false where rounding errors may be large; then Z is to be computed anew.
pub(crate) fn add_change<T: Real>(z: &mut [T], change: &[T]) -> bool {
    /// Largest decrease of a value of Z by differences.
    const LARGEST_DECREASE: f64 = 10.0;
    let mut is_accurate = true;
    for (z, &change) in z.iter_mut().zip(change) {
        let next = *z + change;
        is_accurate &= next * T::of(LARGEST_DECREASE) >= *z;
        *z = next;
    }
    is_accurate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::fixtures::{random, random_posterior};
    use crate::inference::smoother::Expected;
    use crate::params::Inference;
    use latens_math::Rng;

    const PSEUDO_TOKENS: f64 = 3.0;

    /// Statistics of random posteriors, with the relative frequencies of words.
    fn statistics(shape: Shape, n: usize, seed: u64) -> (Statistics, Vec<f64>) {
        let mut rng = Rng::new(seed);
        let (words, gamma) = random_posterior(shape, n, &mut rng);
        let pairs = vec![0.0; shape.row() * shape.n_states];
        let expected = Expected { gamma, pairs, ..Expected::default() };
        let mut statistics = Statistics::new(shape, Inference::ExactMf);
        statistics.blend(1.0, &[&words], &expected);
        let mut unigrams = vec![0.0; shape.n_words];
        words.iter().for_each(|&word| unigrams[word as usize] += 1.0 / n as f64);
        (statistics, unigrams)
    }

    /// State of a layer in a joint state.
    fn state(shape: Shape, s: usize, layer: usize) -> usize {
        s / shape.joint(shape.n_layers - 1 - layer) % shape.n_states
    }

    /// Σ_m θ[Y, m, s^m] for all words and joint states, which no choice of gauge changes.
    fn sums(distribution: &Distribution<f64>) -> Vec<Vec<f64>> {
        let shape = distribution.shape;
        let of = |word: usize, s: usize| -> f64 {
            let scores = distribution.scores(word);
            (0..shape.n_layers).map(|m| scores[m * shape.n_states + state(shape, s, m)]).sum()
        };
        (0..shape.n_words).map(|y| (0..shape.n_joint()).map(|s| of(y, s)).collect()).collect()
    }

    /// Z of all joint states by its definition.
    fn normalizers(distribution: &Distribution<f64>) -> Vec<f64> {
        let sums = sums(distribution);
        let words = || distribution.base.iter().zip(&sums);
        let z = |s: usize| words().map(|(b, sums)| (b + sums[s]).exp()).sum();
        (0..distribution.shape.n_joint()).map(z).collect()
    }

    /// n of all joint states, with pseudo-tokens.
    fn joint_counts(statistics: &Statistics, n_tokens: f64) -> Vec<f64> {
        let each = PSEUDO_TOKENS / statistics.shape.n_joint() as f64;
        statistics.emitting.iter().map(|share| share * n_tokens + each).collect()
    }

    fn update(
        distribution: &mut Distribution<f64>,
        table: &mut PartitionTable<f64>,
        shares: &StateShares<'_>,
        n: &[f64],
        words: &[u32],
    ) {
        let ratios: Vec<f64> = n.iter().zip(&table.values).map(|(n, z)| n / z).collect();
        let change = update_words(distribution, table, shares, &ratios, words, true);
        assert!(add_change(&mut table.values, &change));
    }

    #[test]
    fn counts_are_those_of_the_text_split_by_the_shares_of_states() {
        let shape = Shape { n_layers: 2, n_states: 2, n_words: 3 };
        let mut statistics = Statistics::new(shape, Inference::ExactMf);
        // Two of ten tokens are missing. The statistics hold 0.6 and 0.2 of the tokens for words that are equally
        // frequent, and none for the third.
        statistics.words[..4].copy_from_slice(&[0.45, 0.15, 0.3, 0.3]);
        statistics.words[4..8].copy_from_slice(&[0.05, 0.15, 0.2, 0.0]);
        let shares = StateShares::new(&statistics, 10.0, 0.0, &[0.4, 0.4, 0.2]);
        let mut n = [0.0f64; 12];
        (0..3).for_each(|word| shares.of(word, &mut n[word * 4..word * 4 + 4]));
        // By words, the states have 3.2 · (3/4, 1/4, 1/2, 1/2) + 3.2 · (1/4, 3/4, 1, 0) + 1.6 / 2, i.e., 4, 4, 5.6, 2.4
        // tokens; by joint states 5, 3, 5, 3.
        let scales = [5.0 / 4.0, 3.0 / 4.0, 5.0 / 5.6, 3.0 / 2.4];
        let unscaled = [2.4, 0.8, 1.6, 1.6, 0.8, 2.4, 3.2, 0.0, 0.8, 0.8, 0.8, 0.8];
        for (i, n) in n.iter().enumerate() {
            assert!((n - unscaled[i] * scales[i % 4]).abs() < 1e-12, "{i} {n}");
        }
    }

    #[test]
    fn an_update_of_some_words_agrees_with_its_definition() {
        for n_layers in [1, 2, 3, 5] {
            let shape = Shape { n_layers, n_states: 2, n_words: 130 };
            let ((statistics, unigrams), n_tokens) = (statistics(shape, 900, 5), 900.0);
            let shares = StateShares::new(&statistics, n_tokens, PSEUDO_TOKENS, &unigrams);
            let n = joint_counts(&statistics, n_tokens);
            let mut distribution = random(shape, 1.0, n_layers as u64);
            let mut expected = distribution.clone();
            let z = normalizers(&expected);
            let words: Vec<u32> = (0..130).filter(|word| word % 5 != 2).collect();
            for layer in 0..n_layers {
                let sums = sums(&expected);
                for &word in &words {
                    let word = word as usize;
                    let mut counts = vec![0.0; shape.row()];
                    shares.of(word, &mut counts);
                    for k in 0..2 {
                        let states = (0..shape.n_joint()).filter(|&s| state(shape, s, layer) == k);
                        let w: f64 = states
                            .map(|s| n[s] / z[s] * (expected.base[word] + sums[word][s]).exp())
                            .sum();
                        let at = layer * 2 + k;
                        expected.theta[word * shape.row() + at] += (counts[at] / w).ln();
                    }
                }
            }
            let mut table = PartitionTable::of(&distribution);
            update(&mut distribution, &mut table, &shares, &n, &words);
            for (a, b) in sums(&distribution).iter().flatten().zip(sums(&expected).iter().flatten())
            {
                assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
            for (a, b) in table.values.iter().zip(normalizers(&expected)) {
                assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
            }
            assert_eq!(table.exps, PartitionTable::of(&distribution).exps);
            let means = distribution.theta.chunks_exact(2).map(|layer| layer[0] + layer[1]);
            let means: Vec<f64> = means.collect();
            let of_word = &means[..n_layers];
            assert!(of_word.iter().all(|mean| (mean - of_word[0]).abs() < 1e-9), "{of_word:?}");
        }
    }

    #[test]
    fn updates_of_any_words_never_decrease_the_objective_and_converge() {
        let shape = Shape { n_layers: 3, n_states: 3, n_words: 40 };
        let ((statistics, unigrams), n_tokens) = (statistics(shape, 500, 3), 500.0);
        let shares = StateShares::new(&statistics, n_tokens, PSEUDO_TOKENS, &unigrams);
        let n = joint_counts(&statistics, n_tokens);
        let mut counts = vec![0.0; 40 * shape.row()];
        (0..40).for_each(|y| shares.of(y, &mut counts[y * shape.row()..(y + 1) * shape.row()]));
        let objective = |distribution: &Distribution<f64>| -> f64 {
            let gain: f64 = counts.iter().zip(&distribution.theta).map(|(n, t)| n * t).sum();
            let z = normalizers(distribution);
            gain - n.iter().zip(&z).map(|(n, z)| n * z.ln()).sum::<f64>()
        };
        let mut distribution = random(shape, 1.0, 4);
        let mut table = PartitionTable::of(&distribution);
        let (first, mut rng) = (objective(&distribution), Rng::new(9));
        let mut last = first;
        for i in 0..400 {
            let words: Vec<u32> = (0..40).filter(|_| i % 10 == 0 || rng.uniform() < 0.3).collect();
            update(&mut distribution, &mut table, &shares, &n, &words);
            let now = objective(&distribution);
            assert!(now >= last - 1e-9 * last.abs(), "{last} {now}");
            last = now;
        }
        assert!(last > first + 10.0, "{first} {last}");
        // At the maximum, the model predicts the counts of every word.
        let (sums, z) = (sums(&distribution), normalizers(&distribution));
        for (word, sums) in sums.iter().enumerate() {
            let terms = (0..shape.n_joint()).map(|s| n[s] / z[s] * sums[s].exp());
            let predicted = distribution.base[word].exp() * terms.sum::<f64>();
            let count = unigrams[word] * (n_tokens + PSEUDO_TOKENS);
            assert!((predicted / count - 1.0).abs() < 1e-3, "{word} {predicted} {count}");
        }
    }

    #[test]
    fn all_words_have_their_turn_at_the_end_of_an_epoch_and_every_two_v_tokens() {
        // 100 batches of 50 tokens, and 400 words.
        let is_of_all = |batch| Turn::is_of_all(batch, 100, 400, 5000);
        let all: Vec<usize> = (0..100).filter(|&batch| is_of_all(batch)).collect();
        assert_eq!(all, [15, 31, 47, 63, 79, 95, 99]);
        assert!((0..3).all(|batch| Turn::is_of_all(batch, 3, 400, 5000)));
        let batch = Turn::of_batch(&[&[7, 3, MISSING], &[3, 9]]);
        assert_eq!(batch, Turn::Batch(vec![3, 7, 9]));
    }

    #[test]
    fn a_large_decrease_of_a_normalizer_is_not_computed_by_differences() {
        assert!(add_change(&mut [1.0, 2.0], &[-0.8, 5.0]));
        assert!(!add_change(&mut [1.0, 2.0], &[-0.95, 5.0]));
        assert!(!add_change(&mut [1.0], &[-1.5]));
        assert!(!add_change(&mut [1.0], &[f64::NAN]));
    }
}
