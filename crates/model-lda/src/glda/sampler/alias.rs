//! The alias sampler of Das et al. (2015, section 4.3), corrected to have the right stationary distribution.
//!
//! The proposal is g(k) = n_dk t_k(x) + α_k s_k(x): current densities for the topics of the document, and tabulated
//! densities for all topics, from which alias tables draw in constant time. As in the paper, the token is removed from its
//! topic before sampling and added to the new one after. Differences from the authors' code: the acceptance ratio uses
//! densities, not their logarithms; both terms have the same scale; a rejected last proposal keeps the old topic; and
//! tables are computed from the other shards.

use super::super::problem::{Problem, State};
use super::collapsed::Collapsed;
use super::shards::{shards, table_without};
use super::statistics::Sweep;
use super::streams::document_rng;
use crate::glda::gaussian::table::Table;
use latens_math::{AliasTable, Rng, sample_index};

/// Number of proposals per token, as in the authors' code.
const N_PROPOSALS: usize = 2;

pub(super) fn sweep(problem: &Problem, state: &mut State, n_shards: usize, seed: u64) -> Sweep {
    let State { topics, counts, alpha } = state;
    let mut sweep = Sweep::default();
    for shard in shards(problem.documents.len(), n_shards, seed) {
        let table = table_without(problem, topics, counts, &shard);
        let mut sampler = AliasSampler {
            alpha,
            table: &table,
            aliases: vec![None; problem.vectors.len()],
            collapsed: Collapsed::new(problem, counts),
            of_document: vec![0; alpha.len()],
            logs: vec![f64::NAN; alpha.len()],
        };
        latens_math::vectorized(
            #[inline(always)]
            || {
                for &document in &shard {
                    let range = problem.documents.range(document);
                    let mut rng = document_rng(seed, document);
                    let types = &problem.documents.types[range.clone()];
                    sampler.sample_document(types, &mut topics[range], &mut rng, &mut sweep);
                }
            },
        );
        sweep.n_rebuilt += sampler.collapsed.n_rebuilt;
    }
    sweep
}

struct AliasSampler<'a> {
    alpha: &'a [f64],
    table: &'a Table,
    /// Alias table and sum of α_k s_k per type, created on first use.
    aliases: Vec<Option<(AliasTable, f64)>>,
    collapsed: Collapsed<'a>,
    of_document: Vec<u32>,
    /// Current log densities computed for this token; NaN for the others.
    logs: Vec<f64>,
}

impl AliasSampler<'_> {
    #[inline(always)]
    fn sample_document(
        &mut self,
        types: &[u32],
        topics: &mut [u16],
        rng: &mut Rng,
        sweep: &mut Sweep,
    ) {
        self.of_document.fill(0);
        topics.iter().for_each(|&k| self.of_document[usize::from(k)] += 1);
        for (&token_type, topic) in types.iter().zip(topics) {
            let old = usize::from(*topic);
            self.of_document[old] -= 1;
            self.collapsed.look_at(token_type);
            self.collapsed.remove(token_type, old);
            let new = self.sample_token(token_type, old, rng, sweep);
            self.collapsed.add(token_type, new);
            self.of_document[new] += 1;
            sweep.n_changed += u64::from(new != old);
            *topic = new as u16;
        }
    }

    /// Samples the topic of a token that was removed from its topic.
    #[inline(always)]
    fn sample_token(
        &mut self,
        token_type: u32,
        old: usize,
        rng: &mut Rng,
        sweep: &mut Sweep,
    ) -> usize {
        self.logs.fill(f64::NAN);
        let row = self.table.row(token_type);
        let alpha = self.alpha;
        let (alias, stale_sum) = self.aliases[token_type as usize].get_or_insert_with(|| {
            let weights: Vec<f64> = alpha.iter().zip(row).map(|(a, &s)| a * f64::from(s)).collect();
            (AliasTable::new(&weights), weights.iter().sum())
        });
        let used: Vec<usize> = (0..alpha.len()).filter(|&k| self.of_document[k] > 0).collect();
        for &k in &used {
            self.logs[k] = self.collapsed.log_density(k);
        }
        let log_best = self.table.log_best(token_type);
        let scale = used.iter().map(|&k| self.logs[k]).fold(log_best, f64::max);
        // Scales the densities of the table to those of the first term.
        let stale_scale = (log_best - scale).exp().max(f64::MIN_POSITIVE);
        let stale_sum = *stale_sum * stale_scale;
        let fresh: Vec<f64> = used
            .iter()
            .map(|&k| f64::from(self.of_document[k]) * (self.logs[k] - scale).exp())
            .collect();
        let fresh_sum: f64 = fresh.iter().sum();
        let mut topic = old;
        for _ in 0..N_PROPOSALS {
            let is_fresh = rng.uniform() * (fresh_sum + stale_sum) < fresh_sum;
            let proposed = if is_fresh { used[sample_index(&fresh, rng)] } else { alias.draw(rng) };
            if proposed == topic {
                continue;
            }
            for k in [topic, proposed] {
                if self.logs[k].is_nan() {
                    self.logs[k] = self.collapsed.log_density(k);
                }
            }
            // Log target and log proposal probability.
            let (logs, of_document) = (&self.logs, &self.of_document);
            let target = |k: usize| (f64::from(of_document[k]) + alpha[k]).ln() + logs[k];
            let proposal = |k: usize| {
                let fresh = match of_document[k] {
                    0 => 0.0,
                    n => f64::from(n) * (logs[k] - scale).exp(),
                };
                (fresh + alpha[k] * stale_scale * f64::from(row[k])).ln()
            };
            let log_ratio = target(proposed) - target(topic) + proposal(topic) - proposal(proposed);
            sweep.n_proposed += 1;
            if rng.uniform() < log_ratio.exp() {
                sweep.n_accepted += 1;
                topic = proposed;
            }
        }
        topic
    }
}
