//! Structured mean field: the posterior of all layers as a product of chains, one a layer.
//!
//! Q(S) = Π_m q_m(S^m), each q_m the layer's own chain with a field f[t, m, k] at each token. The bound is
//!
//! ```text
//! Σ_m (ln Zq_m − Σ_t γ[t,m]·f[t,m]) + Σ_t (b[y_t] + Σ_m γ[t,m]·θ[y_t,m] − B_t)      B_t ≥ E_Q ln Z(s_t)
//! ```
//!
//! Layers are updated in turn, each with the newest posterior of the others, so that no update lowers the bound; all at
//! once they would swing to and fro where emissions are sharp.

use crate::inference::layer_chain::{ChainScratch, Column, LayerChain};
use crate::emission::coupling::Coupling;
use crate::distribution::Parameters;
use latens_math::Real;

/// How E_Q ln Z(s_t) is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Not at all: B = Σ_s Q(s) ln Z(s). The coupling is by ln Z.
    Exact,
    /// B = ln Σ_s Q(s) Π w Z(s) − E ln w, with the best weights w. The coupling is by Z.
    Tilted,
    /// B = ln Σ_s Q(s) Z(s), as in the paper. The coupling is by Z.
    Jensen,
}

/// Where the fields begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At zero: q is the prior.
    #[cfg_attr(not(test), expect(dead_code, reason = "golden numbers begin there"))]
    Prior,
    /// At the scores of each token's word.
    Scores,
}

/// When a sentence is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) sweeps: usize,
    /// In nats a token.
    pub(crate) gain: f64,
    pub(crate) change: f64,
}

/// A word that no state emits: such a token says nothing of its states.
pub(crate) const MISSING: u32 = u32::MAX;

/// π and A of all layers, ready for use.
pub(crate) fn chains<T: Real>(parameters: &Parameters<T>) -> Vec<LayerChain<T>> {
    let k = parameters.shape.n_states;
    let layers = parameters.start.chunks_exact(k).zip(parameters.transition.chunks_exact(k * k));
    layers.map(|(start, transition)| LayerChain::new(start, transition)).collect()
}

/// Some sentences under inference, side by side.
pub(crate) struct MeanField<'a, T, C> {
    parameters: &'a Parameters<T>,
    chains: &'a [LayerChain<T>],
    coupling: C,
    bound: Bound,
    words: Vec<u32>,
    /// Where each sentence begins, and where the last one ends.
    ends: Vec<usize>,
    /// tokens × layers × states.
    pub(crate) fields: Vec<T>,
    pub(crate) gamma: Vec<T>,
    /// γ w for [`Bound::Tilted`], else γ.
    pub(crate) tilted: Vec<T>,
    /// ln Zq of each sentence and layer.
    log_sums: Vec<f64>,
    /// B of each token.
    partition: Vec<f64>,
    sums: Vec<T>,
    scratch: ChainScratch<T>,
}

impl<'a, T: Real, C: Coupling<T>> MeanField<'a, T, C> {
    /// Sentences without words are none.
    pub(crate) fn new(
        parameters: &'a Parameters<T>,
        chains: &'a [LayerChain<T>],
        coupling: C,
        bound: Bound,
        sentences: &[&[u32]],
        start: Start,
    ) -> MeanField<'a, T, C> {
        let words: Vec<u32> = sentences.concat();
        let mut ends = vec![0];
        sentences.iter().for_each(|sentence| ends.push(ends[ends.len() - 1] + sentence.len()));
        let n_values = words.len() * parameters.shape.row();
        let mut this = MeanField {
            parameters,
            chains,
            coupling,
            bound,
            ends,
            fields: vec![T::zero(); n_values],
            gamma: vec![T::zero(); n_values],
            tilted: vec![],
            log_sums: vec![0.0; sentences.len() * parameters.shape.n_layers],
            partition: vec![0.0; words.len()],
            words,
            sums: vec![],
            scratch: ChainScratch::default(),
        };
        if start == Start::Scores {
            this.begin_at_scores();
        }
        (0..parameters.shape.n_layers).for_each(|layer| this.smooth(layer));
        this.tilted.clone_from(&this.gamma);
        this
    }

    fn begin_at_scores(&mut self) {
        let shape = self.parameters.shape;
        for (fields, &word) in self.fields.chunks_exact_mut(shape.row()).zip(&self.words) {
            if word == MISSING {
                continue;
            }
            fields.copy_from_slice(self.parameters.scores(word as usize));
            for layer in fields.chunks_exact_mut(shape.n_states) {
                let mean = layer.iter().copied().sum::<T>() / T::of(layer.len() as f64);
                layer.iter_mut().for_each(|field| *field -= mean);
            }
        }
    }

    /// Updates all layers once, in turn.
    pub(crate) fn sweep(&mut self) {
        for layer in 0..self.parameters.shape.n_layers {
            let mut sums = std::mem::take(&mut self.sums);
            self.coupling.sums(layer, &self.tilted, &mut sums);
            self.set_fields(layer, &sums);
            self.smooth(layer);
            self.tilt(layer, &sums);
            self.sums = sums;
        }
        self.set_partition();
    }

    /// The field of a layer, from the sums over the other layers.
    fn set_fields(&mut self, layer: usize, sums: &[T]) {
        /// What is below this is impossible anyway.
        const LOWEST: f64 = -1e4;
        let shape = self.parameters.shape;
        let (row, k) = (shape.row(), shape.n_states);
        let tokens = self.fields.chunks_exact_mut(row).zip(self.gamma.chunks_exact(row));
        for ((sums, &word), (fields, gamma)) in sums.chunks_exact(k).zip(&self.words).zip(tokens) {
            if word == MISSING {
                continue;
            }
            let scores = &self.parameters.scores(word as usize)[shape.layer(layer)];
            let fields = &mut fields[shape.layer(layer)];
            let pairs = fields.iter_mut().zip(scores.iter().zip(sums));
            match self.bound {
                Bound::Exact => pairs.for_each(|(f, (&score, &h))| *f = score - h),
                Bound::Tilted => pairs.for_each(|(f, (&score, &g))| *f = score - positive(g).ln()),
                Bound::Jensen => {
                    let gamma = &gamma[shape.layer(layer)];
                    let mean: T = gamma.iter().zip(sums).map(|(&gamma, &g)| gamma * g).sum();
                    let phi = T::one() / mean;
                    let lowest = T::of(LOWEST);
                    pairs.for_each(|(f, (&score, &g))| {
                        *f = score - phi * g;
                        *f = if *f < lowest { lowest } else { *f };
                    });
                }
            }
        }
    }

    /// The posterior of a layer, from its fields.
    fn smooth(&mut self, layer: usize) {
        let shape = self.parameters.shape;
        let (row, column) = (shape.row(), self.column(layer));
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (sentence, ends) in self.ends.windows(2).enumerate() {
                    let range = ends[0] * row..ends[1] * row;
                    let (fields, gamma) = (&self.fields[range.clone()], &mut self.gamma[range]);
                    self.log_sums[sentence * shape.n_layers + layer] =
                        self.chains[layer].smooth(fields, gamma, column, &mut self.scratch);
                }
            },
        );
    }

    fn tilt(&mut self, layer: usize, sums: &[T]) {
        let shape = self.parameters.shape;
        let (row, k) = (shape.row(), shape.n_states);
        let rows = self.tilted.chunks_exact_mut(row).zip(self.gamma.chunks_exact(row));
        for ((tilted, gamma), sums) in rows.zip(sums.chunks_exact(k)) {
            let tilted = &mut tilted[shape.layer(layer)];
            tilted.copy_from_slice(&gamma[shape.layer(layer)]);
            if self.bound == Bound::Tilted {
                tilted.iter_mut().zip(sums).for_each(|(tilted, &g)| *tilted /= positive(g));
            }
        }
    }

    /// B of every token after a sweep; the sums are those of the last layer.
    fn set_partition(&mut self) {
        let shape = self.parameters.shape;
        let (row, k) = (shape.row(), shape.n_states);
        let last = shape.layer(shape.n_layers - 1);
        for (t, &word) in self.words.iter().enumerate() {
            let gamma = &self.gamma[t * row..(t + 1) * row];
            let mean = || -> f64 {
                let sums = self.sums[t * k..(t + 1) * k].iter();
                gamma[last.clone()].iter().zip(sums).map(|(&p, &sum)| (p * sum).wide()).sum()
            };
            self.partition[t] = match self.bound {
                _ if word == MISSING => 0.0,
                Bound::Exact => mean(),
                Bound::Jensen => mean().ln(),
                // With w = 1/g of every layer the first term is ln Σ γ = 0, and ln w = f − θ.
                Bound::Tilted => {
                    let scores = self.parameters.scores(word as usize).iter();
                    let fields = self.fields[t * row..(t + 1) * row].iter();
                    let pairs = gamma.iter().zip(scores.zip(fields));
                    pairs.map(|(&p, (&score, &f))| (p * (score - f)).wide()).sum()
                }
            };
        }
    }

    /// The bound of each sentence, after a sweep.
    pub(crate) fn bounds(&self) -> Vec<f64> {
        let n_layers = self.parameters.shape.n_layers;
        let sentences = self.ends.windows(2).zip(self.log_sums.chunks_exact(n_layers));
        let bound = |(ends, log_sums): (&[usize], &[f64])| -> f64 {
            let tokens: f64 = (ends[0]..ends[1]).map(|t| self.bound_of_token(t)).sum();
            log_sums.iter().sum::<f64>() + tokens
        };
        sentences.map(bound).collect()
    }

    fn bound_of_token(&self, t: usize) -> f64 {
        let row = self.parameters.shape.row();
        let (range, word) = (t * row..(t + 1) * row, self.words[t]);
        if word == MISSING {
            return 0.0;
        }
        let scores = self.parameters.scores(word as usize).iter();
        let pairs = self.gamma[range.clone()].iter().zip(scores.zip(&self.fields[range]));
        let sum: f64 = pairs.map(|(&p, (&score, &f))| (p * (score - f)).wide()).sum();
        self.parameters.base[word as usize].wide() + sum - self.partition[t]
    }

    fn column(&self, layer: usize) -> Column {
        let shape = self.parameters.shape;
        Column { first: layer * shape.n_states, row: shape.row() }
    }
}

/// A sum of positive numbers that may have been lost to the range of single precision.
fn positive<T: Real>(sum: T) -> T {
    if sum > T::min_positive_value() { sum } else { T::min_positive_value() }
}

/// What was found for a sentence.
pub(crate) struct Found<'f, T> {
    /// Which one.
    pub(crate) sentence: usize,
    pub(crate) words: &'f [u32],
    pub(crate) fields: &'f [T],
    pub(crate) tilted: &'f [T],
    pub(crate) bound: f64,
    pub(crate) sweeps: usize,
}

impl<T: Real, C: Coupling<T>> MeanField<'_, T, C> {
    /// Sweeps until every sentence is done; tells of each when it is.
    pub(crate) fn run(mut self, stop: Stop, found: &mut dyn FnMut(Found<'_, T>)) {
        let mut sentences: Vec<usize> = (0..self.ends.len() - 1).collect();
        let mut last = vec![f64::NEG_INFINITY; sentences.len()];
        let (row, mut before) = (self.parameters.shape.row(), vec![]);
        for sweeps in 1.. {
            before.clone_from(&self.gamma);
            self.sweep();
            let bounds = self.bounds();
            let is_done: Vec<bool> = (0..sentences.len())
                .map(|i| {
                    let (begin, end) = (self.ends[i], self.ends[i + 1]);
                    let gain = (bounds[i] - last[i]) / (end - begin) as f64;
                    sweeps >= stop.sweeps
                        || gain < stop.gain
                        || self.change(&before, begin * row..end * row) < stop.change
                })
                .collect();
            for i in (0..sentences.len()).filter(|&i| is_done[i]) {
                let (begin, end) = (self.ends[i], self.ends[i + 1]);
                found(Found {
                    sentence: sentences[i],
                    words: &self.words[begin..end],
                    fields: &self.fields[begin * row..end * row],
                    tilted: &self.tilted[begin * row..end * row],
                    bound: bounds[i],
                    sweeps,
                });
            }
            let mut keep = is_done.iter().map(|done| !done);
            last = bounds;
            last.retain(|_| keep.next().expect("one a sentence"));
            let mut keep = is_done.iter().map(|done| !done);
            sentences.retain(|_| keep.next().expect("one a sentence"));
            if sentences.is_empty() {
                return;
            }
            if is_done.contains(&true) {
                self.retain(&is_done);
            }
        }
    }

    /// The largest change of a posterior.
    fn change(&self, before: &[T], range: std::ops::Range<usize>) -> f64 {
        let pairs = self.gamma[range.clone()].iter().zip(&before[range]);
        let mut largest = T::zero();
        for (&now, &before) in pairs {
            let change = if now > before { now - before } else { before - now };
            largest = if change > largest { change } else { largest };
        }
        largest.wide()
    }

    /// Drops the sentences that are done.
    fn retain(&mut self, is_done: &[bool]) {
        let (row, n_layers) = (self.parameters.shape.row(), self.parameters.shape.n_layers);
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let (mut to, mut kept) = (0, 0);
        for (i, _) in is_done.iter().enumerate().filter(|(_, done)| !**done) {
            let (begin, end) = (ends[i], ends[i + 1]);
            self.words.copy_within(begin..end, to);
            for values in [&mut self.fields, &mut self.gamma, &mut self.tilted] {
                values.copy_within(begin * row..end * row, to * row);
            }
            self.log_sums.copy_within(i * n_layers..(i + 1) * n_layers, kept * n_layers);
            to += end - begin;
            kept += 1;
            self.ends.push(to);
        }
        self.words.truncate(to);
        self.partition.truncate(to);
        self.log_sums.truncate(kept * n_layers);
        for values in [&mut self.fields, &mut self.gamma, &mut self.tilted] {
            values.truncate(to * row);
        }
    }
}

#[cfg(test)]
impl<T: Real, C: Coupling<T>> MeanField<'_, T, C> {
    /// The bound of all sentences for the posteriors and weights as they are, whatever was done before.
    pub(crate) fn bound_as_it_is(&mut self) -> f64 {
        let (row, k) = (self.parameters.shape.row(), self.parameters.shape.n_states);
        let mut sums = vec![];
        let weights = if self.bound == Bound::Exact { &self.gamma } else { &self.tilted };
        for layer in 0..self.parameters.shape.n_layers {
            self.coupling.sums(layer, weights, &mut sums);
        }
        for t in 0..self.words.len() {
            let (gamma, weights) =
                (&self.gamma[t * row..(t + 1) * row], &weights[t * row..(t + 1) * row]);
            let last = weights[row - k..].iter().zip(&sums[t * k..(t + 1) * k]);
            let sum: f64 = last.map(|(&weight, &sum)| (weight * sum).wide()).sum();
            let pairs = gamma.iter().zip(weights);
            let tilt: f64 = pairs.map(|(&p, &weight)| (p * (weight / p).ln()).wide()).sum();
            self.partition[t] = if self.bound == Bound::Exact { sum } else { sum.ln() - tilt };
        }
        self.bounds().iter().sum()
    }

    /// A sweep in which every layer looks at the others as they were before it.
    pub(crate) fn sweep_at_once(&mut self) {
        let before = self.tilted.clone();
        let n_layers = self.parameters.shape.n_layers;
        let all: Vec<Vec<T>> = (0..n_layers)
            .map(|layer| {
                let mut sums = vec![];
                self.coupling.sums(layer, &before, &mut sums);
                sums
            })
            .collect();
        for (layer, sums) in all.iter().enumerate() {
            self.set_fields(layer, sums);
            self.smooth(layer);
            self.tilt(layer, sums);
        }
    }
}
