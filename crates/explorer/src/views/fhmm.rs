//! Factorial hidden Markov models: layers side by side.

use super::args::{MAX_ROWS, NoArgs, TextArgs, below, parse};
use super::text::{Typed, largest, weighted};
use crate::error::ViewError;
use latens::corpus::WordId;
use latens::fhmm::Fhmm;
use serde::Deserialize;
use serde_json::{Value, json};

/// Limit on the words of a typed sentence.
const MAX_WORDS: usize = 100;
/// Number of states per layer whose posterior is shown.
const N_SHOWN: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerStateArgs {
    layer: usize,
    state: usize,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SampleArgs {
    n: usize,
    seed: u64,
}

impl Default for SampleArgs {
    fn default() -> SampleArgs {
        SampleArgs { n: 60, seed: 1 }
    }
}

/// Answers `layers`, `layer_state`, `sentence` and `sample_states`; `None` for other views.
pub(crate) fn answer(fhmm: &Fhmm, view: &str, args: &Value) -> Option<Result<Value, ViewError>> {
    Some(match view {
        "layers" => parse::<NoArgs>(args).map(|_| layers(fhmm)),
        "layer_state" => parse::<LayerStateArgs>(args).and_then(|args| state(fhmm, &args)),
        "sentence" => parse::<TextArgs>(args).and_then(|args| sentence(fhmm, &args.text)),
        "sample_states" => parse::<SampleArgs>(args).map(|args| sample(fhmm, &args)),
        _ => return None,
    })
}

fn words(fhmm: &Fhmm, layer: usize, state: usize, n: usize) -> Vec<&str> {
    fhmm.top_words(layer, state, n).into_iter().map(|(word, _)| word).collect()
}

fn layers(fhmm: &Fhmm) -> Value {
    let state = |layer: usize, state: usize| {
        let start = fhmm.start(layer)[state];
        json!({ "state": state, "start": start, "words": words(fhmm, layer, state, 8) })
    };
    let n_shown = fhmm.n_states().min(MAX_ROWS / fhmm.n_layers().max(1));
    let layer = |layer: usize| (0..n_shown).map(|s| state(layer, s)).collect::<Vec<_>>();
    json!({
        "n_layers": fhmm.n_layers(),
        "n_states": fhmm.n_states(),
        "layers": (0..fhmm.n_layers()).map(layer).collect::<Vec<_>>(),
    })
}

fn state(fhmm: &Fhmm, args: &LayerStateArgs) -> Result<Value, ViewError> {
    let layer = below("layer", args.layer, fhmm.n_layers())?;
    let state = below("state", args.state, fhmm.n_states())?;
    let probs: Vec<f64> = fhmm.transition(layer, state).iter().map(|&p| f64::from(p)).collect();
    let next = |next: usize| json!({ "state": next, "prob": probs[next], "words": words(fhmm, layer, next, 8) });
    let top = fhmm.top_words(layer, state, 30).into_iter().map(|(word, p)| (word, f64::from(p)));
    Ok(json!({
        "layer": layer,
        "state": state,
        "start": fhmm.start(layer)[state],
        "words": weighted("score", top),
        "next": largest(&probs, 10).into_iter().map(next).collect::<Vec<_>>(),
    }))
}

/// The posterior and the most likely path of each layer.
fn sentence(fhmm: &Fhmm, text: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(fhmm, text, MAX_WORDS)?;
    let (posterior, path) = (fhmm.posterior(text), fhmm.viterbi(text));
    let n = fhmm.n_states();
    let layer = |layer: usize| {
        let prob = |row: usize, state: usize| posterior[(row, layer * n + state)];
        let sum = |state| (0..posterior.n_rows()).map(|row| f64::from(prob(row, state))).sum();
        let sums: Vec<f64> = (0..n).map(sum).collect();
        let mut shown = largest(&sums, N_SHOWN);
        shown.sort_unstable();
        let states = shown.into_iter().map(|state| {
            let probs: Vec<f32> = (0..posterior.n_rows()).map(|row| prob(row, state)).collect();
            json!({ "state": state, "words": words(fhmm, layer, state, 4), "posterior": probs })
        });
        let path: Vec<u32> = (0..path.n_rows()).map(|row| path[(row, layer)]).collect();
        json!({ "states": states.collect::<Vec<_>>(), "path": path })
    };
    let token = |at: usize| json!({ "word": typed.words[at], "known": typed.is_known(at) });
    let bound_bits = -fhmm.bound(text) / std::f64::consts::LN_2;
    Ok(json!({
        "tokens": (0..typed.words.len()).map(token).collect::<Vec<_>>(),
        "layers": (0..fhmm.n_layers()).map(layer).collect::<Vec<_>>(),
        "bound_bits": bound_bits.is_finite().then_some(bound_bits),
    }))
}

fn sample(fhmm: &Fhmm, args: &SampleArgs) -> Value {
    let found = fhmm.sample_states(args.n.min(200), args.seed);
    let token = |(at, &word): (usize, &WordId)| json!({ "word": fhmm.lexicon().vocab.word(word), "states": found.states.row(at) });
    json!({ "tokens": found.words.iter().enumerate().map(token).collect::<Vec<_>>() })
}
