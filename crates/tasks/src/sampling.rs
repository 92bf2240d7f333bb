//! Text sampled from a language model.

use latens_corpus::WordId;
use latens_math::{Rng, log_sum_exp, sample_log_index};
use latens_model::LanguageModel;

/// How words are drawn. The distribution is changed in this order: `<unk>`, temperature, top k, top p.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampleOptions {
    /// Maximum number of words to draw.
    pub max_words: usize,
    /// Whether `<unk>` may be drawn. Otherwise the other words are renormalized.
    pub keep_unk: bool,
    /// Probabilities are raised to the power 1/T and renormalized: below 1 likely words become likelier; 0 always takes
    /// the likeliest word.
    pub temperature: f64,
    /// Draw from the k likeliest words only.
    pub top_k: Option<usize>,
    /// Draw from the smallest set of likeliest words whose probability is at least p (Holtzman et al. 2020).
    pub top_p: Option<f64>,
}

impl Default for SampleOptions {
    fn default() -> SampleOptions {
        SampleOptions {
            max_words: 100,
            keep_unk: false,
            temperature: 1.0,
            top_k: None,
            top_p: None,
        }
    }
}

/// Samples one sentence of at most `max_words` words. The end-of-sentence token and `<unk>` are not included.
pub fn sample(model: &dyn LanguageModel, max_words: usize, rng: &mut Rng) -> Vec<WordId> {
    sample_with(model, &[], &SampleOptions { max_words, ..SampleOptions::default() }, rng)
}

/// Samples the continuation of a sentence that begins with `prompt`, without the prompt and the end-of-sentence token.
///
/// # Panics
/// If `temperature` is negative, or a word of the prompt is not below [`LanguageModel::n_words`].
pub fn sample_with(
    model: &dyn LanguageModel,
    prompt: &[WordId],
    options: &SampleOptions,
    rng: &mut Rng,
) -> Vec<WordId> {
    assert!(options.temperature >= 0.0, "the temperature must not be negative");
    let mut scorer = model.scorer();
    prompt.iter().for_each(|&word| _ = scorer.read(word));
    let mut log_probs = vec![0.0; model.n_words()];
    let mut sentence = Vec::new();
    while sentence.len() < options.max_words {
        scorer.next_log_probs(&mut log_probs);
        options.apply(&mut log_probs);
        if log_probs.iter().all(|&log_prob| log_prob == f64::NEG_INFINITY) {
            break;
        }
        let word = WordId::from(sample_log_index(&log_probs, rng));
        if word == WordId::EOS {
            break;
        }
        scorer.read(word);
        sentence.push(word);
    }
    sentence
}

impl SampleOptions {
    /// Changes log-probabilities of words; the results are not normalized.
    pub fn apply(&self, log_probs: &mut [f64]) {
        // `<unk>` is useless to a reader. Excluding it renormalizes the other words.
        if !self.keep_unk {
            log_probs[WordId::UNK.index()] = f64::NEG_INFINITY;
        }
        if self.temperature == 0.0 {
            return keep_likeliest(log_probs, 1);
        }
        if self.temperature != 1.0 {
            log_probs.iter_mut().for_each(|log_prob| *log_prob /= self.temperature);
        }
        if let Some(k) = self.top_k {
            keep_likeliest(log_probs, k);
        }
        if let Some(p) = self.top_p.filter(|&p| p < 1.0) {
            keep_likeliest(log_probs, nucleus_size(log_probs, p));
        }
    }
}

/// Sets all but the `k` largest log-probabilities to −∞. Ties go to the first word.
fn keep_likeliest(log_probs: &mut [f64], k: usize) {
    let order = descending(log_probs);
    order.into_iter().skip(k).for_each(|word| log_probs[word] = f64::NEG_INFINITY);
}

/// Number of the likeliest words whose probability is at least `p` together; at least one.
fn nucleus_size(log_probs: &[f64], p: f64) -> usize {
    let log_total = log_sum_exp(log_probs);
    let mut sum = 0.0;
    let reaches = |&word: &usize| {
        sum += (log_probs[word] - log_total).exp();
        // The tolerance keeps rounding from adding a word.
        sum >= p - 1e-12
    };
    descending(log_probs).iter().position(reaches).map_or(log_probs.len(), |last| last + 1)
}

fn descending(log_probs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..log_probs.len()).collect();
    order.sort_by(|&a, &b| log_probs[b].total_cmp(&log_probs[a]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBS: [f64; 5] = [0.2, 0.1, 0.4, 0.05, 0.25];

    /// The distribution from which a word is drawn.
    fn changed(options: &SampleOptions) -> Vec<f64> {
        let mut log_probs = PROBS.map(f64::ln);
        options.apply(&mut log_probs);
        let total = log_sum_exp(&log_probs);
        log_probs.iter().map(|log_prob| (log_prob - total).exp()).collect()
    }

    fn assert_close(found: &[f64], weights: [f64; 5]) {
        let total: f64 = weights.iter().sum();
        for (found, weight) in found.iter().zip(weights) {
            assert!((found - weight / total).abs() < 1e-12, "{found} {weights:?}");
        }
    }

    #[test]
    fn the_distribution_is_renormalized_exactly() {
        let unk = SampleOptions { keep_unk: true, ..SampleOptions::default() };
        let none = [0.0, PROBS[1], PROBS[2], PROBS[3], PROBS[4]];
        assert_close(&changed(&SampleOptions::default()), none);
        assert_close(&changed(&unk), PROBS);
        for temperature in [0.25, 0.7, 1.0, 3.0] {
            let cooled = changed(&SampleOptions { temperature, ..unk.clone() });
            assert_close(&cooled, PROBS.map(|p| p.powf(1.0 / temperature)));
        }
        assert_close(
            &changed(&SampleOptions { temperature: 0.0, ..unk.clone() }),
            [0., 0., 1., 0., 0.],
        );
        let top_k = SampleOptions { top_k: Some(3), ..unk.clone() };
        assert_close(&changed(&top_k), [0.2, 0.0, 0.4, 0.0, 0.25]);
        // Without `<unk>`, the third is another word.
        let never = SampleOptions { top_k: Some(3), ..SampleOptions::default() };
        assert_close(&changed(&never), [0.0, 0.1, 0.4, 0.0, 0.25]);
        for (p, kept) in [(0.3, 1), (0.4, 1), (0.41, 2), (0.65, 2), (0.8, 3), (0.9, 4), (1.0, 5)] {
            let found = changed(&SampleOptions { top_p: Some(p), ..unk.clone() });
            assert_eq!(found.iter().filter(|&&p| p > 0.0).count(), kept, "{p}");
        }
        // Top p counts the probabilities that top k leaves: 0.4 of 0.65.
        let both = SampleOptions { top_k: Some(2), top_p: Some(0.6), ..unk };
        assert_close(&changed(&both), [0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
