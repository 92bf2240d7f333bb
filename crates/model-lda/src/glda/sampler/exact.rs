//! Collapsed Gibbs sampling from the full conditional of each token, with one triangular solve per topic.

use super::super::problem::{Problem, State};
use super::collapsed::Collapsed;
use super::statistics::Sweep;
use super::streams::document_rng;
use latens_math::sample_log_index;

/// When topics are updated.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Moving {
    /// Before and after every token, as in Das et al. (2015).
    Always,
    /// Only if the token changes its topic.
    Changed,
}

pub(super) fn sweep(problem: &Problem, state: &mut State, seed: u64, moving: Moving) -> Sweep {
    let State { topics, counts, alpha } = state;
    let mut collapsed = Collapsed::new(problem, counts);
    let mut sweep = Sweep::default();
    latens_math::vectorized(
        #[inline(always)]
        || sample(problem, topics, alpha, &mut collapsed, seed, moving, &mut sweep),
    );
    sweep.n_rebuilt = collapsed.n_rebuilt;
    sweep
}

#[inline(always)]
fn sample(
    problem: &Problem,
    topics: &mut [u16],
    alpha: &[f64],
    collapsed: &mut Collapsed<'_>,
    seed: u64,
    moving: Moving,
    sweep: &mut Sweep,
) {
    let documents = &problem.documents;
    let mut logs = vec![0.0; alpha.len()];
    let mut of_document = vec![0u32; alpha.len()];
    for document in 0..documents.len() {
        let mut rng = document_rng(seed, document);
        let range = documents.range(document);
        of_document.fill(0);
        topics[range.clone()].iter().for_each(|&k| of_document[usize::from(k)] += 1);
        for token in range {
            let (token_type, old) = (documents.types[token], usize::from(topics[token]));
            collapsed.look_at(token_type);
            of_document[old] -= 1;
            if moving == Moving::Always {
                collapsed.remove(token_type, old);
            }
            for (k, log) in logs.iter_mut().enumerate() {
                let density = if k == old && moving == Moving::Changed {
                    collapsed.log_density_without(k)
                } else {
                    collapsed.log_density(k)
                };
                *log = (f64::from(of_document[k]) + alpha[k]).ln() + density;
            }
            let new = sample_log_index(&logs, &mut rng);
            match moving {
                Moving::Always => collapsed.add(token_type, new),
                Moving::Changed if new != old => {
                    collapsed.remove(token_type, old);
                    collapsed.add(token_type, new);
                }
                Moving::Changed => {}
            }
            of_document[new] += 1;
            sweep.n_changed += u64::from(new != old);
            topics[token] = new as u16;
        }
    }
}
