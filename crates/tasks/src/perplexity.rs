//! Perplexity of a text under a language model.

use latens_corpus::{Sentences, WordId};
use latens_model::{Device, DeviceError, LanguageModel};
use rayon::prelude::*;

/// Log-probability and token counts of a scored text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// Natural logarithm of the probability of the text.
    pub log_prob: f64,
    /// Number of predicted tokens, including one end-of-sentence token per sentence.
    pub tokens: usize,
    /// Number of `<unk>` tokens: out-of-vocabulary words and literal `<unk>` in the text.
    pub oov: usize,
}

impl Perplexity {
    fn of(log_prob: f64, text: &Sentences) -> Perplexity {
        let oov = text.tokens().iter().filter(|&&word| word == WordId::UNK).count();
        Perplexity { log_prob, tokens: text.n_tokens(), oov }
    }

    /// exp(−ln p / tokens). Infinite if a token has probability zero.
    pub fn perplexity(&self) -> f64 {
        (-self.log_prob / self.tokens as f64).exp()
    }
}

/// Scores every token of a text in order.
///
/// Threads share the sentences if the model forgets its history at the end of a sentence. The result does not depend on
/// the number of threads.
pub fn perplexity(model: &dyn LanguageModel, text: &Sentences) -> Perplexity {
    let log_probs = by_parts(model, text, 256, |part| model.text_log_prob(part));
    Perplexity::of(log_probs.iter().sum(), text)
}

/// Scores the parts of a text in parallel, if the model forgets its history at the end of a sentence; else all at once.
///
/// A part has a given number of sentences, or more if the model prefers more. The number of threads does not change it, so
/// rounding does not depend on them.
fn by_parts<T: Send>(
    model: &dyn LanguageModel,
    text: &Sentences,
    n_sentences: usize,
    score: impl Fn(&[WordId]) -> T + Sync,
) -> Vec<T> {
    if !model.forgets_sentences() {
        return vec![score(text.tokens())];
    }
    let n_sentences = n_sentences.max(model.sentences_together());
    let ends = (0..text.len()).step_by(n_sentences).map(|begin| {
        let end = (begin + n_sentences).min(text.len());
        [begin, end].map(|sentence| text.offsets()[sentence] as usize)
    });
    let ends: Vec<[usize; 2]> = ends.collect();
    ends.into_par_iter().map(|[begin, end]| score(&text.tokens()[begin..end])).collect()
}

/// [`perplexity`] on a device. A GPU scores hidden Markov models and networks.
pub fn perplexity_on(
    device: Device,
    model: &dyn LanguageModel,
    text: &Sentences,
) -> Result<Perplexity, DeviceError> {
    match device {
        Device::Cpu => Ok(perplexity(model, text)),
        Device::Cuda => Ok(Perplexity::of(model.log_prob_on_gpu(text)?, text)),
    }
}

/// ln p of every token of a text given the tokens before it, in order, end-of-sentence tokens included.
///
/// Their sum is the log-probability of [`perplexity`] up to rounding. Networks take longer word by word than at once.
pub fn token_log_probs(model: &dyn LanguageModel, text: &Sentences) -> Vec<f64> {
    // Small parts, so that all threads score a short text, unless the model shares products among more sentences.
    by_parts(model, text, 32, |part| model.token_log_probs(part)).concat()
}

/// [`token_log_probs`] on a device. A GPU scores hidden Markov models word by word.
pub fn token_log_probs_on(
    device: Device,
    model: &dyn LanguageModel,
    text: &Sentences,
) -> Result<Vec<f64>, DeviceError> {
    match device {
        Device::Cpu => Ok(token_log_probs(model, text)),
        Device::Cuda => model.token_log_probs_on_gpu(text),
    }
}

/// The position of a token to which a model assigns probability zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Index of the sentence, counted from 0.
    pub sentence_idx: usize,
    /// Index of the token in the sentence, counted from 0.
    pub token_idx: usize,
}

/// Returns the first token of a text that has probability zero given the tokens before it, if any.
pub fn first_impossible(model: &dyn LanguageModel, text: &Sentences) -> Option<Impossible> {
    let mut scorer = model.scorer();
    text.iter().enumerate().find_map(|(sentence_idx, sentence)| {
        let log_probs: Vec<f64> = sentence.iter().map(|&word| scorer.read(word)).collect();
        let token_idx = log_probs.iter().position(|&p| p == f64::NEG_INFINITY)?;
        Some(Impossible { sentence_idx, token_idx })
    })
}
