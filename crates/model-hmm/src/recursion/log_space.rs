//! Sentences that are too unlikely for scales, done by logarithms.

use crate::fitted::block_cache::States;
use crate::recursion::expected_counts::{Block, Engine};
use crate::space::kept_lists::KeptLists;
use crate::tables::probability_tables::Tables;
use latens_math::Real;
use latens_math::chain::{LogChain, log_smooth};
use rayon::prelude::*;
use std::collections::BTreeMap;

impl<T: Real> Engine<T> {
    /// The posterior of sentences by logarithms: γ into its place, transitions into `counts`.
    pub(crate) fn smooth_in_logarithms(
        &mut self,
        tables: &Tables<T>,
        sentences: &[usize],
        log_probs: &mut [f64],
        counts: &mut Vec<Block<T>>,
    ) {
        let smoothed = sentences.par_iter().map(|&s| self.smooth_one_in_logarithms(tables, s));
        let smoothed: Vec<LogSmoothed<T>> = smoothed.collect();
        let mut blocks = LogBlocks::new();
        for (&sentence, smoothed) in sentences.iter().zip(smoothed) {
            log_probs[sentence] = smoothed.log_prob;
            let nodes =
                self.places[self.offsets[sentence]]..self.places[self.offsets[sentence + 1]];
            self.nodes[nodes].copy_from_slice(&smoothed.nodes);
            smoothed.blocks.iter().for_each(|(&key, values)| add_block(&mut blocks, key, values));
        }
        counts.clear();
        match &tables.lists {
            Some(lists) if !blocks.is_empty() => {
                counts.push(listed_block(lists, tables.n_states(), &blocks));
            }
            _ => counts.extend(blocks.into_iter().map(|((from, to), values)| {
                let values = values.iter().map(|&value| T::of(value)).collect();
                Block { from, to, values }
            })),
        }
    }

    fn smooth_one_in_logarithms(&self, tables: &Tables<T>, sentence: usize) -> LogSmoothed<T> {
        let begin = self.offsets[sentence];
        let first = self.places[begin];
        let mut nodes = vec![T::zero(); self.places[self.offsets[sentence + 1]] - first];
        let mut blocks = LogBlocks::new();
        let log_prob = log_smooth(
            &self.log_chain(tables, sentence),
            |step, values| {
                let at = begin + step;
                let nodes = &mut nodes[self.places[at] - first..self.places[at + 1] - first];
                nodes.iter_mut().zip(values).for_each(|(node, &value)| *node = T::of(value));
            },
            |step, values| {
                let at = begin + step;
                add_block(&mut blocks, (self.groups[at], self.groups[at + 1]), values);
            },
        );
        LogSmoothed { log_prob, nodes, blocks }
    }

    pub(crate) fn log_chain<'a>(
        &'a self,
        tables: &'a Tables<T>,
        sentence: usize,
    ) -> LogSentence<'a, T> {
        LogSentence {
            engine: self,
            tables,
            begin: self.offsets[sentence],
            n_steps: self.len(sentence),
        }
    }
}

/// Transitions between the states of two groups of words, added up.
type LogBlocks = BTreeMap<(u32, u32), Vec<f64>>;

fn add_block(blocks: &mut LogBlocks, key: (u32, u32), values: &[f64]) {
    let sums = blocks.entry(key).or_insert_with(|| vec![0.0; values.len()]);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Transitions between the states of pairs of lists as one block of all states.
fn listed_block<T: Real>(lists: &KeptLists, n_states: usize, blocks: &LogBlocks) -> Block<T> {
    let mut sums = vec![T::zero(); n_states * n_states];
    for (&(from, to), values) in blocks {
        let (from, to) = (lists.of(from as usize), lists.of(to as usize));
        for (&i, row) in from.iter().zip(values.chunks_exact(to.len())) {
            let sums = &mut sums[i as usize * n_states..(i as usize + 1) * n_states];
            to.iter().zip(row).for_each(|(&j, &value)| sums[j as usize] += T::of(value));
        }
    }
    Block { from: 0, to: 0, values: sums }
}

/// One sentence, done by logarithms.
struct LogSmoothed<T> {
    log_prob: f64,
    nodes: Vec<T>,
    blocks: LogBlocks,
}

/// One sentence of the batch, by the logarithms of its probabilities.
pub(crate) struct LogSentence<'a, T> {
    engine: &'a Engine<T>,
    tables: &'a Tables<T>,
    begin: usize,
    n_steps: usize,
}

impl<T: Real> LogChain for LogSentence<'_, T> {
    fn n_steps(&self) -> usize {
        self.n_steps
    }

    fn log_local(&self, step: usize) -> Vec<f64> {
        let at = self.begin + step;
        let mut log_local: Vec<f64> =
            self.engine.local_of(at).iter().map(|local| local.wide().ln()).collect();
        if step == 0 {
            let start = self.tables.pick(&self.tables.start, self.states(at));
            let start = start.iter().map(|start| start.wide().ln());
            log_local.iter_mut().zip(start).for_each(|(local, start)| *local += start);
        }
        log_local
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        let at = self.begin + step;
        self.tables.log_pairs(self.states(at), self.states(at + 1))
    }
}

impl<T: Real> LogSentence<'_, T> {
    fn states(&self, at: usize) -> States<'_> {
        self.tables.states(self.engine.groups[at] as usize)
    }
}
