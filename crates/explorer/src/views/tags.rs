//! Taggers: the tags of a typed sentence, their probabilities, and the weights behind them.

use super::args::{TextArgs, below, parse};
use super::text::{Typed, largest};
use crate::error::ViewError;
use latens::model::{Matrix, Model, TagError, Tagger};
use latens::tasks::tagging::{Contribution, FeatureTagger, spans};
use serde::Deserialize;
use serde_json::{Value, json};

/// Limit on the words of a typed sentence.
const MAX_WORDS: usize = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightArgs {
    text: String,
    at: usize,
}

/// Answers `tags` and `weights`; `None` for other views, and for models that do not tag.
pub(crate) fn answer(
    model: &dyn Model,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    let tagger = model.as_tagger()?;
    Some(match (view, model.downcast_ref::<FeatureTagger>()) {
        ("tags", _) => parse::<TextArgs>(args).and_then(|args| tags(model, &*tagger, &args.text)),
        ("weights", Some(tagger)) => {
            parse::<WeightArgs>(args).and_then(|args| weights(tagger, &args))
        }
        _ => return None,
    })
}

fn tags(model: &dyn Model, tagger: &dyn Tagger, text: &str) -> Result<Value, ViewError> {
    const N_TAGS: usize = 5;
    let typed = Typed::new(model, text, MAX_WORDS)?;
    let words: Vec<&str> = typed.words.iter().map(String::as_str).collect();
    let found = tagger.tag(&words).map_err(ViewError::no_answer)?;
    let marginals: Option<Matrix<f32>> = match tagger.tag_marginals(&words, None) {
        Ok(marginals) => Some(marginals),
        Err(TagError::NoMarginals) => None,
        Err(error) => return Err(ViewError::no_answer(error)),
    };
    let names = tagger.tags();
    let token = |at: usize| {
        let probs = marginals.as_ref().map(|marginals| {
            let row: Vec<f64> = marginals.row(at).iter().map(|&p| f64::from(p)).collect();
            let one = |tag: usize| json!({ "tag": names[tag], "prob": row[tag] });
            largest(&row, N_TAGS).into_iter().map(one).collect::<Vec<_>>()
        });
        json!({
            "word": words[at],
            "tag": names[found[at] as usize],
            "seen": tagger.n_seen(words[at]),
            "probs": probs,
        })
    };
    let written: Vec<&str> = found.iter().map(|&tag| names[tag as usize].as_str()).collect();
    let is_span = latens::tasks::tagging::are_chunk_tags(names.iter().map(String::as_str));
    let found_spans = if is_span { spans(&written) } else { Vec::new() };
    let span = |span: &latens::tasks::tagging::Span<'_>| json!({ "kind": span.kind, "first": span.words.start, "end": span.words.end });
    Ok(json!({
        "tags": names,
        "tokens": (0..words.len()).map(token).collect::<Vec<_>>(),
        "spans": found_spans.iter().map(span).collect::<Vec<_>>(),
        "has_weights": model.downcast_ref::<FeatureTagger>().is_some(),
    }))
}

/// The features of one word with the largest contributions to the scores of its most likely tags.
fn weights(tagger: &FeatureTagger, args: &WeightArgs) -> Result<Value, ViewError> {
    const N_TAGS: usize = 4;
    const N_ROWS: usize = 15;
    let typed = Typed::new(tagger, &args.text, MAX_WORDS)?;
    let words: Vec<&str> = typed.words.iter().map(String::as_str).collect();
    let at = below("word", args.at, words.len())?;
    let parts = tagger.contributions(&words, None, at).map_err(ViewError::no_answer)?;
    let marginals = tagger.marginals(&words, None).map_err(ViewError::no_answer)?;
    let probs: Vec<f64> = marginals.row(at).iter().map(|&p| f64::from(p)).collect();
    let shown = largest(&probs, N_TAGS);
    let best = shown.first().copied().unwrap_or(0);
    let size: Vec<f64> = parts.iter().map(|part| f64::from(part.scores[best].abs())).collect();
    let part = |part: &Contribution| {
        let scores: Vec<f32> = shown.iter().map(|&tag| part.scores[tag]).collect();
        json!({ "name": part.name, "scores": scores })
    };
    let rows: Vec<Value> =
        largest(&size, N_ROWS).into_iter().map(|idx| part(&parts[idx])).collect();
    let names = tagger.internal_tags();
    Ok(json!({
        "word": words[at],
        "at": at,
        "tags": shown.iter().map(|&tag| &names[tag]).collect::<Vec<_>>(),
        "parts": rows,
        "n_parts": parts.len(),
    }))
}
