//! The classes next to a word.

use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::NONE;

/// The classes next to one word, and scratch space for its gains; reused from word to word.
pub(crate) struct WordContext {
    /// R(d) of all classes.
    pub(crate) right: Vec<u64>,
    /// L(d) of all classes.
    pub(crate) left: Vec<u64>,
    /// The classes with R(d) > 0.
    pub(crate) after: Vec<u32>,
    /// The classes with L(d) > 0.
    pub(crate) before: Vec<u32>,
    /// S.
    pub(crate) itself: u64,
    /// N(w).
    pub(crate) n_neighbors: u64,
    /// f(w).
    pub(crate) frequency: u64,
    /// The class of the word, or [`NONE`].
    pub(crate) class: u32,
    /// G(b) of all classes, once computed.
    pub(crate) gains: Vec<f64>,
    pub(crate) logarithms: Logarithms,
}

/// ln (f(b) + f(w)) and its difference from ln f(b), for all b.
///
/// Most words have the same frequency as the previous one, so the logarithms are kept until a word moves or the
/// frequency changes.
#[derive(Default)]
pub(crate) struct Logarithms {
    /// The frequency and the number of moves for which the logarithms are valid.
    pub(crate) key: Option<(u64, u64)>,
    pub(crate) of_sum: Vec<f64>,
    pub(crate) rise: Vec<f64>,
}

impl WordContext {
    pub(crate) fn new(n_classes: usize) -> WordContext {
        WordContext {
            right: vec![0; n_classes],
            left: vec![0; n_classes],
            after: Vec::new(),
            before: Vec::new(),
            itself: 0,
            n_neighbors: 0,
            frequency: 0,
            class: NONE,
            gains: vec![0.0; n_classes],
            logarithms: Logarithms::default(),
        }
    }

    /// Replaces the context by that of `word`.
    pub(crate) fn load(&mut self, word: u32, bigrams: &Bigrams, class_of: &[u32]) {
        self.clear();
        self.class = class_of[word as usize];
        self.frequency = bigrams.frequency[word as usize];
        for &(next, count) in bigrams.after(word) {
            match class_of[next as usize] {
                _ if next == word => self.itself = count,
                NONE => {}
                class => add(&mut self.right, &mut self.after, class, count),
            }
        }
        for &(last, count) in bigrams.before(word).iter().filter(|&&(last, _)| last != word) {
            match class_of[last as usize] {
                NONE => {}
                class => add(&mut self.left, &mut self.before, class, count),
            }
        }
        let sum = |side: &[u64], classes: &[u32]| -> u64 {
            classes.iter().map(|&class| side[class as usize]).sum()
        };
        self.n_neighbors =
            sum(&self.right, &self.after) + sum(&self.left, &self.before) + 2 * self.itself;
    }

    fn clear(&mut self) {
        self.after.drain(..).for_each(|class| self.right[class as usize] = 0);
        self.before.drain(..).for_each(|class| self.left[class as usize] = 0);
        self.itself = 0;
    }
}

/// Adds to the count of a class, and records the class if its count was zero.
fn add(counts: &mut [u64], classes: &mut Vec<u32>, class: u32, count: u64) {
    let sum = &mut counts[class as usize];
    if *sum == 0 {
        classes.push(class);
    }
    *sum += count;
}
