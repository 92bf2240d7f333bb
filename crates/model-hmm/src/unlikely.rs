//! Sentences that are too unlikely for scales, done by logarithms.

use crate::expectations::{Block, Engine};
use crate::tables::Tables;
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
        let k = tables.k;
        let smoothed = sentences.par_iter().map(|&s| self.smooth_one_in_logarithms(tables, s));
        let smoothed: Vec<LogSmoothed<T>> = smoothed.collect();
        let mut blocks = LogBlocks::new();
        for (&sentence, smoothed) in sentences.iter().zip(smoothed) {
            log_probs[sentence] = smoothed.log_prob;
            let nodes = self.offsets[sentence] * k..self.offsets[sentence + 1] * k;
            self.nodes[nodes].copy_from_slice(&smoothed.nodes);
            smoothed.blocks.iter().for_each(|(&key, values)| add_block(&mut blocks, key, values));
        }
        counts.clear();
        counts.extend(blocks.into_iter().map(|((from, to), values)| {
            let values = values.iter().map(|&value| T::of(value)).collect();
            Block { from, to, values }
        }));
    }

    fn smooth_one_in_logarithms(&self, tables: &Tables<T>, sentence: usize) -> LogSmoothed<T> {
        let (k, begin) = (tables.k, self.offsets[sentence]);
        let mut nodes = vec![T::zero(); self.len(sentence) * k];
        let mut blocks = LogBlocks::new();
        let log_prob = log_smooth(
            &self.log_chain(tables, sentence),
            |step, values| {
                let nodes = nodes[step * k..(step + 1) * k].iter_mut();
                nodes.zip(values).for_each(|(node, &value)| *node = T::of(value));
            },
            |step, values| {
                let at = begin + step;
                add_block(&mut blocks, (self.clusters[at], self.clusters[at + 1]), values);
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

/// Transitions between the states of two clusters, k × k, added up.
type LogBlocks = BTreeMap<(u32, u32), Vec<f64>>;

fn add_block(blocks: &mut LogBlocks, key: (u32, u32), values: &[f64]) {
    let sums = blocks.entry(key).or_insert_with(|| vec![0.0; values.len()]);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
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
        let (k, at) = (self.tables.k, self.begin + step);
        let mut log_local: Vec<f64> =
            self.engine.local[at * k..(at + 1) * k].iter().map(|local| local.wide().ln()).collect();
        if step == 0 {
            let first = self.engine.clusters[at] as usize * k;
            let start = &self.tables.start[first..first + k];
            log_local.iter_mut().zip(start).for_each(|(local, start)| *local += start.wide().ln());
        }
        log_local
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        let at = self.begin + step;
        let (from, to) = (self.engine.clusters[at], self.engine.clusters[at + 1]);
        self.tables.log_block(from as usize, to as usize)
    }
}
