//! Text that a language model makes up.

use latens_corpus::WordId;
use latens_math::{Rng, sample_log_index};
use latens_model::LanguageModel;

/// Draws one sentence from a fresh start: words until the end of the sentence, which is left out, or
/// until there are `max_words`.
pub fn sample(model: &dyn LanguageModel, max_words: usize, rng: &mut Rng) -> Vec<WordId> {
    let mut scorer = model.scorer();
    let mut log_probs = vec![0.0; model.n_words()];
    let mut sentence = Vec::new();
    while sentence.len() < max_words {
        scorer.next_log_probs(&mut log_probs);
        // The unknown word says nothing to a reader, so the others share its probability.
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
