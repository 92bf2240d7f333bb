//! The Dirichlet-multinomial distribution of token topics, and estimation of α.

use crate::documents::TypedDocuments;
use latens_math::{digamma, ln_gamma};
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// The range of Dirichlet parameters. Products of weights neither overflow nor underflow in single precision.
pub(crate) const DIRICHLET: RangeInclusive<f64> = 1e-12..=1e9;

/// Number of documents per partial sum. Partial sums are added in a fixed order, so that results do not depend on the
/// number of threads.
const DOCUMENTS: usize = if cfg!(test) { 16 } else { 512 };

/// Sums `visit(counts, length)` over all documents, where `counts` are the topic counts of the document.
fn sum_over_documents(
    documents: &TypedDocuments,
    topics: &[u16],
    n_topics: usize,
    visit: impl Fn(&[u32], usize) -> f64 + Sync,
) -> f64 {
    let n_parts = documents.len().div_ceil(DOCUMENTS);
    let part = |part: usize| {
        let mut counts = vec![0u32; n_topics];
        let begin = part * DOCUMENTS;
        let documents =
            (begin..(begin + DOCUMENTS).min(documents.len())).map(|d| documents.range(d));
        let mut sum = 0.0;
        for range in documents {
            let topics = &topics[range];
            topics.iter().for_each(|&k| counts[usize::from(k)] += 1);
            sum += visit(&counts, topics.len());
            topics.iter().for_each(|&k| counts[usize::from(k)] = 0);
        }
        sum
    };
    (0..n_parts).into_par_iter().map(part).collect::<Vec<f64>>().into_iter().sum()
}

/// ln p(z), the sum over documents of
/// ln Γ(A) − ln Γ(A + N_d) + Σ_k ln Γ(α_k + n_dk) − ln Γ(α_k), with A = Σ α_k.
pub(crate) fn log_mixtures(documents: &TypedDocuments, topics: &[u16], alpha: &[f64]) -> f64 {
    let total: f64 = alpha.iter().sum();
    let of_total = ln_gamma(total);
    let of_alpha: Vec<f64> = alpha.iter().map(|&a| ln_gamma(a)).collect();
    sum_over_documents(documents, topics, alpha.len(), |counts, length| {
        let used = counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        let gains = used.map(|(k, &n)| ln_gamma(alpha[k] + f64::from(n)) - of_alpha[k]);
        of_total - ln_gamma(total + length as f64) + gains.sum::<f64>()
    })
}

/// One fixed-point step of the maximum-likelihood estimate of α (Minka 2000, equation 55):
/// α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(N_d + A) − ψ(A)].
pub(crate) fn improve_alpha(documents: &TypedDocuments, topics: &[u16], alpha: &mut [f64]) {
    let total: f64 = alpha.iter().sum();
    let lengths = (0..documents.len()).map(|d| documents.range(d).len() as f64);
    let denominator: f64 = lengths.map(|n| digamma(n + total) - digamma(total)).sum();
    if denominator <= 0.0 {
        return;
    }
    let mut gains = vec![0.0; alpha.len()];
    let mut counts = vec![0u32; alpha.len()];
    for d in 0..documents.len() {
        let topics = &topics[documents.range(d)];
        topics.iter().for_each(|&k| counts[usize::from(k)] += 1);
        for &k in topics {
            let k = usize::from(k);
            let n = std::mem::take(&mut counts[k]);
            if n > 0 {
                gains[k] += digamma(f64::from(n) + alpha[k]) - digamma(alpha[k]);
            }
        }
    }
    step_alpha(alpha, &gains, denominator);
}

/// Multiplies each α by its gain, unless there are no tokens.
pub(crate) fn step_alpha(alpha: &mut [f64], gains: &[f64], denominator: f64) {
    /// Minimum α, which keeps empty topics possible.
    const SMALLEST: f64 = 1e-6;
    if denominator <= 0.0 {
        return;
    }
    for (alpha, gain) in alpha.iter_mut().zip(gains) {
        *alpha = (*alpha * gain / denominator).clamp(SMALLEST, *DIRICHLET.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn documents() -> (TypedDocuments, Vec<u16>) {
        let mut rng = Rng::new(1);
        let lengths: Vec<usize> = (0..60).map(|_| (rng.uniform() * 30.0) as usize).collect();
        let documents = TypedDocuments::new(lengths.iter().map(|&n| vec![0; n]));
        // Topic 0 is the most frequent, topic 2 is unused.
        let topics = documents.types.iter().map(|_| u16::from(rng.uniform() < 0.3)).collect();
        (documents, topics)
    }

    #[test]
    fn the_log_probability_equals_the_product_of_the_polya_urn() {
        let (documents, topics) = documents();
        let alpha = [0.5, 0.2, 1.5];
        let mut expected = 0.0;
        for d in 0..documents.len() {
            let mut counts = [0.0; 3];
            for (i, &k) in topics[documents.range(d)].iter().enumerate() {
                let k = usize::from(k);
                expected += ((counts[k] + alpha[k]) / (i as f64 + 2.2)).ln();
                counts[k] += 1.0;
            }
        }
        let ours = log_mixtures(&documents, &topics, &alpha);
        assert!((ours - expected).abs() < 1e-9 * expected.abs(), "{ours} {expected}");
    }

    #[test]
    fn every_step_increases_the_likelihood() {
        let (documents, topics) = documents();
        let mut alpha = vec![0.3; 3];
        let mut last = log_mixtures(&documents, &topics, &alpha);
        for _ in 0..50 {
            improve_alpha(&documents, &topics, &mut alpha);
            let now = log_mixtures(&documents, &topics, &alpha);
            assert!(now >= last - 1e-9, "{last} {now}");
            last = now;
        }
        assert!(alpha[0] > alpha[1] && alpha[2] <= 1e-6, "{alpha:?}");
    }
}
