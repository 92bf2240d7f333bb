//! How well a language model predicts a text.

use latens_corpus::{Sentences, WordId};
use latens_model::LanguageModel;
use rayon::prelude::*;

/// What a language model makes of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// ln p of the whole text.
    pub log_prob: f64,
    /// How many tokens were predicted, one end of sentence a sentence among them.
    pub tokens: usize,
    /// How many of them were `<unk>`, in the text or for lack of a better id.
    pub oov: usize,
}

impl Perplexity {
    /// exp(−ln p / tokens): the model was as unsure as if it had chosen among this many words with
    /// equal probability, each time. Infinite if a token had probability zero.
    pub fn perplexity(&self) -> f64 {
        (-self.log_prob / self.tokens as f64).exp()
    }
}

/// Scores a text, every token of it, in order.
///
/// Sentences are shared among threads if the model lets them; the sum is the same whatever the
/// number of threads.
pub fn perplexity(model: &dyn LanguageModel, text: &Sentences) -> Perplexity {
    let log_prob = if model.forgets_sentences() {
        // Fixed shards, so that sums of rounded numbers do not depend on who computed them.
        const SHARD: usize = 256;
        let shards: Vec<f64> = (0..text.len().div_ceil(SHARD))
            .into_par_iter()
            .map(|shard| {
                let (begin, end) = (shard * SHARD, ((shard + 1) * SHARD).min(text.len()));
                let [begin, end] = [begin, end].map(|sentence| text.offsets()[sentence] as usize);
                model.text_log_prob(&text.tokens()[begin..end])
            })
            .collect();
        shards.iter().sum()
    } else {
        model.text_log_prob(text.tokens())
    };
    let oov = text.tokens().iter().filter(|&&word| word == WordId::UNK).count();
    Perplexity { log_prob, tokens: text.n_tokens(), oov }
}

/// A token that a model gives probability zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The sentence, counted from 0.
    pub sentence_idx: usize,
    /// The token of the sentence, counted from 0.
    pub token_idx: usize,
}

/// The first token of a text that is impossible where it stands, if there is one.
pub fn first_impossible(model: &dyn LanguageModel, text: &Sentences) -> Option<Impossible> {
    let mut scorer = model.scorer();
    text.iter().enumerate().find_map(|(sentence_idx, sentence)| {
        let log_probs: Vec<f64> = sentence.iter().map(|&word| scorer.read(word)).collect();
        let token_idx = log_probs.iter().position(|&p| p == f64::NEG_INFINITY)?;
        Some(Impossible { sentence_idx, token_idx })
    })
}
