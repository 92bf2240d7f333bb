//! Collapsed sampling with Metropolis–Hastings proposals (n_dk + α_k) s_k, where s is the density given the other shards.
//!
//! The factor (n_dk + α_k) cancels with that of the target: a proposal j instead of k is accepted with probability
//! min(1, t_j s_k / (t_k s_j)). Most proposals equal the current topic and cost nothing.

use super::super::problem::{Problem, State};
use super::collapsed::Collapsed;
use super::shards::{shards, table_without};
use super::statistics::Sweep;
use super::streams::document_rng;
use crate::draw::{Mixture, padded_alpha};
use crate::glda::gaussian::table::Table;
use latens_math::Rng;

pub(super) fn sweep(problem: &Problem, state: &mut State, n_shards: usize, seed: u64) -> Sweep {
    let State { topics, counts, alpha } = state;
    let alpha = padded_alpha(alpha);
    let mut sweep = Sweep::default();
    for shard in shards(problem.documents.len(), n_shards, seed) {
        let table = table_without(problem, topics, counts, &shard);
        let mut collapsed = Collapsed::new(problem, counts);
        let mut proposals = Proposals { table: &table, mixture: Mixture::new(&alpha) };
        latens_math::vectorized(
            #[inline(always)]
            || {
                for &document in &shard {
                    let range = problem.documents.range(document);
                    let types = &problem.documents.types[range.clone()];
                    let mut rng = document_rng(seed, document);
                    let topics = &mut topics[range];
                    sample_document(
                        types,
                        topics,
                        &mut proposals,
                        &mut collapsed,
                        &mut rng,
                        &mut sweep,
                    );
                }
            },
        );
        sweep.n_rebuilt += collapsed.n_rebuilt;
    }
    sweep
}

/// The proposal distribution.
pub(crate) struct Proposals<'a> {
    pub(crate) table: &'a Table,
    pub(crate) mixture: Mixture<'a>,
}

/// Samples every token of a document once.
#[inline(always)]
pub(crate) fn sample_document(
    types: &[u32],
    topics: &mut [u16],
    proposals: &mut Proposals<'_>,
    collapsed: &mut Collapsed<'_>,
    rng: &mut Rng,
    sweep: &mut Sweep,
) {
    let Proposals { table, mixture } = proposals;
    mixture.reset(topics);
    for (&token_type, topic) in types.iter().zip(topics) {
        let row = table.row(token_type);
        let old = usize::from(*topic);
        mixture.remove(old);
        let proposed = mixture.draw(row, rng);
        let new = if proposed == old {
            old
        } else {
            sweep.n_proposed += 1;
            collapsed.look_at(token_type);
            let log_ratio = collapsed.log_density(proposed) - collapsed.log_density_without(old)
                + f64::from(row[old]).ln()
                - f64::from(row[proposed]).ln();
            if rng.uniform() < log_ratio.exp() {
                collapsed.remove(token_type, old);
                collapsed.add(token_type, proposed);
                sweep.n_accepted += 1;
                sweep.n_changed += 1;
                *topic = proposed as u16;
                proposed
            } else {
                old
            }
        };
        mixture.add(new);
    }
}
