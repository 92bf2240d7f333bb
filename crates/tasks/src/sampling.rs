//! Text sampled from a language model.

use latens_corpus::WordId;
use latens_math::{Rng, sample_log_index};
use latens_model::LanguageModel;

/// Samples one sentence of at most `max_words` words. The end-of-sentence token is not included.
pub fn sample(model: &dyn LanguageModel, max_words: usize, rng: &mut Rng) -> Vec<WordId> {
    let mut scorer = model.scorer();
    let mut log_probs = vec![0.0; model.n_words()];
    let mut sentence = Vec::new();
    while sentence.len() < max_words {
        scorer.next_log_probs(&mut log_probs);
        // `<unk>` is useless to a reader. Excluding it renormalizes the other words.
        log_probs[WordId::UNK.index()] = f64::NEG_INFINITY;
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
