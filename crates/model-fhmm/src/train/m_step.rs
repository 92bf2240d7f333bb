//! The M-step: from expected counts to the next parameters.

use crate::distribution::Distribution;
use crate::emission::partition::PartitionTable;
use crate::inference::smoother::{Expected, Smoother};
use crate::params::{FhmmParams, Inference, MStep};
use crate::shape::Shape;
use crate::train::lazy_update::{StateShares, Turn, add_change, update_words};
use crate::train::lbfgs::{Search, maximize};
use crate::train::normalizer::Normalizer;
use crate::train::score_update::{WordCounts, fix_gauge, update_layers};
use crate::train::statistics::Statistics;
use crate::word_rows::MISSING;
use latens_math::Real;

/// Input of an M-step.
pub(crate) struct Evidence<'a, T> {
    pub(crate) params: &'a FhmmParams,
    /// Expected counts per token, over all batches so far.
    pub(crate) statistics: &'a Statistics,
    /// Number of tokens of the whole text.
    pub(crate) n_tokens: f64,
    /// Relative frequency of each word in the text.
    pub(crate) unigrams: &'a [f64],
    /// The last batch. Token-wise bounds have no sufficient statistics but the tokens themselves.
    pub(crate) sentences: &'a [&'a [u32]],
    pub(crate) expected: &'a Expected<T>,
    /// Step size of the last batch.
    pub(crate) eta: f64,
    /// Words to update, if `m_step` is [`MStep::Lazy`].
    pub(crate) turn: &'a Turn,
}

impl<T: Real> Evidence<'_, T> {
    /// Replaces a model by the next one.
    pub(crate) fn advance(&self, smoother: &mut Smoother<T>) {
        let is_lazy = self.params.chosen_m_step() == MStep::Lazy && smoother.table().is_in_range();
        if !is_lazy || !self.update_lazily(smoother) {
            let distribution =
                if is_lazy { smoother.distribution().clone() } else { self.maximize(smoother) };
            *smoother = Smoother::new(distribution, smoother.inference());
        }
    }

    /// Updates π, A and the scores of the words whose turn it is. Returns false if Z is to be computed anew.
    fn update_lazily(&self, smoother: &mut Smoother<T>) -> bool {
        let Evidence { statistics, n_tokens, unigrams, .. } = *self;
        let pseudo_tokens = self.params.chosen_pseudo_tokens();
        let shares = StateShares::new(statistics, n_tokens, pseudo_tokens, unigrams);
        let normalizer = joint_normalizer(statistics, n_tokens, pseudo_tokens);
        let ratios = normalizer.ratios(statistics.shape, &smoother.table().values);
        let mut is_accurate = false;
        smoother.change(|distribution, table| {
            self.update_chains(distribution);
            match self.turn {
                Turn::All => {
                    let words: Vec<u32> = (0..statistics.shape.n_words as u32).collect();
                    update_words(distribution, table, &shares, &ratios, &words, false);
                    fix_gauge(distribution, &table.exps, &table.base);
                }
                Turn::Batch(words) => {
                    let change = update_words(distribution, table, &shares, &ratios, words, true);
                    is_accurate = add_change(&mut table.values, &change) && table.is_in_range();
                }
            }
            is_accurate
        });
        is_accurate
    }

    /// Sets π and A.
    fn update_chains(&self, distribution: &mut Distribution<T>) {
        let (start, transition) = self.statistics.chains(self.n_tokens, self.params.prior);
        distribution.start = start.into_iter().map(T::of).collect();
        distribution.transition = transition.into_iter().map(T::of).collect();
    }

    /// Computes the next distribution by an update of all words.
    pub(crate) fn maximize(&self, smoother: &Smoother<T>) -> Distribution<T> {
        let mut distribution = smoother.distribution().clone();
        self.update_chains(&mut distribution);
        let rows = self.rows(smoother.inference());
        let is_in_range = self.update_scores(
            &mut distribution,
            &mut smoother.table().clone(),
            smoother.inference(),
            &rows,
        );
        if !is_in_range {
            // Products overflow single precision: repeat in double precision.
            let mut wide = distribution.cast::<f64>();
            wide.theta = smoother.distribution().theta.iter().map(|theta| theta.wide()).collect();
            let rows: Vec<Vec<f64>> =
                rows.iter().map(|row| row.iter().map(|p| p.wide()).collect()).collect();
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let mut table = PartitionTable::of(&wide);
            self.update_scores(&mut wide, &mut table, smoother.inference(), &rows);
            distribution = wide.cast();
        }
        distribution
    }

    /// γ̃ of the tokens of the batch that are not missing, where the bound needs them.
    fn rows(&self, inference: Inference) -> Vec<&[T]> {
        let values = match inference {
            Inference::Tilted => &self.expected.tilted,
            Inference::Jensen => &self.expected.gamma,
            Inference::ExactMf | Inference::Exact | Inference::Auto => return vec![],
        };
        let words = self.sentences.iter().copied().flatten();
        let rows = values.chunks_exact(self.statistics.shape.row()).zip(words);
        rows.filter(|(_, word)| **word != MISSING).map(|(row, _)| row).collect()
    }

    /// Updates θ. Returns false if the range of the precision is too small.
    fn update_scores<U: Real>(
        &self,
        distribution: &mut Distribution<U>,
        table: &mut PartitionTable<U>,
        inference: Inference,
        rows: &[&[U]],
    ) -> bool {
        let Evidence { params, statistics, n_tokens, unigrams, eta, .. } = *self;
        let pseudo_tokens = params.chosen_pseudo_tokens();
        let counts = WordCounts { statistics, n_tokens, pseudo_tokens, unigrams };
        let uniform = vec![U::of(1.0 / params.n_states as f64); statistics.shape.row()];
        let (normalizer, is_exact) = match inference {
            Inference::Tilted | Inference::Jensen => {
                (self.token_normalizer(rows, &uniform, pseudo_tokens), false)
            }
            Inference::ExactMf | Inference::Exact | Inference::Auto => {
                let normalizer = joint_normalizer(statistics, n_tokens, pseudo_tokens);
                (normalizer, true)
            }
        };
        let is_in_range = match params.m_step {
            MStep::Lazy | MStep::Layers => {
                let power = if is_exact { 1.0 } else { eta };
                update_layers(distribution, table, &counts, &normalizer, power)
            }
            MStep::Lbfgs => {
                let tau = if is_exact { f64::INFINITY } else { eta / (1.0 - eta) };
                let search = Search { iterations: params.lbfgs_iterations, tau };
                maximize(distribution, table, &counts, &normalizer, search);
                table.values.is_empty() || table.is_in_range()
            }
        };
        // Jensen's bound depends on the gauge: a shift would undo the gain.
        if inference != Inference::Jensen {
            fix_gauge(distribution, &table.exps, &table.base);
        }
        is_in_range
    }

    /// The tokens of the batch represent the whole text; one more represents the pseudo-tokens.
    fn token_normalizer<'r, U: Real>(
        &self,
        rows: &[&'r [U]],
        uniform: &'r [U],
        pseudo_tokens: f64,
    ) -> Normalizer<'r, U> {
        let n_batch: usize = self.sentences.iter().map(|sentence| sentence.len()).sum();
        let mut rows = rows.to_vec();
        let mut weights = vec![self.n_tokens / n_batch as f64; rows.len()];
        if pseudo_tokens > 0.0 {
            rows.push(uniform);
            weights.push(pseudo_tokens);
        }
        Normalizer::Tokens { rows, weights }
    }
}

fn joint_normalizer<U>(
    statistics: &Statistics,
    n_tokens: f64,
    pseudo_tokens: f64,
) -> Normalizer<'static, U> {
    let Shape { n_layers, n_states, .. } = statistics.shape;
    let each = pseudo_tokens / (n_states as f64).powi(n_layers as i32);
    let counts = statistics.emitting.iter().map(|count| count * n_tokens + each).collect();
    Normalizer::Joint { counts }
}
