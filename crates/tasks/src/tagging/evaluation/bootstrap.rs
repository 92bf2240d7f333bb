//! Paired bootstrap of the F1 of spans (Berg-Kirkpatrick, Burkett and Klein 2012; Koehn 2004).

use super::per_type::ratio;
use super::tagged::{EvaluateError, tag_names, true_tags};
use crate::tagging::spans::{Span, are_chunk_tags, spans};
use latens_corpus::TaggedSentences;
use latens_math::Rng;
use latens_model::Tagger;
use rayon::prelude::*;
use std::collections::HashSet;

/// Comparison of two taggers by the F1 of spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanComparison {
    /// F1 of each tagger.
    pub f1: [f64; 2],
    /// Bounds of the 95 % confidence interval of the F1 of the first tagger minus that of the second one.
    pub interval: [f64; 2],
    /// Two-sided p-value: the probability of a difference at least as large if both taggers were equally good.
    pub p_value: f64,
}

/// Number of true spans of a sentence, and of predicted and correct ones of both taggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentenceSpans {
    pub(crate) n_true: usize,
    pub(crate) n_predicted: [usize; 2],
    pub(crate) n_correct: [usize; 2],
}

/// Tags a text with two taggers and compares the F1 of spans by `n_samples` bootstrap samples of sentences. `None` if the
/// tags in `column`, counted from 0, do not encode spans.
pub fn compare_spans(
    taggers: [&dyn Tagger; 2],
    text: &TaggedSentences,
    column: usize,
    n_samples: usize,
    seed: u64,
) -> Result<Option<SpanComparison>, EvaluateError> {
    text.check_column(column)?;
    let truth = true_tags(text, column);
    if !are_chunk_tags(truth.iter().flatten().copied()) {
        return Ok(None);
    }
    let found = [tag_names(taggers[0], text)?, tag_names(taggers[1], text)?];
    let counts: Vec<SentenceSpans> = truth
        .iter()
        .zip(found[0].iter().zip(&found[1]))
        .map(|(truth, (first, second))| {
            let set = |tags: &[_]| spans(tags).into_iter().collect::<HashSet<Span<'_>>>();
            let (truth, found) = (set(truth), [set(first), set(second)]);
            SentenceSpans {
                n_true: truth.len(),
                n_predicted: [found[0].len(), found[1].len()],
                n_correct: [0, 1].map(|i| truth.intersection(&found[i]).count()),
            }
        })
        .collect();
    Ok(Some(bootstrap(&counts, n_samples, seed)))
}

/// Resamples sentences. Each sample has a generator of its own, so that the number of threads does not matter.
///
/// The differences of the samples scatter around the observed difference δ as differences of new texts scatter around the
/// true one, so p = Pr(|δ* − δ| ≥ |δ|).
pub(crate) fn bootstrap(counts: &[SentenceSpans], n_samples: usize, seed: u64) -> SpanComparison {
    let f1 = f1(counts.iter());
    let observed = f1[0] - f1[1];
    let difference = |sample: u64| {
        let mut rng = Rng::stream(seed, sample);
        let n = counts.len();
        let draw = |_| &counts[((rng.uniform() * n as f64) as usize).min(n - 1)];
        let f1 = self::f1((0..n).map(draw));
        f1[0] - f1[1]
    };
    let mut differences: Vec<f64> = (0..n_samples as u64).into_par_iter().map(difference).collect();
    differences.sort_by(f64::total_cmp);
    // The tolerance counts ties in spite of rounding.
    let is_extreme = |&&found: &&f64| (found - observed).abs() >= observed.abs() - 1e-12;
    let n_extreme = differences.iter().filter(is_extreme).count();
    let quantile = |share: f64| {
        let rank = (share * (n_samples.max(1) - 1) as f64).round() as usize;
        differences.get(rank).copied().unwrap_or(observed)
    };
    SpanComparison {
        f1,
        interval: [quantile(0.025), quantile(0.975)],
        p_value: (n_extreme + 1) as f64 / (n_samples + 1) as f64,
    }
}

/// F1 of both taggers on some sentences.
fn f1<'a>(counts: impl Iterator<Item = &'a SentenceSpans>) -> [f64; 2] {
    let mut sum = SentenceSpans::default();
    for count in counts {
        sum.n_true += count.n_true;
        for i in [0, 1] {
            sum.n_predicted[i] += count.n_predicted[i];
            sum.n_correct[i] += count.n_correct[i];
        }
    }
    [0, 1].map(|i| ratio(2 * sum.n_correct[i], sum.n_true + sum.n_predicted[i]).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(n_true: usize, first: (usize, usize), second: (usize, usize)) -> SentenceSpans {
        let (n_predicted, n_correct) = ([first.0, second.0], [first.1, second.1]);
        SentenceSpans { n_true, n_predicted, n_correct }
    }

    #[test]
    fn p_values_agree_with_the_enumeration_of_all_samples() {
        let counts = [
            sentence(2, (2, 2), (2, 1)),
            sentence(1, (1, 1), (1, 1)),
            sentence(1, (2, 1), (1, 0)),
            sentence(2, (1, 1), (2, 2)),
        ];
        let found = bootstrap(&counts, 200_000, 1);
        let observed = f1(counts.iter());
        assert_eq!(found.f1, observed);
        // By hand: the first has 5 of 6 predictions right, the second 4 of 6; there are 6 true spans.
        assert!(
            (observed[0] - 10.0 / 12.0).abs() < 1e-12 && (observed[1] - 8.0 / 12.0).abs() < 1e-12
        );
        // All 4⁴ samples are equally likely.
        let observed = observed[0] - observed[1];
        let is_extreme = |code: &usize| {
            let sample = [0, 1, 2, 3].map(|place| &counts[code / 4usize.pow(place) % 4]);
            let f1 = f1(sample.into_iter());
            (f1[0] - f1[1] - observed).abs() >= observed.abs() - 1e-12
        };
        let expected = (0..256).filter(is_extreme).count() as f64 / 256.0;
        assert!(expected > 0.05 && expected < 0.95);
        assert!((found.p_value - expected).abs() < 0.005, "{} {expected}", found.p_value);
        assert!(found.interval[0] <= observed && observed <= found.interval[1]);
    }

    #[test]
    fn equal_taggers_do_not_differ_and_samples_do_not_depend_on_threads() {
        let equal = [sentence(2, (2, 1), (2, 1)), sentence(1, (1, 1), (1, 1))];
        let found = bootstrap(&equal, 100, 1);
        assert_eq!((found.p_value, found.interval), (1.0, [0.0, 0.0]));
        let counts: Vec<SentenceSpans> =
            (0..50).map(|i| sentence(3, (3, i % 4), (3, i % 3))).collect();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap(&counts, 500, 7))
        };
        assert_eq!(run(1), run(3));
    }
}
