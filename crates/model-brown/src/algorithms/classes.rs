//! Words in classes, and what a word gains in each of them.
//!
//! With the counts n, f, l and r of `table.rs`, and F(x) = x ln x, the mutual information is, up to terms
//! that no move of a word changes,
//!
//! ```text
//! T · MI = Σ_cd F(n(c,d)) − Σ_c (l(c) + r(c)) ln f(c)
//! ```
//!
//! Let R(d) and L(d) be how often a word w stands right before and right after words of class d, w itself
//! aside; S how often it follows itself; N(w) = Σ_d (R(d) + L(d)) + 2 S. Primes are counts of the classes
//! without w. Then w adds to T · MI in class b, up to terms that are the same in every class,
//!
//! ```text
//! G(b) = Σ_{d≠b} [h(n'(b,d), R(d)) + h(n'(d,b), L(d))] + h(n'(b,b), R(b) + L(b) + S)
//!        − N(w) ln (f'(b) + f(w)) − (l' + r' + R + L)(b) · (ln (f'(b) + f(w)) − ln f'(b))
//! h(n, x) = F(n + x) − F(n)
//! ```
//!
//! and a move from a to b changes it by G(b) − G(a). Without w, n(a,d) is less by R(d), n(d,a) by L(d),
//! n(a,a) by R(a) + L(a) + S, and nothing else differs: so the gains of all classes need no counts but
//! those that are there, and many words can be looked at together.

use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::{ClusterCounts, NONE};
use crate::counts::entropy::EntropyTerms;

/// Words in classes, of which each has a word at least.
pub(crate) struct Classes<'a> {
    bigrams: &'a Bigrams,
    counts: ClusterCounts,
    class_of: Vec<u32>,
    /// How many words each class has.
    n_members: Vec<u32>,
    entropy_terms: EntropyTerms,
    /// How many words have moved.
    n_moves: u64,
    /// What must be gained by a move. Rounding errors of gains are some 1e-15 of T ln T.
    least_gain: f64,
}

/// The classes that stand next to a word; made for one word after the other.
pub(crate) struct Context {
    /// R(d) and L(d) of all classes.
    right: Vec<u64>,
    left: Vec<u64>,
    /// Those where R(d), or L(d), is not zero.
    after: Vec<u32>,
    before: Vec<u32>,
    /// S.
    itself: u64,
    /// N(w).
    n_neighbours: u64,
    frequency: u64,
    /// The word's class, or [`NONE`].
    class: u32,
    /// G(b), where it was asked for.
    gains: Vec<f64>,
    logarithms: Logarithms,
}

/// ln (f(b) + f(w)) and its difference from ln f(b), for all b. Most words are as frequent as the last one,
/// so it is kept until a word moves or another frequency comes.
#[derive(Default)]
struct Logarithms {
    /// The frequency and the number of moves that it is of.
    key: Option<(u64, u64)>,
    of_sum: Vec<f64>,
    rise: Vec<f64>,
}

impl<'a> Classes<'a> {
    /// Classes of words; some words may have [`NONE`].
    pub(crate) fn new(bigrams: &'a Bigrams, class_of: Vec<u32>, n_classes: usize) -> Classes<'a> {
        let mut n_members = vec![0; n_classes];
        let classes = class_of.iter().filter(|&&class| class != NONE);
        classes.for_each(|&class| n_members[class as usize] += 1);
        assert!(!n_members.contains(&0), "every class has a word");
        let counts = ClusterCounts::of(bigrams, &class_of, n_classes);
        let entropy_terms = EntropyTerms::new();
        let least_gain = 1e-11 * entropy_terms.f(bigrams.n_tokens);
        Classes { bigrams, counts, class_of, n_members, entropy_terms, n_moves: 0, least_gain }
    }

    /// The class of each word.
    pub(crate) fn class_of(&self) -> &[u32] {
        &self.class_of
    }

    /// How often classes stand anywhere and next to each other.
    pub(crate) fn counts(&self) -> &ClusterCounts {
        &self.counts
    }

    /// The mutual information of neighbouring classes, in bits.
    pub(crate) fn mutual_information(&self) -> f64 {
        self.counts.mutual_information(self.bigrams.n_tokens, self.bigrams.n_bigrams)
    }

    /// An empty context, to be used for one word after the other.
    pub(crate) fn context(&self) -> Context {
        let n_classes = self.counts.n_clusters;
        Context {
            right: vec![0; n_classes],
            left: vec![0; n_classes],
            after: Vec::new(),
            before: Vec::new(),
            itself: 0,
            n_neighbours: 0,
            frequency: 0,
            class: NONE,
            gains: vec![0.0; n_classes],
            logarithms: Logarithms::default(),
        }
    }

    /// The class where a word gains most: its own, unless another is better; the lowest, if several are.
    pub(crate) fn best_class(&self, word: u32, context: &mut Context) -> u32 {
        if self.is_alone(word) {
            return self.class_of[word as usize];
        }
        self.look_around(word, context);
        self.find_gains(context);
        let (mut best, mut most) = match context.class {
            NONE => (NONE, f64::NEG_INFINITY),
            class => (class, self.gain(class as usize, context) + self.least_gain),
        };
        for (class, &gain) in context.gains.iter().enumerate() {
            if gain > most && class as u32 != context.class {
                (best, most) = (class as u32, gain);
            }
        }
        best
    }

    /// Moves a word, if that still is a gain; a word without a class is only put there.
    pub(crate) fn move_to(&mut self, word: u32, class: u32, context: &mut Context) -> bool {
        let own = self.class_of[word as usize];
        if own == class || self.is_alone(word) {
            return false;
        }
        self.look_around(word, context);
        if own != NONE {
            let gain = self.gain(class as usize, context) - self.gain(own as usize, context);
            if gain <= self.least_gain {
                return false;
            }
            self.take_out(context);
        }
        self.put_in(class, context);
        self.class_of[word as usize] = class;
        self.n_moves += 1;
        true
    }

    /// Whether a word is all that its class has: it cannot leave it, and could not gain by that.
    fn is_alone(&self, word: u32) -> bool {
        let class = self.class_of[word as usize];
        class != NONE && self.n_members[class as usize] == 1
    }

    /// Makes the context of a word.
    fn look_around(&self, word: u32, context: &mut Context) {
        context.clear();
        context.class = self.class_of[word as usize];
        context.frequency = self.bigrams.frequency[word as usize];
        for &(next, count) in self.bigrams.after(word) {
            match self.class_of[next as usize] {
                _ if next == word => context.itself = count,
                NONE => {}
                class => add(&mut context.right, &mut context.after, class, count),
            }
        }
        for &(last, count) in self.bigrams.before(word).iter().filter(|&&(last, _)| last != word) {
            match self.class_of[last as usize] {
                NONE => {}
                class => add(&mut context.left, &mut context.before, class, count),
            }
        }
        let sum = |side: &[u64], classes: &[u32]| -> u64 {
            classes.iter().map(|&class| side[class as usize]).sum()
        };
        context.n_neighbours = sum(&context.right, &context.after)
            + sum(&context.left, &context.before)
            + 2 * context.itself;
    }

    /// G(b) for all b but the word's own class.
    fn find_gains(&self, context: &mut Context) {
        let n = self.counts.n_clusters;
        let mut gains = std::mem::take(&mut context.gains);
        self.find_logarithms(context);
        self.find_margins(context, &mut gains);
        let Context { right, left, after, before, class, itself, .. } = &*context;
        let sides =
            [(&self.counts.left, after, right, left), (&self.counts.right, before, left, right)];
        for (counts, classes, own, other) in sides {
            for &d in classes {
                let row = &counts[d as usize * n..(d as usize + 1) * n];
                let x = own[d as usize];
                if d == *class {
                    // Its counts have the word in them.
                    for ((gain, &count), &with_word) in gains.iter_mut().zip(row).zip(other) {
                        *gain += self.rise(count.saturating_sub(with_word), x);
                    }
                } else {
                    for (gain, &count) in gains.iter_mut().zip(row) {
                        *gain += self.rise(count, x);
                    }
                }
                // What b = d gains comes below.
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

    /// G(b), by its definition.
    fn gain(&self, b: usize, context: &Context) -> f64 {
        let Context { right, left, after, before, itself, .. } = context;
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

    fn find_logarithms(&self, context: &mut Context) {
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

    /// The terms of G(b) that have f(w) in them, for all b but the word's own class.
    fn find_margins(&self, context: &Context, margins: &mut [f64]) {
        let Context { logarithms, right, left, n_neighbours: of_word, .. } = context;
        let terms = logarithms.of_sum.iter().zip(&logarithms.rise).zip(&self.counts.n_neighbours);
        for (margin, ((of_sum, rise), &n_neighbours)) in margins.iter_mut().zip(terms) {
            *margin = -(*of_word as f64 * of_sum) - n_neighbours as f64 * rise;
        }
        // Neighbours that the word is of b are counted already, if it is in a class.
        if context.class == NONE {
            for (side, classes) in [(right, &context.after), (left, &context.before)] {
                for b in classes.iter().map(|&b| b as usize) {
                    margins[b] -= side[b] as f64 * logarithms.rise[b];
                }
            }
        }
    }

    /// The terms of G(b) that have f(w) in them.
    fn margin(&self, b: usize, context: &Context) -> f64 {
        let (mut frequency, mut n_neighbours) =
            (self.counts.frequency[b], self.counts.n_neighbours[b]);
        // Neighbours that the word is of b are counted already, if it is in a class.
        match context.class {
            NONE => n_neighbours += context.right[b] + context.left[b],
            own if own as usize == b => {
                frequency -= context.frequency;
                n_neighbours -= context.n_neighbours;
            }
            _ => {}
        }
        let log_sum = ((frequency + context.frequency) as f64).ln();
        -(context.n_neighbours as f64 * log_sum)
            - n_neighbours as f64 * (log_sum - (frequency as f64).ln())
    }

    /// h(n, x).
    #[inline]
    fn rise(&self, n: u64, x: u64) -> f64 {
        self.entropy_terms.f(n + x) - self.entropy_terms.f(n)
    }

    fn take_out(&mut self, context: &Context) {
        let own = context.class as usize;
        let Context { right, left, after, before, .. } = context;
        after.iter().for_each(|&d| self.counts.subtract(own, d as usize, right[d as usize]));
        before.iter().for_each(|&d| self.counts.subtract(d as usize, own, left[d as usize]));
        self.counts.subtract(own, own, context.itself);
        self.counts.frequency[own] -= context.frequency;
        self.n_members[own] -= 1;
    }

    fn put_in(&mut self, class: u32, context: &Context) {
        let b = class as usize;
        let Context { right, left, after, before, .. } = context;
        after.iter().for_each(|&d| self.counts.add(b, d as usize, right[d as usize]));
        before.iter().for_each(|&d| self.counts.add(d as usize, b, left[d as usize]));
        self.counts.add(b, b, context.itself);
        self.counts.frequency[b] += context.frequency;
        self.n_members[b] += 1;
    }
}

impl Context {
    fn clear(&mut self) {
        self.after.drain(..).for_each(|class| self.right[class as usize] = 0);
        self.before.drain(..).for_each(|class| self.left[class as usize] = 0);
        self.itself = 0;
    }
}

/// Adds to the count of a class, and notes the class if it is new.
fn add(counts: &mut [u64], classes: &mut Vec<u32>, class: u32, count: u64) {
    let sum = &mut counts[class as usize];
    if *sum == 0 {
        classes.push(class);
    }
    *sum += count;
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// A random text of `n_words` words as counts, some words after themselves.
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

    /// Whether the gains of a word are what its moves really gain. A word without a class is compared with
    /// itself in class 0.
    fn assert_gains_are_right(classes: &Classes, word: u32) {
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
    fn gains_are_what_moves_gain() {
        for seed in 0..10 {
            let bigrams = random_bigrams(15, 200, seed);
            for n_unplaced in [0, 5] {
                let class = |word: u32| if word < 15 - n_unplaced { word % 4 } else { NONE };
                let mut classes = Classes::new(&bigrams, (0..15).map(class).collect(), 4);
                let mut context = classes.context();
                for word in (0..15).chain(0..15) {
                    assert_gains_are_right(&classes, word);
                    let best = classes.best_class(word, &mut context);
                    classes.move_to(word, best, &mut context);
                    let anew = ClusterCounts::of(&bigrams, &classes.class_of, 4);
                    assert_eq!(classes.counts.right, anew.right);
                    assert_eq!(classes.counts.left, anew.left);
                    assert_eq!(classes.counts.frequency, anew.frequency);
                    assert_eq!(classes.counts.n_neighbours, anew.n_neighbours);
                }
            }
        }
    }

    #[test]
    fn a_move_that_is_no_gain_any_more_is_not_made() {
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
    fn large_counts_give_the_classes_of_small_ones() {
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
