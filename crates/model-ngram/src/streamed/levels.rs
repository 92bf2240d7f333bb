//! n-grams of all orders, written as they are counted.

use super::value::Value;
use crate::discounts::{Discounts, Numbers};
use crate::params::NgramParams;
use latens_corpus::WordId;
use latens_counts::CountError;
use latens_counts::spool::{Spool, Spooled};
use std::path::Path;

/// The n-grams of one order from 2 on, sorted by their reversed words.
pub(super) struct StreamedLevel {
    /// The first word of each n-gram, and its [`Value`].
    pub(super) nodes: Spooled<[u32; 2]>,
    /// Adjusted counts above 30 bits.
    pub(super) large: Vec<u64>,
    pub(super) discounts: Discounts,
}

/// The n-grams of all orders.
pub(crate) struct StreamedLevels {
    /// Adjusted counts of the words. The start of the sentence follows, with 0.
    pub(super) unigrams: Vec<u64>,
    pub(super) unigram_discounts: Discounts,
    /// Orders from 2 on.
    pub(super) levels: Vec<StreamedLevel>,
    pub(super) begin: u32,
}

impl StreamedLevels {
    /// The number of n-grams of the order that has most.
    pub(crate) fn largest_order(&self) -> u64 {
        let longer = self.levels.iter().map(|level| level.nodes.len());
        longer.fold(self.unigrams.len() as u64, u64::max)
    }

    /// The number of n-grams of all orders.
    pub(crate) fn n_ngrams(&self) -> u64 {
        self.unigrams.len() as u64 + self.levels.iter().map(|level| level.nodes.len()).sum::<u64>()
    }

    /// Number of children of an n-gram that is not of the highest order: an adjusted count is the number of distinct
    /// preceding words, except at the start of a sentence, which nothing precedes.
    #[inline]
    pub(super) fn n_children(&self, level: &StreamedLevel, [word, value]: [u32; 2]) -> u64 {
        if word == self.begin { 0 } else { Value(value).adjusted(&level.large) }
    }
}

/// Collects n-grams of the highest order, in ascending order of the reversed n-grams.
pub(crate) struct LevelWriter {
    unigrams: Vec<u64>,
    levels: Vec<OpenLevel>,
    /// Reversed words of the last n-gram.
    path: Vec<u32>,
    begin: u32,
}

struct OpenLevel {
    nodes: Spool<[u32; 2]>,
    large: Vec<u64>,
    numbers: Numbers,
    min_count: u64,
    /// The last n-gram, whose counts may still grow.
    open: Option<Node>,
}

struct Node {
    word: u32,
    count: u64,
    adjusted: u64,
}

impl LevelWriter {
    pub(crate) fn new(
        params: &NgramParams,
        n_words: usize,
        folder: &Path,
    ) -> Result<LevelWriter, CountError> {
        let level = |order: usize| {
            Ok(OpenLevel {
                nodes: Spool::new(folder)?,
                large: Vec::new(),
                numbers: Numbers::default(),
                min_count: params.min_count(order),
                open: None,
            })
        };
        Ok(LevelWriter {
            unigrams: vec![0; n_words + 1],
            levels: (2..=params.order).map(level).collect::<Result<_, CountError>>()?,
            path: Vec::new(),
            begin: WordId::from(n_words).0,
        })
    }

    /// Adds an n-gram of the highest order, given from last word to first and padded with the start of the sentence.
    pub(crate) fn add(&mut self, reversed: &[WordId], count: u64) -> Result<(), CountError> {
        let order = self.levels.len() + 1;
        let begins = reversed.iter().position(|word| word.0 == self.begin);
        let length = begins.map_or(order, |at| at + 1);
        let old = self.path.iter().zip(reversed).take_while(|(a, b)| **a == b.0).count();
        self.path.clear();
        self.path.extend(reversed[..length].iter().map(|word| word.0));
        for (depth, &word) in self.path.iter().enumerate() {
            let grows = if depth + 1 == order || word == self.begin {
                count
            } else {
                // If the next step of the path is new, one more word precedes this n-gram.
                u64::from(depth + 1 >= old)
            };
            if depth == 0 {
                self.unigrams[word as usize] += grows;
                continue;
            }
            let level = &mut self.levels[depth - 1];
            match &mut level.open {
                Some(node) if depth < old => {
                    node.count += count;
                    node.adjusted += grows;
                }
                _ => {
                    level.close()?;
                    level.open = Some(Node { word, count, adjusted: grows });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<StreamedLevels, CountError> {
        let LevelWriter { unigrams, levels, begin, .. } = self;
        let unigram_discounts = Discounts::of(&unigrams);
        let levels = levels.into_iter().map(|mut level| {
            level.close()?;
            let OpenLevel { nodes, large, numbers, .. } = level;
            let discounts = Discounts::from_numbers(&numbers);
            Ok(StreamedLevel { nodes: nodes.finish()?, large, discounts })
        });
        let levels = levels.collect::<Result<_, CountError>>()?;
        Ok(StreamedLevels { unigrams, unigram_discounts, levels, begin })
    }
}

impl OpenLevel {
    fn close(&mut self) -> Result<(), CountError> {
        let Some(Node { word, count, adjusted }) = self.open.take() else { return Ok(()) };
        self.numbers.add(adjusted);
        let value = Value::new(adjusted, count < self.min_count, &mut self.large);
        self.nodes.push([word, value.0])
    }
}
