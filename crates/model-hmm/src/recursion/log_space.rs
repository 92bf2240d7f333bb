//! The recursion in log space, for sentences whose scaled recursion underflows.

use crate::recursion::workspace::Workspace;
use crate::space::kept_lists::KeptLists;
use crate::space::state_set::StateSet;
use crate::tables::expected_counts::Block;
use crate::tables::probability_tables::Tables;
use latens_math::Real;
use latens_math::chain::{LogChain, log_smooth};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// The sentences whose scaled recursion underflowed.
pub(crate) fn underflowed(log_probs: &[f64]) -> Vec<usize> {
    (0..log_probs.len()).filter(|&sentence| log_probs[sentence].is_nan()).collect()
}

impl<T: Real> Workspace<T> {
    /// Computes the posterior of some sentences: fills in ln p, calls `node` with the sentence, the token and γ of
    /// every token unless the sentence is impossible, and writes the transitions to `counts`.
    pub(crate) fn smooth_in_log_space(
        &self,
        tables: &Tables<T>,
        sentences: &[usize],
        log_probs: &mut [f64],
        counts: &mut Vec<Block<T>>,
        mut node: impl FnMut(usize, usize, &[T]),
    ) {
        let smoothed = sentences.par_iter().map(|&s| self.smooth_one_in_log_space(tables, s));
        let smoothed: Vec<LogSmoothed<T>> = smoothed.collect();
        let mut blocks = LogBlocks::new();
        for (&sentence, smoothed) in sentences.iter().zip(smoothed) {
            log_probs[sentence] = smoothed.log_prob;
            // Impossible, or a model with NaN.
            if !smoothed.log_prob.is_finite() {
                continue;
            }
            let mut nodes = &smoothed.nodes[..];
            for at in self.tokens(sentence) {
                let n = self.values(at).len();
                node(sentence, at, nodes.split_off(..n).expect("values of every token"));
            }
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

    fn smooth_one_in_log_space(&self, tables: &Tables<T>, sentence: usize) -> LogSmoothed<T> {
        let Range { start: begin, end } = self.tokens(sentence);
        let starts = &self.value_starts[begin..=end];
        let mut nodes = vec![T::zero(); starts[end - begin] - starts[0]];
        let mut blocks = LogBlocks::new();
        let log_prob = log_smooth(
            &self.log_chain(tables, sentence),
            |step, values| {
                let nodes = &mut nodes[starts[step] - starts[0]..starts[step + 1] - starts[0]];
                nodes.iter_mut().zip(values).for_each(|(node, &value)| *node = T::of(value));
            },
            |step, values| {
                let at = begin + step;
                add_block(&mut blocks, (self.groups[at], self.groups[at + 1]), values);
            },
        );
        LogSmoothed { log_prob, nodes, blocks }
    }

    /// A sentence of the batch as a chain in log space.
    pub(crate) fn log_chain<'a>(
        &'a self,
        tables: &'a Tables<T>,
        sentence: usize,
    ) -> LogSentence<'a, T> {
        LogSentence {
            workspace: self,
            tables,
            begin: self.sentence_starts[sentence],
            n_steps: self.len(sentence),
        }
    }
}

/// Sums of expected transitions between the states of two groups of words.
type LogBlocks = BTreeMap<(u32, u32), Vec<f64>>;

fn add_block(blocks: &mut LogBlocks, key: (u32, u32), values: &[f64]) {
    let sums = blocks.entry(key).or_insert_with(|| vec![0.0; values.len()]);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Combines the transitions between pairs of state lists into one block of all states.
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

/// The posterior of a sentence.
struct LogSmoothed<T> {
    log_prob: f64,
    nodes: Vec<T>,
    blocks: LogBlocks,
}

/// A sentence of the batch as a chain in log space.
pub(crate) struct LogSentence<'a, T> {
    workspace: &'a Workspace<T>,
    tables: &'a Tables<T>,
    begin: usize,
    n_steps: usize,
}

impl<T: Real> LogChain for LogSentence<'_, T> {
    fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// Adds logarithms, because products of probabilities may underflow.
    fn log_local(&self, step: usize) -> Vec<f64> {
        let (at, tables) = (self.begin + step, self.tables);
        let mut log_local = match self.workspace.slots[at] {
            // No state emits the word.
            u32::MAX => vec![f64::NEG_INFINITY; self.states(at).len(tables.k)],
            slot => {
                tables.emission_of(slot as usize).iter().map(|local| local.wide().ln()).collect()
            }
        };
        let mut add = |factors: &[T]| {
            let factors = factors.iter().map(|factor| factor.wide().ln());
            log_local.iter_mut().zip(factors).for_each(|(local, factor)| *local += factor);
        };
        if let Some(&tag) = self.workspace.tags.get(at).filter(|&&tag| tag != u32::MAX) {
            add(&tables.tag_of(tag, self.states(at)));
        }
        if step == 0 {
            add(&tables.pick(&tables.start, self.states(at)));
        }
        log_local
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        let at = self.begin + step;
        self.tables.log_pairs(self.states(at), self.states(at + 1))
    }
}

impl<T: Real> LogSentence<'_, T> {
    fn states(&self, at: usize) -> StateSet<'_> {
        self.tables.states(self.workspace.groups[at] as usize)
    }
}
