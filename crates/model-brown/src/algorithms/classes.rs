//! Words in classes, and the gain of a word in each class.
//!
//! With the counts n, f, l and r of `loss_table.rs` and F(x) = x ln x, the mutual information is, up to terms that do
//! not change when a word moves,
//!
//! ```text
//! T · MI = Σ_cd F(n(c,d)) − Σ_c (l(c) + r(c)) ln f(c)
//! ```
//!
//! Let R(d) and L(d) be the number of times that a word w occurs right before and right after words of class d other
//! than w itself, S the number of times that it follows itself, and N(w) = Σ_d (R(d) + L(d)) + 2 S. Primes denote
//! counts of the classes without w. In class b, up to terms that are the same in every class, w adds to T · MI
//!
//! ```text
//! G(b) = Σ_{d≠b} [h(n'(b,d), R(d)) + h(n'(d,b), L(d))] + h(n'(b,b), R(b) + L(b) + S)
//!        − N(w) ln (f'(b) + f(w)) − (l' + r' + R + L)(b) · (ln (f'(b) + f(w)) − ln f'(b))
//! h(n, x) = F(n + x) − F(n)
//! ```
//!
//! and a move from a to b changes it by G(b) − G(a). Without w, n(a,d) decreases by R(d), n(d,a) by L(d) and n(a,a) by
//! R(a) + L(a) + S, and nothing else changes. The gains therefore follow from the current counts, which need not be
//! modified, and several words can be processed in parallel.

use crate::algorithms::word_context::{Logarithms, WordContext};
use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::{ClusterCounts, NONE};
use crate::counts::entropy::EntropyTerms;

/// Words in classes, each of which has at least one word.
pub(crate) struct Classes<'a> {
    bigrams: &'a Bigrams,
    counts: ClusterCounts,
    class_of: Vec<u32>,
    /// Number of words in each class.
    n_members: Vec<u32>,
    entropy_terms: EntropyTerms,
    /// Number of moves so far.
    n_moves: u64,
    /// Smallest gain that justifies a move. Rounding errors of gains are some 1e-15 of T ln T.
    min_gain: f64,
}

impl<'a> Classes<'a> {
    /// The classes with these members; words with [`NONE`] have no class yet.
    pub(crate) fn new(bigrams: &'a Bigrams, class_of: Vec<u32>, n_classes: usize) -> Classes<'a> {
        let mut n_members = vec![0; n_classes];
        let classes = class_of.iter().filter(|&&class| class != NONE);
        classes.for_each(|&class| n_members[class as usize] += 1);
        assert!(!n_members.contains(&0), "every class must have a word");
        let counts = ClusterCounts::of(bigrams, &class_of, n_classes);
        let entropy_terms = EntropyTerms::new();
        let min_gain = 1e-11 * entropy_terms.f(bigrams.n_tokens);
        Classes { bigrams, counts, class_of, n_members, entropy_terms, n_moves: 0, min_gain }
    }

    /// The class of each word, or [`NONE`].
    pub(crate) fn class_of(&self) -> &[u32] {
        &self.class_of
    }

    /// The frequencies and bigram counts of the classes.
    pub(crate) fn counts(&self) -> &ClusterCounts {
        &self.counts
    }

    /// The mutual information of adjacent classes in bits.
    pub(crate) fn mutual_information(&self) -> f64 {
        self.counts.mutual_information(self.bigrams.n_tokens, self.bigrams.n_bigrams)
    }

    /// An empty context, to be reused from word to word.
    pub(crate) fn context(&self) -> WordContext {
        WordContext::new(self.counts.n_clusters)
    }

    /// The class where a word gains most. In case of a tie it is the word's own class, or else the lowest one.
    pub(crate) fn best_class(&self, word: u32, context: &mut WordContext) -> u32 {
        if self.is_alone(word) {
            return self.class_of[word as usize];
        }
        context.load(word, self.bigrams, &self.class_of);
        self.find_gains(context);
        let (mut best, mut most) = match context.class {
            NONE => (NONE, f64::NEG_INFINITY),
            class => (class, self.gain(class as usize, context) + self.min_gain),
        };
        for (class, &gain) in context.gains.iter().enumerate() {
            if gain > most && class as u32 != context.class {
                (best, most) = (class as u32, gain);
            }
        }
        best
    }

    /// Moves a word to a class if that is still a gain, and returns whether it moved. A word without a class always
    /// moves.
    pub(crate) fn move_to(&mut self, word: u32, class: u32, context: &mut WordContext) -> bool {
        let own = self.class_of[word as usize];
        if own == class || self.is_alone(word) {
            return false;
        }
        context.load(word, self.bigrams, &self.class_of);
        if own != NONE {
            let gain = self.gain(class as usize, context) - self.gain(own as usize, context);
            if gain <= self.min_gain {
                return false;
            }
            self.take_out(context);
        }
        self.put_in(class, context);
        self.class_of[word as usize] = class;
        self.n_moves += 1;
        true
    }

    /// Whether a word is the only one of its class. Such a word stays: a move could not be a gain, and would leave an
    /// empty class.
    fn is_alone(&self, word: u32) -> bool {
        let class = self.class_of[word as usize];
        class != NONE && self.n_members[class as usize] == 1
    }

    /// Computes G(b) for all b except the word's own class.
    fn find_gains(&self, context: &mut WordContext) {
        let n = self.counts.n_clusters;
        let mut gains = std::mem::take(&mut context.gains);
        self.find_logarithms(context);
        self.find_margins(context, &mut gains);
        let WordContext { right, left, after, before, class, itself, .. } = &*context;
        let sides =
            [(&self.counts.left, after, right, left), (&self.counts.right, before, left, right)];
        for (counts, classes, own, other) in sides {
            for &d in classes {
                let row = &counts[d as usize * n..(d as usize + 1) * n];
                let x = own[d as usize];
                if d == *class {
                    // The counts of this class include the word.
                    for ((gain, &count), &with_word) in gains.iter_mut().zip(row).zip(other) {
                        *gain += self.rise(count.saturating_sub(with_word), x);
                    }
                } else {
                    for (gain, &count) in gains.iter_mut().zip(row) {
                        *gain += self.rise(count, x);
                    }
                }
                // The term of b = d follows below.
                gains[d as usize] -= self.rise(row[d as usize], x);
            }
        }
        for (b, gain) in gains.iter_mut().enumerate() {
            let x = right[b] + left[b] + itself;
            if x > 0 {
                *gain += self.rise(self.counts.right[b * n + b], x);
            }
        }
        context.gains = gains;
    }

    /// G(b) by its definition.
    fn gain(&self, b: usize, context: &WordContext) -> f64 {
        let WordContext { right, left, after, before, itself, .. } = context;
        let own = context.class as usize;
        // n'(c, d).
        let without_word = |c: usize, d: usize| {
            let mut count = self.counts.right[c * self.counts.n_clusters + d];
            if c == own {
                count -= right[d];
            }
            if d == own {
                count -= left[c];
            }
            if c == own && d == own { count - itself } else { count }
        };
        let mut gain = self.margin(b, context);
        for d in after.iter().map(|&d| d as usize).filter(|&d| d != b) {
            gain += self.rise(without_word(b, d), right[d]);
        }
        for d in before.iter().map(|&d| d as usize).filter(|&d| d != b) {
            gain += self.rise(without_word(d, b), left[d]);
        }
        gain + self.rise(without_word(b, b), right[b] + left[b] + itself)
    }

    fn find_logarithms(&self, context: &mut WordContext) {
        let (frequency, logarithms) = (context.frequency, &mut context.logarithms);
        let key = Some((frequency, self.n_moves));
        if logarithms.key == key {
            return;
        }
        let frequencies = self.counts.frequency.iter();
        let of_sum = frequencies.clone().map(|&f| ((f + frequency) as f64).ln()).collect();
        let of_class = frequencies.map(|&f| (f as f64).ln());
        let rise = of_class.zip(&of_sum).map(|(of_class, of_sum): (f64, &f64)| of_sum - of_class);
        let rise = rise.collect();
        *logarithms = Logarithms { key, of_sum, rise };
    }

    /// Computes the terms of G(b) that contain f(w), for all b except the word's own class.
    fn find_margins(&self, context: &WordContext, margins: &mut [f64]) {
        let WordContext { logarithms, right, left, n_neighbors: of_word, .. } = context;
        let terms = logarithms.of_sum.iter().zip(&logarithms.rise).zip(&self.counts.n_neighbors);
        for (margin, ((of_sum, rise), &n_neighbors)) in margins.iter_mut().zip(terms) {
            *margin = -(*of_word as f64 * of_sum) - n_neighbors as f64 * rise;
        }
        // If the word is in a class, the counts of b already include the word as a neighbor.
        if context.class == NONE {
            for (side, classes) in [(right, &context.after), (left, &context.before)] {
                for b in classes.iter().map(|&b| b as usize) {
                    margins[b] -= side[b] as f64 * logarithms.rise[b];
                }
            }
        }
    }

    /// The terms of G(b) that contain f(w).
    fn margin(&self, b: usize, context: &WordContext) -> f64 {
        let (mut frequency, mut n_neighbors) =
            (self.counts.frequency[b], self.counts.n_neighbors[b]);
        // If the word is in a class, the counts of b already include the word as a neighbor.
        match context.class {
            NONE => n_neighbors += context.right[b] + context.left[b],
            own if own as usize == b => {
                frequency -= context.frequency;
                n_neighbors -= context.n_neighbors;
            }
            _ => {}
        }
        let log_sum = ((frequency + context.frequency) as f64).ln();
        -(context.n_neighbors as f64 * log_sum)
            - n_neighbors as f64 * (log_sum - (frequency as f64).ln())
    }

    /// h(n, x).
    #[inline]
    fn rise(&self, n: u64, x: u64) -> f64 {
        self.entropy_terms.f(n + x) - self.entropy_terms.f(n)
    }

    fn take_out(&mut self, context: &WordContext) {
        let own = context.class as usize;
        let WordContext { right, left, after, before, .. } = context;
        after.iter().for_each(|&d| self.counts.subtract(own, d as usize, right[d as usize]));
        before.iter().for_each(|&d| self.counts.subtract(d as usize, own, left[d as usize]));
        self.counts.subtract(own, own, context.itself);
        self.counts.frequency[own] -= context.frequency;
        self.n_members[own] -= 1;
    }

    fn put_in(&mut self, class: u32, context: &WordContext) {
        let b = class as usize;
        let WordContext { right, left, after, before, .. } = context;
        after.iter().for_each(|&d| self.counts.add(b, d as usize, right[d as usize]));
        before.iter().for_each(|&d| self.counts.add(d as usize, b, left[d as usize]));
        self.counts.add(b, b, context.itself);
        self.counts.frequency[b] += context.frequency;
        self.n_members[b] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// The bigrams of a random text of `n_words` different words, some of which follow themselves.
    fn random_bigrams(n_words: u64, n_tokens: usize, seed: u64) -> Bigrams {
        let mut rng = Rng::new(seed);
        let mut word = || (rng.uniform() * rng.uniform() * n_words as f64) as u64;
        let text: Vec<u64> = (0..n_words).chain((0..n_tokens).map(|_| word())).collect();
        let mut frequency = vec![0; n_words as usize];
        text.iter().for_each(|&word| frequency[word as usize] += 1);
        let mut pairs = std::collections::BTreeMap::new();
        for pair in text.windows(2) {
            *pairs.entry(pair[0] << 32 | pair[1]).or_insert(0) += 1;
        }
        Bigrams::from_pairs(frequency, pairs.into_iter().collect())
    }

    fn information(bigrams: &Bigrams, class_of: &[u32], n_classes: usize) -> f64 {
        let counts = ClusterCounts::of(bigrams, class_of, n_classes);
        let information = counts.mutual_information(bigrams.n_tokens, bigrams.n_bigrams);
        information * bigrams.n_bigrams as f64 * std::f64::consts::LN_2
    }

    /// Asserts that the gains of a word agree with the changes of mutual information. For a word without a class, the
    /// baseline is class 0.
    fn assert_gains_agree_with_moves(classes: &Classes, word: u32) {
        let n_classes = classes.counts.n_clusters;
        let mut context = classes.context();
        let best = classes.best_class(word, &mut context);
        if classes.is_alone(word) {
            return assert_eq!(best, classes.class_of[word as usize]);
        }
        let in_class = |class: u32| {
            let mut class_of = classes.class_of.clone();
            class_of[word as usize] = class;
            information(classes.bigrams, &class_of, n_classes)
        };
        let own = if context.class == NONE { 0 } else { context.class };
        let gain_of_own = classes.gain(own as usize, &context);
        let mut most = (own, 0.0);
        for class in 0..n_classes as u32 {
            let expected = in_class(class) - in_class(own);
            let by_definition = classes.gain(class as usize, &context) - gain_of_own;
            assert!((by_definition - expected).abs() < 1e-9, "{by_definition} {expected}");
            if class != context.class {
                let found = context.gains[class as usize] - gain_of_own;
                assert!((found - expected).abs() < 1e-9, "{word} to {class}: {found} {expected}");
            }
            if expected > most.1 + 1e-9 {
                most = (class, expected);
            }
        }
        assert!((in_class(best) - in_class(most.0)).abs() < 1e-8);
    }

    #[test]
    fn gains_agree_with_the_change_of_mutual_information() {
        for seed in 0..10 {
            let bigrams = random_bigrams(15, 200, seed);
            for n_unplaced in [0, 5] {
                let class = |word: u32| if word < 15 - n_unplaced { word % 4 } else { NONE };
                let mut classes = Classes::new(&bigrams, (0..15).map(class).collect(), 4);
                let mut context = classes.context();
                for word in (0..15).chain(0..15) {
                    assert_gains_agree_with_moves(&classes, word);
                    let best = classes.best_class(word, &mut context);
                    classes.move_to(word, best, &mut context);
                    let recounted = ClusterCounts::of(&bigrams, &classes.class_of, 4);
                    assert_eq!(classes.counts.right, recounted.right);
                    assert_eq!(classes.counts.left, recounted.left);
                    assert_eq!(classes.counts.frequency, recounted.frequency);
                    assert_eq!(classes.counts.n_neighbors, recounted.n_neighbors);
                }
            }
        }
    }

    #[test]
    fn a_word_moves_only_if_the_mutual_information_rises() {
        let bigrams = random_bigrams(15, 200, 1);
        let mut classes = Classes::new(&bigrams, (0..15).map(|word| word % 4).collect(), 4);
        let mut context = classes.context();
        for word in 0..15 {
            for class in 0..4 {
                let before = classes.mutual_information();
                let moved = classes.move_to(word, class, &mut context);
                let after = classes.mutual_information();
                assert!(if moved { after > before } else { after == before }, "{before} {after}");
            }
        }
    }

    #[test]
    fn scaling_all_counts_does_not_change_the_classes() {
        let classes = |factor: u64| {
            let mut bigrams = random_bigrams(15, 200, 1);
            let pairs = (0..15).flat_map(|word| {
                let after = bigrams.after(word).iter();
                after.map(move |&(next, n)| (u64::from(word) << 32 | u64::from(next), n * factor))
            });
            let frequency = bigrams.frequency.iter().map(|n| n * factor).collect();
            bigrams = Bigrams::from_pairs(frequency, pairs.collect());
            let mut classes = Classes::new(&bigrams, (0..15).map(|word| word % 4).collect(), 4);
            let mut context = classes.context();
            for word in (0..15).cycle().take(60) {
                let best = classes.best_class(word, &mut context);
                classes.move_to(word, best, &mut context);
            }
            (classes.mutual_information(), classes.class_of.clone())
        };
        let expected = classes(1);
        for factor in [1 << 31, 1_000_000_000_000] {
            let found = classes(factor);
            assert_eq!(found.1, expected.1);
            assert!((found.0 - expected.0).abs() < 1e-12);
        }
    }
}
