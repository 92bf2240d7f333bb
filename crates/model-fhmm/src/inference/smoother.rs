//! Posteriors and expected counts of batches of sentences, with any kind of inference.

use crate::distribution::Distribution;
use crate::emission::coupling::{Coupling, TableCoupling, WordCoupling};
use crate::emission::partition::{PartitionTable, exponentials};
use crate::inference::convergence::{SentenceResult, Stop};
use crate::inference::joint_chain::JointChain;
use crate::inference::layer_chain::{ChainScratch, Column, LayerChain};
use crate::inference::mean_field::{Bound, MeanField, Start, chains, offsets};
use crate::params::Inference;
use latens_math::Real;
use rayon::prelude::*;

/// Tokens per block, which one thread processes: enough for matrix products, few enough for the CPU cache.
const BLOCK_TOKENS: usize = 256;
/// Tokens per block where sums run over all words.
const BLOCK_TOKENS_OVER_WORDS: usize = 32;

/// A distribution with the tables that inference derives from it.
#[derive(Debug)]
pub(crate) struct Smoother<T> {
    distribution: Distribution<T>,
    inference: Inference,
    chains: Vec<LayerChain<T>>,
    /// e^θ, e^b and, unless there are too many joint states, Z.
    table: PartitionTable<T>,
    /// Coupling of the layers: ln Z or Z, or empty if sums run over words.
    coupling: Vec<T>,
}

/// Posterior and expected counts of a batch of sentences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected<T> {
    /// Bound on the log-likelihood.
    pub(crate) bound: f64,
    /// Sum of sweeps × tokens over sentences.
    pub(crate) token_sweeps: u64,
    /// q(s_t^m = k): tokens × layers × states.
    pub(crate) gamma: Vec<T>,
    /// γ times the weights of the tilted bound, or empty.
    pub(crate) tilted: Vec<T>,
    /// Expected transitions: layers × states × states.
    pub(crate) pairs: Vec<f64>,
    /// Expected number of emissions of each joint state; empty unless inference is exact.
    pub(crate) emitting: Vec<f64>,
}

impl<T: Real> Smoother<T> {
    /// Derives the tables; `inference` must not be [`Inference::Auto`].
    pub(crate) fn new(distribution: Distribution<T>, inference: Inference) -> Smoother<T> {
        let table = match fits_table(&distribution, inference) {
            true => PartitionTable::of(&distribution),
            false => PartitionTable {
                exps: exponentials(&distribution.theta),
                base: exponentials(&distribution.base),
                values: vec![],
            },
        };
        Smoother::with_table(distribution, inference, table)
    }

    /// Like [`Smoother::new`], with a known table.
    pub(crate) fn with_table(
        distribution: Distribution<T>,
        inference: Inference,
        mut table: PartitionTable<T>,
    ) -> Smoother<T> {
        if !table.values.is_empty() && !table.is_in_range() {
            // Products may underflow or overflow single precision where their sum does not.
            let wide = PartitionTable::of(&distribution.cast::<f64>());
            table.values = wide.values.iter().map(|&z| T::of(z)).collect();
        }
        let (chains, coupling) =
            (chains(&distribution), coupling(&distribution, &table, inference));
        Smoother { chains, distribution, inference, table, coupling }
    }

    /// Changes the distribution and e^θ and Z of its table. Derives the other tables if `change` returns true; otherwise
    /// the caller must replace the smoother.
    pub(crate) fn change(
        &mut self,
        change: impl FnOnce(&mut Distribution<T>, &mut PartitionTable<T>) -> bool,
    ) {
        if change(&mut self.distribution, &mut self.table) {
            self.chains = chains(&self.distribution);
            self.coupling = coupling(&self.distribution, &self.table, self.inference);
        }
    }

    /// Replaces Z, which differs from what `new` computes by the rounding errors of training. Returns false, and changes
    /// nothing, if these values cannot be Z of this model.
    pub(crate) fn set_normalizers(&mut self, z: Vec<T>) -> bool {
        let is_near = |(z, own): (&T, &T)| {
            let ratio = z.wide() / own.wide();
            z == own || (0.1..10.0).contains(&ratio)
        };
        let is_valid =
            z.len() == self.table.values.len() && z.iter().zip(&self.table.values).all(is_near);
        if is_valid {
            self.change(|_, table| {
                table.values = z;
                true
            });
        }
        is_valid
    }

    /// What is wrong with the distribution or with the tables that are derived from it, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_finite = |values: &[T]| values.iter().all(|value| value.wide().is_finite());
        let couples_by_z = matches!(self.inference, Inference::Tilted | Inference::Jensen);
        let tables = [&self.table.exps, &self.table.base, &self.coupling];
        let are_finite = tables.iter().all(|values| is_finite(values))
            && (!couples_by_z || self.coupling.iter().all(|z| z.wide() > 0.0));
        let overflows = "its scores are so large that probabilities overflow";
        self.distribution.problem().or((!are_finite).then_some(overflows))
    }

    pub(crate) fn distribution(&self) -> &Distribution<T> {
        &self.distribution
    }

    pub(crate) fn table(&self) -> &PartitionTable<T> {
        &self.table
    }

    pub(crate) fn chains(&self) -> &[LayerChain<T>] {
        &self.chains
    }

    pub(crate) fn joint(&self) -> JointChain<'_, T> {
        JointChain::new(&self.distribution, &self.table)
    }

    pub(crate) fn inference(&self) -> Inference {
        self.inference
    }

    /// Posterior and expected counts of sentences. Blocks and the order of sums do not depend on the number of threads.
    pub(crate) fn expect(&self, sentences: &[&[u32]], stop: Stop) -> Expected<T> {
        let blocks = self.blocks(sentences);
        let parts: Vec<Expected<T>> =
            blocks.into_par_iter().map(|block| self.expect_block(&block, stop)).collect();
        let row = self.distribution.shape.row();
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.len()).sum();
        let mut all = Expected { gamma: Vec::with_capacity(n_tokens * row), ..self.no_counts() };
        for part in parts {
            all.bound += part.bound;
            all.token_sweeps += part.token_sweeps;
            all.gamma.extend(part.gamma);
            all.tilted.extend(part.tilted);
            add(&mut all.pairs, &part.pairs);
            add(&mut all.emitting, &part.emitting);
        }
        all
    }

    /// Sum of the bounds on the log-likelihoods of sentences. It is exact for [`Inference::Exact`].
    pub(crate) fn bounds(&self, sentences: &[&[u32]], stop: Stop) -> f64 {
        let blocks = self.blocks(sentences);
        let parts: Vec<f64> = blocks
            .into_par_iter()
            .map(|block| match self.inference {
                Inference::Exact => {
                    let log_prob = |sentence: &&[u32]| self.joint().posterior(sentence).log_prob;
                    block.iter().map(log_prob).sum()
                }
                _ => {
                    let mut bounds = vec![0.0; block.len()];
                    self.infer(&block, stop, &mut |found| bounds[found.sentence] = found.bound);
                    bounds.iter().sum()
                }
            })
            .collect();
        parts.iter().sum()
    }

    fn blocks<'s>(&self, sentences: &[&'s [u32]]) -> Vec<Vec<&'s [u32]>> {
        let most = if self.over_words() { BLOCK_TOKENS_OVER_WORDS } else { BLOCK_TOKENS };
        let (mut blocks, mut n_tokens) = (vec![vec![]], 0);
        for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
            if n_tokens > 0 && n_tokens + sentence.len() > most {
                blocks.push(vec![]);
                n_tokens = 0;
            }
            n_tokens += sentence.len();
            blocks.last_mut().expect("there is at least one block").push(*sentence);
        }
        blocks
    }

    /// Whether sums run over words, since there is no table of Z.
    fn over_words(&self) -> bool {
        self.table.values.is_empty()
    }

    /// Counts of no sentences.
    fn no_counts(&self) -> Expected<T> {
        let shape = self.distribution.shape;
        let n_emitting = if self.inference == Inference::Exact { shape.n_joint() } else { 0 };
        Expected {
            bound: 0.0,
            token_sweeps: 0,
            gamma: vec![],
            tilted: vec![],
            pairs: vec![0.0; shape.row() * shape.n_states],
            emitting: vec![0.0; n_emitting],
        }
    }

    fn expect_block(&self, sentences: &[&[u32]], stop: Stop) -> Expected<T> {
        let row = self.distribution.shape.row();
        let mut expected = self.no_counts();
        if self.inference == Inference::Exact {
            for sentence in sentences {
                let found = self.joint().posterior(sentence);
                expected.bound += found.log_prob;
                expected.token_sweeps += sentence.len() as u64;
                expected.gamma.extend(found.gamma);
                add(&mut expected.pairs, &found.pairs);
                add(&mut expected.emitting, &found.emitting);
            }
            return expected;
        }
        let offsets = offsets(sentences);
        let n_values = offsets[sentences.len()] * row;
        expected.gamma = vec![T::zero(); n_values];
        if self.inference == Inference::Tilted {
            expected.tilted = vec![T::zero(); n_values];
        }
        let (mut scratch, mut bounds) = (ChainScratch::default(), vec![0.0; sentences.len()]);
        self.infer(sentences, stop, &mut |found| {
            let (begin, n) = (offsets[found.sentence] * row, found.words.len());
            let gamma = &mut expected.gamma[begin..begin + n * row];
            self.collect(found.fields, gamma, &mut scratch, &mut expected.pairs);
            if self.inference == Inference::Tilted {
                expected.tilted[begin..begin + n * row].copy_from_slice(found.tilted);
            }
            bounds[found.sentence] = found.bound;
            expected.token_sweeps += (found.sweeps * n) as u64;
        });
        expected.bound = bounds.iter().sum();
        expected
    }

    /// Posteriors of states and pairs, given the final fields of a sentence.
    fn collect(
        &self,
        fields: &[T],
        gamma: &mut [T],
        scratch: &mut ChainScratch<T>,
        pairs: &mut [f64],
    ) {
        let shape = self.distribution.shape;
        let n_pairs = shape.n_states * shape.n_states;
        latens_math::vectorized(
            #[inline(always)]
            || {
                for (layer, pairs) in pairs.chunks_exact_mut(n_pairs).enumerate() {
                    let column = Column { first: layer * shape.n_states, row: shape.row() };
                    self.chains[layer].smooth_with_pairs(fields, gamma, column, scratch, pairs);
                }
            },
        );
    }

    /// Mean-field inference of sentences, none of which is empty. Reports each sentence as soon as it has converged.
    pub(crate) fn infer(
        &self,
        sentences: &[&[u32]],
        stop: Stop,
        report: &mut dyn FnMut(SentenceResult<'_, T>),
    ) {
        let shape = self.distribution.shape;
        if self.over_words() {
            let coupling = WordCoupling::new(shape, &self.table.exps, &self.table.base);
            self.run(coupling, sentences, stop, report);
        } else {
            self.run(TableCoupling::new(shape, &self.coupling), sentences, stop, report);
        }
    }

    fn run(
        &self,
        coupling: impl Coupling<T>,
        sentences: &[&[u32]],
        stop: Stop,
        report: &mut dyn FnMut(SentenceResult<'_, T>),
    ) {
        let bound = match self.inference {
            Inference::Tilted => Bound::Tilted,
            Inference::Jensen => Bound::Jensen,
            Inference::ExactMf | Inference::Exact | Inference::Auto => Bound::Exact,
        };
        if sentences.is_empty() {
            return;
        }
        let start = Start::Scores;
        MeanField::new(&self.distribution, &self.chains, coupling, bound, sentences, start)
            .run(stop, report);
    }
}

/// The table that couples the layers: ln Z or Z.
fn coupling<T: Real>(
    distribution: &Distribution<T>,
    table: &PartitionTable<T>,
    inference: Inference,
) -> Vec<T> {
    match inference {
        Inference::ExactMf if !table.is_in_range() => {
            let wide = PartitionTable::of(&distribution.cast::<f64>());
            wide.values.iter().map(|&z| T::of(z.ln())).collect()
        }
        Inference::ExactMf => table.logarithms(),
        Inference::Tilted | Inference::Jensen => table.values.clone(),
        Inference::Exact | Inference::Auto => vec![],
    }
}

/// Whether Z of all joint states fits into a table.
fn fits_table<T>(distribution: &Distribution<T>, inference: Inference) -> bool {
    let shape = distribution.shape;
    inference.counts_joint_states() || Inference::n_joint(shape.n_layers, shape.n_states).is_some()
}

fn add(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
