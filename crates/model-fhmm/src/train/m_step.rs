//! The M-step: from expected counts to the next parameters.

use crate::train::score_update::{WordCounts, fix_gauge, update_layers};
use crate::inference::smoother::{Engine, Expected};
use crate::train::lbfgs::{Search, maximize};
use crate::inference::mean_field::MISSING;
use crate::train::normalizer::Normaliser;
use crate::distribution::Parameters;
use crate::params::{FhmmParams, Inference, MStep};
use crate::shape::Shape;
use crate::train::statistics::Statistics;
use crate::emission::partition::Table;
use latens_math::Real;

/// What an M-step is made from.
pub(crate) struct Evidence<'a, T> {
    pub(crate) params: &'a FhmmParams,
    /// Expected counts a token, over all batches so far.
    pub(crate) statistics: &'a Statistics,
    /// How many tokens the whole text has.
    pub(crate) n_tokens: f64,
    /// How often each word is seen in it.
    pub(crate) unigrams: &'a [f64],
    /// The last batch: bounds token by token have no statistics but the tokens themselves.
    pub(crate) sentences: &'a [&'a [u32]],
    pub(crate) expected: &'a Expected<T>,
    /// The step of the last batch.
    pub(crate) eta: f64,
}

impl<T: Real> Evidence<'_, T> {
    /// The next parameters.
    pub(crate) fn maximize(&self, engine: &Engine<T>) -> Parameters<T> {
        let mut parameters = engine.parameters().clone();
        let (start, transition) = self.statistics.chains(self.n_tokens, self.params.prior);
        parameters.start = start.into_iter().map(T::of).collect();
        parameters.transition = transition.into_iter().map(T::of).collect();
        let rows = self.rows(engine.inference());
        let is_sound = self.learn_scores(
            &mut parameters,
            &mut engine.table().clone(),
            engine.inference(),
            &rows,
        );
        if !is_sound {
            // Products of single precision overflow: once more, with more room.
            let mut wide = parameters.cast::<f64>();
            wide.theta = engine.parameters().theta.iter().map(|theta| theta.wide()).collect();
            let rows: Vec<Vec<f64>> =
                rows.iter().map(|row| row.iter().map(|p| p.wide()).collect()).collect();
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let mut table = Table::of(&wide);
            self.learn_scores(&mut wide, &mut table, engine.inference(), &rows);
            parameters = wide.cast();
        }
        parameters
    }

    /// γ̃ of the tokens of the batch that have a word, where the bound needs them.
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

    /// Learns θ; false if numbers of this precision are too small for it.
    fn learn_scores<U: Real>(
        &self,
        parameters: &mut Parameters<U>,
        table: &mut Table<U>,
        inference: Inference,
        rows: &[&[U]],
    ) -> bool {
        let Evidence { params, statistics, n_tokens, unigrams, eta, .. } = *self;
        let pseudo_tokens = params.chosen_pseudo_tokens();
        let counts = WordCounts { statistics, n_tokens, pseudo_tokens, unigrams };
        let uniform = vec![U::of(1.0 / params.n_states as f64); statistics.shape.row()];
        let (normaliser, is_exact) = match inference {
            Inference::Tilted | Inference::Jensen => {
                (self.token_normaliser(rows, &uniform, pseudo_tokens), false)
            }
            Inference::ExactMf | Inference::Exact | Inference::Auto => {
                let normaliser = joint_normaliser(statistics, n_tokens, pseudo_tokens);
                (normaliser, true)
            }
        };
        let is_sound = match params.m_step {
            MStep::Layers => {
                let power = if is_exact { 1.0 } else { eta };
                update_layers(parameters, table, &counts, &normaliser, power)
            }
            MStep::Lbfgs => {
                let tau = if is_exact { f64::INFINITY } else { eta / (1.0 - eta) };
                let search = Search { iterations: params.lbfgs_iterations, tau };
                maximize(parameters, table, &counts, &normaliser, search);
                table.values.is_empty() || table.is_sound()
            }
        };
        // The paper's bound depends on the gauge: what was gained would be lost.
        if inference != Inference::Jensen {
            fix_gauge(parameters, &table.exps, &table.base);
        }
        is_sound
    }

    /// The tokens of the batch stand for all; a last one stands for the pseudo-tokens.
    fn token_normaliser<'r, U: Real>(
        &self,
        rows: &[&'r [U]],
        uniform: &'r [U],
        pseudo_tokens: f64,
    ) -> Normaliser<'r, U> {
        let n_batch: usize = self.sentences.iter().map(|sentence| sentence.len()).sum();
        let mut rows = rows.to_vec();
        let mut weights = vec![self.n_tokens / n_batch as f64; rows.len()];
        if pseudo_tokens > 0.0 {
            rows.push(uniform);
            weights.push(pseudo_tokens);
        }
        Normaliser::Tokens { rows, weights }
    }
}

fn joint_normaliser<U>(
    statistics: &Statistics,
    n_tokens: f64,
    pseudo_tokens: f64,
) -> Normaliser<'static, U> {
    let Shape { n_layers, n_states, .. } = statistics.shape;
    let each = pseudo_tokens / (n_states as f64).powi(n_layers as i32);
    let counts = statistics.emitting.iter().map(|count| count * n_tokens + each).collect();
    Normaliser::Joint { counts }
}
