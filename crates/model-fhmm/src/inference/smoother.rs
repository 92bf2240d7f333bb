//! Inference over batches of sentences: parameters in, posteriors and expected counts out.

use crate::inference::layer_chain::{ChainScratch, Column, LayerChain};
use crate::emission::coupling::{Coupling, TableCoupling, WordCoupling};
use crate::inference::joint_chain::Joint;
use crate::inference::mean_field::{Bound, Found, MeanField, Start, Stop, chains};
use crate::distribution::Parameters;
use crate::params::Inference;
use crate::emission::partition::{Table, exponentials};
use latens_math::Real;
use rayon::prelude::*;

/// Tokens that are worked on together by one thread: enough for products of matrices, few enough for the cache.
const BLOCK_TOKENS: usize = 256;
/// The same where sums go over all words.
const BLOCK_TOKENS_OVER_WORDS: usize = 32;

/// Parameters with all that inference derives from them.
#[derive(Debug)]
pub(crate) struct Engine<T> {
    parameters: Parameters<T>,
    inference: Inference,
    chains: Vec<LayerChain<T>>,
    /// e^θ, e^b and, unless there are too many joint states, Z.
    table: Table<T>,
    /// What the layers are coupled by: ln Z or Z; empty if it goes over words.
    coupling: Vec<T>,
}

/// What a batch of sentences is expected to have done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected<T> {
    /// The bound of the log-likelihood.
    pub(crate) bound: f64,
    /// Sweeps times tokens.
    pub(crate) token_sweeps: u64,
    /// q(s_t^m = k): tokens × layers × states.
    pub(crate) gamma: Vec<T>,
    /// The same times the weights of the tilted bound.
    pub(crate) tilted: Vec<T>,
    /// layers × states × states.
    pub(crate) pairs: Vec<f64>,
    /// How often each joint state emits a word, where inference is joint.
    pub(crate) emitting: Vec<f64>,
}

impl<T: Real> Engine<T> {
    /// `inference` is never [`Inference::Auto`].
    pub(crate) fn new(parameters: Parameters<T>, inference: Inference) -> Engine<T> {
        let table = match fits_table(&parameters, inference) {
            true => Table::of(&parameters),
            false => Table {
                exps: exponentials(&parameters.theta),
                base: exponentials(&parameters.base),
                values: vec![],
            },
        };
        Engine::with_table(parameters, inference, table)
    }

    /// The same with a table that is known.
    pub(crate) fn with_table(
        parameters: Parameters<T>,
        inference: Inference,
        mut table: Table<T>,
    ) -> Engine<T> {
        if !table.values.is_empty() && !table.is_sound() {
            // Single precision is too small for these products; their sums are not.
            let wide = Table::of(&parameters.cast::<f64>());
            table.values = wide.values.iter().map(|&z| T::of(z)).collect();
        }
        let coupling = match inference {
            Inference::ExactMf if !table.is_sound() => {
                let wide = Table::of(&parameters.cast::<f64>());
                wide.values.iter().map(|&z| T::of(z.ln())).collect()
            }
            Inference::ExactMf => table.logarithms(),
            Inference::Tilted | Inference::Jensen => table.values.clone(),
            Inference::Exact | Inference::Auto => vec![],
        };
        Engine { chains: chains(&parameters), parameters, inference, table, coupling }
    }

    pub(crate) fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }

    pub(crate) fn table(&self) -> &Table<T> {
        &self.table
    }

    pub(crate) fn chains(&self) -> &[LayerChain<T>] {
        &self.chains
    }

    pub(crate) fn joint(&self) -> Joint<'_, T> {
        Joint::new(&self.parameters, &self.table)
    }

    pub(crate) fn inference(&self) -> Inference {
        self.inference
    }

    /// What all sentences are expected to have done. Blocks of sentences are shared out to threads; which sentences
    /// are together, and in which order sums are made, does not depend on how many there are.
    pub(crate) fn expect(&self, sentences: &[&[u32]], stop: Stop) -> Expected<T> {
        let blocks = self.blocks(sentences);
        let parts: Vec<Expected<T>> =
            blocks.into_par_iter().map(|block| self.expect_block(&block, stop)).collect();
        let row = self.parameters.shape.row();
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.len()).sum();
        let mut all = Expected { gamma: Vec::with_capacity(n_tokens * row), ..self.nothing() };
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

    /// The bound of each sentence's log-likelihood: exact where inference is joint.
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
            blocks.last_mut().expect("there is one").push(*sentence);
        }
        blocks
    }

    fn over_words(&self) -> bool {
        self.table.values.is_empty()
    }

    fn nothing(&self) -> Expected<T> {
        let shape = self.parameters.shape;
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
        let row = self.parameters.shape.row();
        let mut expected = self.nothing();
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

    /// The posterior of a sentence's final fields, and of its pairs.
    fn collect(
        &self,
        fields: &[T],
        gamma: &mut [T],
        scratch: &mut ChainScratch<T>,
        pairs: &mut [f64],
    ) {
        let shape = self.parameters.shape;
        let n_pairs = shape.n_states * shape.n_states;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (layer, pairs) in pairs.chunks_exact_mut(n_pairs).enumerate() {
                    let column = Column { first: layer * shape.n_states, row: shape.row() };
                    self.chains[layer].smooth_with_pairs(fields, gamma, column, scratch, pairs);
                }
            },
        );
    }

    /// Mean field over some sentences that are not empty.
    pub(crate) fn infer(
        &self,
        sentences: &[&[u32]],
        stop: Stop,
        found: &mut dyn FnMut(Found<'_, T>),
    ) {
        let shape = self.parameters.shape;
        if self.over_words() {
            let coupling = WordCoupling::new(shape, &self.table.exps, &self.table.base);
            self.run(coupling, sentences, stop, found);
        } else {
            self.run(TableCoupling::new(shape, &self.coupling), sentences, stop, found);
        }
    }

    fn run(
        &self,
        coupling: impl Coupling<T>,
        sentences: &[&[u32]],
        stop: Stop,
        found: &mut dyn FnMut(Found<'_, T>),
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
        MeanField::new(&self.parameters, &self.chains, coupling, bound, sentences, start)
            .run(stop, found);
    }
}

/// Whether Z of all joint states is kept in a table.
fn fits_table<T>(parameters: &Parameters<T>, inference: Inference) -> bool {
    let shape = parameters.shape;
    let is_forced = matches!(inference, Inference::ExactMf | Inference::Exact);
    is_forced || Inference::n_joint(shape.n_layers, shape.n_states).is_some()
}

fn offsets(sentences: &[&[u32]]) -> Vec<usize> {
    let mut offsets = vec![0];
    sentences.iter().for_each(|sentence| offsets.push(offsets[offsets.len() - 1] + sentence.len()));
    offsets
}

fn add(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
