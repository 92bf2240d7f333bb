//! Structured mean field: the posterior of all layers as a product of chains, one per layer.
//!
//! Q(S) = Π_m q_m(S^m), where q_m is the chain of layer m with a field f[t, m, k] at each token. The bound is
//!
//! ```text
//! Σ_m (ln Zq_m − Σ_t γ[t,m]·f[t,m]) + Σ_t (b[y_t] + Σ_m γ[t,m]·θ[y_t,m] − B_t)      B_t ≥ E_Q ln Z(s_t)
//! ```
//!
//! Layers are updated in turn, each given the latest posteriors of the others, so that no update decreases the bound.
//! Simultaneous updates would oscillate where emissions are sharp.

use crate::distribution::Distribution;
use crate::emission::coupling::Coupling;
use crate::inference::layer_chain::{ChainScratch, Column, LayerChain};
use crate::word_rows::MISSING;
use latens_math::Real;

/// Bound B_t on E_Q ln Z(s_t).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The expectation itself: B = Σ_s Q(s) ln Z(s). The coupling is by ln Z.
    Exact,
    /// Tilted bound: B = ln Σ_s Q(s) Π w Z(s) − E ln w, with optimal weights w. The coupling is by Z.
    Tilted,
    /// Jensen's bound: B = ln Σ_s Q(s) Z(s) (Nepal and Yates 2013). The coupling is by Z.
    Jensen,
}

/// Initialization of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Zero: q is the prior.
    #[cfg_attr(not(test), expect(dead_code, reason = "initialization of the golden numbers"))]
    Prior,
    /// Scores of the word of each token.
    Scores,
}

/// Builds the chains of all layers.
pub(crate) fn chains<T: Real>(distribution: &Distribution<T>) -> Vec<LayerChain<T>> {
    let k = distribution.shape.n_states;
    let layers =
        distribution.start.chunks_exact(k).zip(distribution.transition.chunks_exact(k * k));
    layers.map(|(start, transition)| LayerChain::new(start, transition)).collect()
}

/// Mean-field inference of a block of sentences.
pub(crate) struct MeanField<'a, T, C> {
    pub(super) distribution: &'a Distribution<T>,
    chains: &'a [LayerChain<T>],
    coupling: C,
    bound: Bound,
    /// Row of each token, or [`MISSING`].
    pub(super) words: Vec<u32>,
    /// Offsets of the sentences, with the final end.
    pub(super) offsets: Vec<usize>,
    /// f: tokens × layers × states.
    pub(crate) fields: Vec<T>,
    /// γ: tokens × layers × states.
    pub(crate) gamma: Vec<T>,
    /// γ w for [`Bound::Tilted`], otherwise γ.
    pub(crate) tilted: Vec<T>,
    /// ln Zq of each sentence and layer.
    pub(super) log_sums: Vec<f64>,
    /// B of each token.
    pub(super) partition: Vec<f64>,
    sums: Vec<T>,
    scratch: ChainScratch<T>,
}

impl<'a, T: Real, C: Coupling<T>> MeanField<'a, T, C> {
    /// Initializes inference of sentences, none of which is empty.
    pub(crate) fn new(
        distribution: &'a Distribution<T>,
        chains: &'a [LayerChain<T>],
        coupling: C,
        bound: Bound,
        sentences: &[&[u32]],
        start: Start,
    ) -> MeanField<'a, T, C> {
        let words: Vec<u32> = sentences.concat();
        let n_values = words.len() * distribution.shape.row();
        let mut this = MeanField {
            distribution,
            chains,
            coupling,
            bound,
            offsets: offsets(sentences),
            fields: vec![T::zero(); n_values],
            gamma: vec![T::zero(); n_values],
            tilted: vec![],
            log_sums: vec![0.0; sentences.len() * distribution.shape.n_layers],
            partition: vec![0.0; words.len()],
            words,
            sums: vec![],
            scratch: ChainScratch::default(),
        };
        if start == Start::Scores {
            this.start_at_scores();
        }
        (0..distribution.shape.n_layers).for_each(|layer| this.smooth(layer));
        this.tilted.clone_from(&this.gamma);
        this
    }

    fn start_at_scores(&mut self) {
        let shape = self.distribution.shape;
        for (fields, &word) in self.fields.chunks_exact_mut(shape.row()).zip(&self.words) {
            if word == MISSING {
                continue;
            }
            fields.copy_from_slice(self.distribution.scores(word as usize));
            for layer in fields.chunks_exact_mut(shape.n_states) {
                let mean = layer.iter().copied().sum::<T>() / T::of(layer.len() as f64);
                layer.iter_mut().for_each(|field| *field -= mean);
            }
        }
    }

    /// Updates all layers once, in turn.
    pub(crate) fn sweep(&mut self) {
        for layer in 0..self.distribution.shape.n_layers {
            let mut sums = std::mem::take(&mut self.sums);
            self.coupling.sums(layer, &self.tilted, &mut sums);
            self.set_fields(layer, &sums);
            self.smooth(layer);
            self.tilt(layer, &sums);
            self.sums = sums;
        }
        self.set_partition();
    }

    /// Sets the fields of a layer, given the sums over the other layers.
    fn set_fields(&mut self, layer: usize, sums: &[T]) {
        /// Lowest field. Such a state is practically impossible.
        const LOWEST: f64 = -1e4;
        let shape = self.distribution.shape;
        let (row, k) = (shape.row(), shape.n_states);
        let tokens = self.fields.chunks_exact_mut(row).zip(self.gamma.chunks_exact(row));
        for ((sums, &word), (fields, gamma)) in sums.chunks_exact(k).zip(&self.words).zip(tokens) {
            if word == MISSING {
                continue;
            }
            let scores = &self.distribution.scores(word as usize)[shape.layer(layer)];
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

    /// Computes the posterior of a layer from its fields.
    fn smooth(&mut self, layer: usize) {
        let shape = self.distribution.shape;
        let (row, column) = (shape.row(), self.column(layer));
        latens_math::vectorized(
            #[inline(always)]
            || {
                for (sentence, ends) in self.offsets.windows(2).enumerate() {
                    let range = ends[0] * row..ends[1] * row;
                    let (fields, gamma) = (&self.fields[range.clone()], &mut self.gamma[range]);
                    self.log_sums[sentence * shape.n_layers + layer] =
                        self.chains[layer].smooth(fields, gamma, column, &mut self.scratch);
                }
            },
        );
    }

    /// Sets the optimal weights of the tilted bound for a layer.
    fn tilt(&mut self, layer: usize, sums: &[T]) {
        let shape = self.distribution.shape;
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

    /// Computes B of every token after a sweep; the sums are those of the last layer.
    fn set_partition(&mut self) {
        let shape = self.distribution.shape;
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
                    let scores = self.distribution.scores(word as usize).iter();
                    let fields = self.fields[t * row..(t + 1) * row].iter();
                    let pairs = gamma.iter().zip(scores.zip(fields));
                    pairs.map(|(&p, (&score, &f))| (p * (score - f)).wide()).sum()
                }
            };
        }
    }

    /// Bound of each sentence after a sweep.
    pub(crate) fn bounds(&self) -> Vec<f64> {
        let n_layers = self.distribution.shape.n_layers;
        let sentences = self.offsets.windows(2).zip(self.log_sums.chunks_exact(n_layers));
        let bound = |(ends, log_sums): (&[usize], &[f64])| -> f64 {
            let tokens: f64 = (ends[0]..ends[1]).map(|t| self.bound_of_token(t)).sum();
            log_sums.iter().sum::<f64>() + tokens
        };
        sentences.map(bound).collect()
    }

    fn bound_of_token(&self, t: usize) -> f64 {
        let row = self.distribution.shape.row();
        let (range, word) = (t * row..(t + 1) * row, self.words[t]);
        if word == MISSING {
            return 0.0;
        }
        let scores = self.distribution.scores(word as usize).iter();
        let pairs = self.gamma[range.clone()].iter().zip(scores.zip(&self.fields[range]));
        let sum: f64 = pairs.map(|(&p, (&score, &f))| (p * (score - f)).wide()).sum();
        self.distribution.base[word as usize].wide() + sum - self.partition[t]
    }

    fn column(&self, layer: usize) -> Column {
        let shape = self.distribution.shape;
        Column { first: layer * shape.n_states, row: shape.row() }
    }
}

/// Replaces a sum of positive numbers that has underflowed by the smallest positive number.
fn positive<T: Real>(sum: T) -> T {
    if sum > T::min_positive_value() { sum } else { T::min_positive_value() }
}

/// Offsets of sentences in their concatenation, with the final end.
pub(crate) fn offsets(sentences: &[&[u32]]) -> Vec<usize> {
    let mut offsets = vec![0];
    sentences.iter().for_each(|sentence| offsets.push(offsets[offsets.len() - 1] + sentence.len()));
    offsets
}

#[cfg(test)]
impl<T: Real, C: Coupling<T>> MeanField<'_, T, C> {
    /// Bound of all sentences for the current posteriors and weights, computed from its definition.
    pub(crate) fn bound_by_definition(&mut self) -> f64 {
        let (row, k) = (self.distribution.shape.row(), self.distribution.shape.n_states);
        let mut sums = vec![];
        let weights = if self.bound == Bound::Exact { &self.gamma } else { &self.tilted };
        for layer in 0..self.distribution.shape.n_layers {
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

    /// A sweep that updates all layers simultaneously.
    pub(crate) fn sweep_simultaneously(&mut self) {
        let before = self.tilted.clone();
        let n_layers = self.distribution.shape.n_layers;
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
