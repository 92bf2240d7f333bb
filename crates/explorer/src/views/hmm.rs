//! Hidden Markov models: states, transitions, and the states of a typed sentence.

use super::args::{MAX_ROWS, PageArgs, TextArgs, WordArgs, below, parse};
use super::language::scored;
use super::text::{Typed, largest, weighted};
use crate::error::ViewError;
use latens::corpus::WordId;
use latens::hmm::Hmm;
use latens::model::Matrix;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Limit on the words of a typed sentence: its posterior has a row per word.
const MAX_WORDS: usize = 300;
/// Number of states in a picture of transitions.
const N_NEIGHBORS: usize = 10;
/// Number of states whose posterior is shown.
const N_SHOWN: usize = 24;
/// Up to this number of states, the stationary distribution and all transitions are computed; the cost is quadratic.
const MAX_EXACT: usize = 2048;
/// Number of tokens of the sample from which the shares of more states are estimated.
const N_SAMPLE: usize = 20_000;

/// What is computed once per model.
#[derive(Default)]
pub(crate) struct HmmCache {
    shares: OnceLock<Vec<f64>>,
    /// States by descending share.
    order: OnceLock<Vec<usize>>,
    /// All transitions of a model with few states.
    transitions: OnceLock<Option<Matrix<f32>>>,
    /// The first words of each state.
    words: OnceLock<Vec<OnceLock<Vec<WordId>>>>,
}

impl HmmCache {
    /// Computes everything, so that later queries are answered at once.
    pub(crate) fn fill(&self, hmm: &Hmm) {
        self.order(hmm);
        self.transitions(hmm);
    }

    fn shares(&self, hmm: &Hmm) -> &[f64] {
        self.shares.get_or_init(|| {
            if hmm.n_states() <= MAX_EXACT {
                return hmm.stationary();
            }
            let mut shares = vec![0.0; hmm.n_states()];
            let states = hmm.sample_states(N_SAMPLE, 1).states;
            let each = 1.0 / states.len().max(1) as f64;
            states.into_iter().for_each(|state| shares[state as usize] += each);
            shares
        })
    }

    /// The first words of a state, at most eight.
    fn words<'a>(&self, hmm: &'a Hmm, state: usize, n: usize) -> Vec<&'a str> {
        const N: usize = 8;
        let all = self.words.get_or_init(|| vec![OnceLock::new(); hmm.n_states()]);
        let ids = all[state]
            .get_or_init(|| hmm.top_word_ids(state, N).into_iter().map(|(word, _)| word).collect());
        ids.iter().take(n).map(|&word| hmm.lexicon().vocab.word(word)).collect()
    }

    fn order(&self, hmm: &Hmm) -> &[usize] {
        self.order.get_or_init(|| largest(self.shares(hmm), hmm.n_states()))
    }

    fn transitions(&self, hmm: &Hmm) -> Option<&Matrix<f32>> {
        let all = || {
            let n = hmm.n_states();
            let rows = (0..n).flat_map(|state| hmm.transition(state));
            (n <= MAX_EXACT).then(|| Matrix::from_vec(n, n, rows.collect()))
        };
        self.transitions.get_or_init(all).as_ref()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateArgs {
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

/// Answers `states`, `state`, `states_of_word`, `sentence` and `sample_states`; `None` for other views.
pub(crate) fn answer(
    hmm: &Hmm,
    cache: &HmmCache,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    Some(match view {
        "states" => parse::<PageArgs>(args).map(|args| states(hmm, cache, &args)),
        "state" => parse::<StateArgs>(args).and_then(|args| state(hmm, cache, args.state)),
        "states_of_word" => {
            parse::<WordArgs>(args).and_then(|args| states_of_word(hmm, cache, &args.word))
        }
        "sentence" => parse::<TextArgs>(args).and_then(|args| sentence(hmm, cache, &args.text)),
        "sample_states" => parse::<SampleArgs>(args).map(|args| sample(hmm, &args)),
        _ => return None,
    })
}

fn summary(hmm: &Hmm, cache: &HmmCache, state: usize) -> Value {
    let words = cache.words(hmm, state, 8);
    json!({ "state": state, "share": cache.shares(hmm)[state], "words": words })
}

fn states(hmm: &Hmm, cache: &HmmCache, args: &PageArgs) -> Value {
    let order = cache.order(hmm).iter().skip(args.first).take(args.n.min(MAX_ROWS));
    json!({
        "n_states": hmm.n_states(),
        "first": args.first,
        "estimated": hmm.n_states() > MAX_EXACT,
        "states": order.map(|&state| summary(hmm, cache, state)).collect::<Vec<_>>(),
    })
}

fn state(hmm: &Hmm, cache: &HmmCache, state: usize) -> Result<Value, ViewError> {
    let state = below("state", state, hmm.n_states())?;
    let wide = |probs: Vec<f32>| -> Vec<f64> { probs.into_iter().map(f64::from).collect() };
    let next = wide(hmm.transition(state));
    let shares = cache.shares(hmm);
    // p(z | z') p(z') / p(z) is the probability that z' came before.
    let before: Option<Vec<f64>> = cache.transitions(hmm).map(|all| {
        let flow = |from: usize| shares[from] * f64::from(all[(from, state)]);
        let flows: Vec<f64> = (0..hmm.n_states()).map(flow).collect();
        let total: f64 = flows.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        flows.iter().map(|flow| flow / total).collect()
    });
    let neighbors = |probs: &[f64]| -> Vec<Value> {
        let one = |other: usize| {
            let mut value = summary(hmm, cache, other);
            value["prob"] = json!(probs[other]);
            value
        };
        largest(probs, N_NEIGHBORS).into_iter().filter(|&s| probs[s] > 0.0).map(one).collect()
    };
    let words = hmm.top_words(state, 30).into_iter().map(|(word, p)| (word, f64::from(p)));
    Ok(json!({
        "state": state,
        "share": shares[state],
        "start": hmm.start()[state],
        "words": weighted("prob", words),
        "next": neighbors(&next),
        "before": before.as_deref().map(neighbors),
    }))
}

/// The states of a sentence of one word.
fn states_of_word(hmm: &Hmm, cache: &HmmCache, word: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(hmm, word, 1)?;
    let [word] = &typed.words[..] else {
        return Err(ViewError::arguments("type one word"));
    };
    let posterior = hmm.posterior(word).map_err(ViewError::no_answer)?;
    let probs: Vec<f64> = posterior.row(0).iter().map(|&p| f64::from(p)).collect();
    let one = |state: usize| {
        let mut value = summary(hmm, cache, state);
        value["prob"] = json!(probs[state]);
        value
    };
    let states: Vec<Value> =
        largest(&probs, 20).into_iter().filter(|&s| probs[s] > 0.0).map(one).collect();
    Ok(json!({ "word": word, "known": typed.is_known(0), "states": states }))
}

/// Surprisal, the next words, the most likely path, and the posterior of the states with the largest sums.
fn sentence(hmm: &Hmm, cache: &HmmCache, text: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(hmm, text, MAX_WORDS)?;
    let mut answer = scored(hmm, hmm, &typed);
    let posterior = hmm.posterior(text).map_err(ViewError::no_answer)?;
    let mut sums = vec![0.0; hmm.n_states()];
    for row in 0..posterior.n_rows() {
        sums.iter_mut().zip(posterior.row(row)).for_each(|(sum, &p)| *sum += f64::from(p));
    }
    let mut shown: Vec<usize> =
        largest(&sums, N_SHOWN).into_iter().filter(|&state| sums[state] > 0.0).collect();
    shown.sort_unstable();
    let state = |&state: &usize| {
        let probs: Vec<f32> = (0..posterior.n_rows()).map(|row| posterior[(row, state)]).collect();
        json!({ "state": state, "words": cache.words(hmm, state, 4), "posterior": probs })
    };
    answer["states"] = json!(shown.iter().map(state).collect::<Vec<_>>());
    answer["path"] = json!(hmm.viterbi(text).map_err(ViewError::no_answer)?);
    Ok(answer)
}

fn sample(hmm: &Hmm, args: &SampleArgs) -> Value {
    let found = hmm.sample_states(args.n.min(MAX_ROWS), args.seed);
    let token = |(&word, &state): (&WordId, &u32)| json!({ "word": hmm.lexicon().vocab.word(word), "state": state });
    json!({ "tokens": found.words.iter().zip(&found.states).map(token).collect::<Vec<_>>() })
}
