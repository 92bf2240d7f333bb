//! Language models: surprisal of a typed text, the next words, samples.

use super::args::{TextArgs, parse};
use super::text::{Typed, largest};
use crate::error::ViewError;
use latens::corpus::WordId;
use latens::math::Rng;
use latens::model::{LanguageModel, Model};
use latens::tasks::{SampleOptions, sample_with};
use serde::Deserialize;
use serde_json::{Value, json};

/// Limit on the words of a typed text.
const MAX_WORDS: usize = 2000;
/// Number of next words in an answer.
const N_NEXT: usize = 20;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SampleArgs {
    prompt: String,
    /// Number of the first sentence: a sample can be drawn in parts.
    first: u64,
    n: usize,
    seed: u64,
    temperature: f64,
}

impl Default for SampleArgs {
    fn default() -> SampleArgs {
        SampleArgs { prompt: String::new(), first: 0, n: 5, seed: 1, temperature: 1.0 }
    }
}

/// Answers `text` and `sample`; `None` for other views.
pub(crate) fn answer(
    model: &dyn Model,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    let language_model = model.as_language_model()?;
    Some(match view {
        "text" => parse::<TextArgs>(args).and_then(|args| text(model, &args.text)),
        "sample" => parse::<SampleArgs>(args).and_then(|args| sample(model, language_model, &args)),
        _ => return None,
    })
}

fn text(model: &dyn Model, text: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(model, text, MAX_WORDS)?;
    let Some(language_model) = model.as_language_model() else {
        return Err(ViewError::arguments("this is not a language model"));
    };
    Ok(scored(model, language_model, &typed))
}

/// Surprisal of the words of a text, and what comes next, from one pass of a scorer.
pub(crate) fn scored(
    model: &dyn Model,
    language_model: &dyn LanguageModel,
    typed: &Typed,
) -> Value {
    let vocab = &model.lexicon().vocab;
    let mut scorer = language_model.scorer();
    let bits: Vec<f64> = typed.ids.iter().map(|&id| bits(scorer.read(id))).collect();
    let mut log_probs = vec![0.0; language_model.n_words()];
    scorer.next_log_probs(&mut log_probs);
    let token = |at: usize| json!({ "word": typed.words[at], "known": typed.is_known(at), "bits": finite(bits[at]) });
    let next = |word: usize| json!({ "word": vocab.word(WordId::from(word)), "prob": log_probs[word].exp() });
    let end = bits_of_end(&log_probs);
    let total: f64 = bits.iter().sum::<f64>() + end;
    let n = bits.len() as f64 + 1.0;
    json!({
        "tokens": (0..bits.len()).map(token).collect::<Vec<_>>(),
        "next": largest(&log_probs, N_NEXT).into_iter().map(next).collect::<Vec<_>>(),
        "end_bits": finite(end),
        "perplexity": finite((total / n).exp2()),
    })
}

fn bits_of_end(log_probs: &[f64]) -> f64 {
    bits(log_probs[WordId::EOS.index()])
}

/// Surprisal in bits of a natural logarithm.
fn bits(log_prob: f64) -> f64 {
    -log_prob / std::f64::consts::LN_2
}

/// JSON has no infinity.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn sample(
    model: &dyn Model,
    language_model: &dyn LanguageModel,
    args: &SampleArgs,
) -> Result<Value, ViewError> {
    const MAX_SENTENCES: usize = 20;
    const MAX_DRAWN: usize = 60;
    if !(0.0..=10.0).contains(&args.temperature) {
        return Err(ViewError::arguments("`temperature` must be in [0, 10]"));
    }
    let typed = Typed::new(model, &args.prompt, MAX_WORDS)?;
    let mut options = SampleOptions::default();
    options.max_words = MAX_DRAWN;
    options.temperature = args.temperature;
    let vocab = &model.lexicon().vocab;
    let draw = |sentence: u64| -> Vec<&str> {
        let mut rng = Rng::stream(args.seed, sentence);
        let words = sample_with(language_model, &typed.ids, &options, &mut rng);
        words.into_iter().map(|word| vocab.word(word)).collect()
    };
    let numbers = (0..args.n.min(MAX_SENTENCES) as u64).map(|i| args.first.wrapping_add(i));
    let sentences: Vec<Vec<&str>> = numbers.map(draw).collect();
    Ok(json!({ "prompt": typed.words, "sentences": sentences }))
}
