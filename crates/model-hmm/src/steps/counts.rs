//! Expected counts of a text, and the probabilities that maximize their likelihood.

use crate::params::HmmParams;
use crate::space::kept_lists::KeptLists;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::{Block, ExpectedCounts, blocks_from};
use crate::tables::probability_tables::Tables;
use latens_corpus::Vocab;
use latens_math::Rng;
use rayon::prelude::*;

/// Expected counts of a text or of a part of it: the counts of the parts add up to those of the whole.
pub(crate) struct Counts {
    k: usize,
    start: Vec<f64>,
    /// In one k × k block per pair of clusters, so that a block lies in few pages of memory.
    transition: Vec<f64>,
    emission: Vec<f64>,
    tags: Vec<f64>,
}

impl Counts {
    /// Zero counts for a model with `n_emissions` emission probabilities.
    pub(crate) fn new(space: &StateSpace, n_emissions: usize, n_tags: usize) -> Counts {
        let n = space.n_states();
        Counts {
            k: space.k,
            start: vec![0.0; n],
            transition: vec![0.0; n * n],
            emission: vec![0.0; n_emissions],
            tags: vec![0.0; n_tags * n],
        }
    }

    /// Sets all counts to zero. Fresh memory would cost a page fault for every 4 KiB.
    pub(crate) fn clear(&mut self) {
        const CHUNK: usize = 1 << 16;
        for counts in [&mut self.start, &mut self.transition, &mut self.emission, &mut self.tags] {
            counts.par_chunks_mut(CHUNK).for_each(|counts| counts.fill(0.0));
        }
    }

    /// The counts of starts, transitions, emissions and tags, which add up over the parts of a text.
    pub(crate) fn into_parts(self) -> [Vec<f64>; 4] {
        [self.start, self.transition, self.emission, self.tags]
    }

    /// The inverse of [`Counts::into_parts`].
    pub(crate) fn from_parts(k: usize, parts: [Vec<f64>; 4]) -> Counts {
        let [start, transition, emission, tags] = parts;
        Counts { k, start, transition, emission, tags }
    }

    /// Adds the expected counts of a batch under the model of `tables`.
    pub(crate) fn add(&mut self, tables: &Tables<f32>, expected: &ExpectedCounts<f32>) {
        let k = self.k;
        add(&mut self.start, &expected.start);
        add(&mut self.tags, &expected.tags);
        let mut rest = &expected.emission[..];
        for slot in expected.slots.iter().map(|&slot| slot as usize) {
            let place = tables.lists.as_ref().map_or(slot * k..(slot + 1) * k, |l| l.range(slot));
            let (counts, others) = rest.split_at(place.len());
            rest = others;
            add(&mut self.emission[place], counts);
        }
        let n = tables.n_states();
        if let Some(lists) = &tables.lists {
            self.add_listed(lists, tables, expected);
        }
        debug_assert!(k == n || !tables.blocks.is_empty(), "clusters have blocks");
        let factors = if tables.blocks.is_empty() { &tables.transition } else { &tables.blocks };
        let clusters = self.transition.par_chunks_mut(k * n).zip(factors.par_chunks(k * n));
        clusters.enumerate().for_each(|(from, (sums, factors))| {
            let place =
                |block: &Block<f32>| block.to as usize * k * k..(block.to as usize + 1) * k * k;
            for block in blocks_from(&expected.ratios, from) {
                let sums = sums[place(block)].iter_mut().zip(&block.values);
                sums.zip(&factors[place(block)]).for_each(|((sum, &value), &factor)| {
                    *sum += f64::from(value) * f64::from(factor);
                });
            }
            for block in blocks_from(&expected.counts, from) {
                add(&mut sums[place(block)], &block.values);
            }
        });
    }

    /// Adds the expected transitions of a model with state lists.
    fn add_listed(
        &mut self,
        lists: &KeptLists,
        tables: &Tables<f32>,
        expected: &ExpectedCounts<f32>,
    ) {
        let n = tables.n_states();
        let rows = self.transition.par_chunks_mut(n).zip(tables.transition.par_chunks(n));
        rows.enumerate().for_each_init(
            || vec![0.0; n],
            |ratios, (state, (sums, factors))| {
                if !expected.listed.has_row(state) {
                    return;
                }
                ratios.fill(0.0);
                expected.listed.add_row(lists, state, ratios);
                for ((sum, &ratio), &factor) in sums.iter_mut().zip(&*ratios).zip(factors) {
                    *sum += f64::from(ratio) * f64::from(factor);
                }
            },
        );
    }

    /// Overwrites `tables` with the maximum-likelihood probabilities, after adding `prior` to the count of every
    /// allowed event. A state that was never visited keeps its probabilities.
    pub(crate) fn maximize(&self, space: &StateSpace, prior: f64, tables: &mut Tables<f32>) {
        let n = space.n_states();
        normalize(self.start.iter().map(|count| count + prior), &mut tables.start.iter_mut());
        let k = self.k;
        tables.transition.par_chunks_exact_mut(n).enumerate().for_each(|(state, row)| {
            let blocks = self.transition[state / k * k * n..].chunks_exact(k * k).take(n / k);
            let counts = blocks.flat_map(|block| &block[state % k * k..(state % k + 1) * k]);
            normalize(counts.map(|count| count + prior), &mut row.iter_mut());
        });
        self.maximize_emissions(space, prior, tables);
        for state in 0..if self.tags.is_empty() { 0 } else { n } {
            let counts = self.tags.iter().skip(state).step_by(n).map(|count| count + prior);
            normalize(counts, &mut tables.tags.iter_mut().skip(state).step_by(n));
        }
    }

    fn maximize_emissions(&self, space: &StateSpace, prior: f64, tables: &mut Tables<f32>) {
        if let Some(lists) = &tables.lists {
            let mut totals = vec![0.0; space.n_states()];
            let states = (0..lists.n_slots()).flat_map(|slot| lists.of(slot));
            for (&state, count) in states.clone().zip(&self.emission) {
                totals[state as usize] += count + prior;
            }
            for ((&state, count), b) in states.zip(&self.emission).zip(&mut tables.emission) {
                let total = totals[state as usize];
                *b = if total > 0.0 { ((count + prior) / total) as f32 } else { *b };
            }
            return;
        }
        // Row by row: columns are far apart in memory.
        let mut totals = vec![0.0; self.k];
        for cluster in 0..space.n_clusters() {
            let rows = |slot: usize| slot * self.k..(slot + 1) * self.k;
            totals.fill(0.0);
            for slot in space.slots(cluster) {
                let counts = totals.iter_mut().zip(&self.emission[rows(slot)]).enumerate();
                for (state, (total, count)) in counts {
                    if space.allows(slot, state) {
                        *total += count + prior;
                    }
                }
            }
            for slot in space.slots(cluster) {
                let counts = self.emission[rows(slot)].iter().zip(&totals).enumerate();
                let out = &mut tables.emission[rows(slot)];
                for (state, (count, &total)) in counts {
                    if total > 0.0 && space.allows(slot, state) {
                        out[state] = ((count + prior) / total) as f32;
                    }
                }
            }
        }
    }
}

fn add(sums: &mut [f64], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
}

/// Writes counts normalized to sum to 1, unless all are zero.
fn normalize(counts: impl Iterator<Item = f64> + Clone, out: &mut dyn Iterator<Item = &mut f32>) {
    let total: f64 = counts.clone().sum();
    if total > 0.0 {
        counts.zip(out).for_each(|(count, out)| *out = (count / total) as f32);
    }
}

/// The initial model: random weights for all allowed events, for words in proportion to their frequency.
pub(crate) fn initial(
    params: &HmmParams,
    space: &StateSpace,
    vocab: &Vocab,
    n_tags: usize,
) -> Tables<f32> {
    let mut rng = Rng::stream(params.seed, 0);
    // Normalized exponential variables are uniform on the simplex.
    let mut weight = move || -(1.0 - rng.uniform()).ln();
    let mut counts = Counts::new(space, space.n_slots() * space.k, n_tags);
    counts.start.iter_mut().for_each(|count| *count = weight());
    let (k, n) = (space.k, space.n_states());
    // Row by row, which is not the order of the blocks.
    for state in 0..n {
        let blocks = counts.transition[state / k * k * n..].chunks_exact_mut(k * k).take(n / k);
        let row = blocks.flat_map(|block| &mut block[state % k * k..(state % k + 1) * k]);
        row.for_each(|count| *count = weight());
    }
    counts.tags.iter_mut().for_each(|count| *count = weight());
    for (slot, &word) in space.words().iter().enumerate() {
        for state in 0..space.k {
            let frequency = vocab.count(word) as f64;
            let count = if space.allows(slot, state) { weight() * frequency } else { 0.0 };
            counts.emission[slot * space.k + state] = count;
        }
    }
    let mut tables = Tables {
        k: space.k,
        start: vec![0.0; counts.start.len()],
        transition: vec![0.0; counts.transition.len()],
        emission: vec![0.0; counts.emission.len()],
        tags: vec![0.0; counts.tags.len()],
        ..Tables::default()
    };
    counts.maximize(space, 0.0, &mut tables);
    tables
}
