//! Fitting a model to a corpus.

use crate::cost::cost;
use crate::fitted::model::Fhmm;
use crate::params::{BaseMeasure, FhmmParams};
use crate::shape::Shape;
use crate::train::state::State;
use crate::train::statistics::Statistics;
use crate::train::task::Task;
use crate::train::trainer::{self, Fitted};
use crate::word_rows::WordRows;
use latens_corpus::{Corpus, Sentences};
use latens_model::{
    Checkpoint, Cost, Fit, FitError, Session, Setup, Valid, Watch, data_fingerprint,
};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Fits a factorial HMM to sentences. A validation set is evaluated after each epoch.
///
/// [`Fhmm::facts`] of the result include `train_bound`, measured during the last epoch, and `valid_bound`, lower bounds on
/// the log-likelihood in nats per token, and `sweeps` per token. [`Fhmm::warnings`] reports problems.
impl Fit for FhmmParams {
    type Model = Fhmm;
    type Data = Corpus;
    type Inputs<'a> = ();
    type Error = FitError;

    fn cost_with(params: &FhmmParams, corpus: &Corpus, (): &(), _: &Setup<'_>) -> Cost {
        cost(params, corpus)
    }

    fn fit_with(
        params: &Valid<FhmmParams>,
        corpus: &Corpus,
        (): (),
        session: Session<'_>,
    ) -> Result<Fhmm, FitError> {
        session.refuse_cuda()?;
        let Session { valid, checkpoint, watch, .. } = session;
        fit_from(checkpoint, params, corpus, valid, watch)
    }
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    params: &Valid<FhmmParams>,
    corpus: &Corpus,
    valid: Option<&Sentences>,
    watch: &mut Watch,
) -> Result<Fhmm, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = corpus;
    if sentences.n_tokens() == 0 {
        return Err(FitError::not_enough_data("at least 1 sentence", 0));
    }
    if valid.is_some_and(|valid| valid.n_tokens() == 0) {
        return Err(FitError::not_enough_data("a validation set of at least 1 sentence", 0));
    }
    let mut counts = vec![0; lexicon.vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    let rows = WordRows::new(&lexicon.vocab, &counts, params.min_count, params.unknown);
    if rows.n_rows < 2 {
        let needs = format!("at least 2 words that occur {} times", params.min_count);
        return Err(FitError::not_enough_data(needs, rows.n_rows));
    }
    let unigrams = unigrams(&rows, &counts);
    let base = base_scores(params, &rows, &unigrams);
    let shape =
        Shape { n_layers: params.n_layers, n_states: params.n_states, n_words: rows.n_rows };
    let held_out = valid.map_or(0, |valid| data_fingerprint(&lexicon.vocab, valid));
    let task = Task {
        params,
        shape,
        rows: &rows,
        unigrams,
        base,
        train: sentences,
        valid,
        fingerprint: data_fingerprint(&lexicon.vocab, sentences) ^ held_out.rotate_left(1),
        kind: Fhmm::KIND,
    };
    let Fitted { smoother, statistics, state } = trainer::fit(&task, checkpoint, watch)?;
    drop(task);
    let mut facts = facts(params, &state, &statistics);
    facts.insert("tokens".into(), sentences.n_tokens().into());
    facts.insert("sentences".into(), sentences.len().into());
    facts.insert("words".into(), rows.n_rows.into());
    facts.insert("batch_sentences".into(), params.batch_size(sentences.len()).into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    let (params, lexicon) = (params.clone(), lexicon.clone());
    Ok(Fhmm { params, lexicon, facts, rows, smoother })
}

/// The base score of each row.
pub(crate) fn base_scores(params: &FhmmParams, rows: &WordRows, unigrams: &[f64]) -> Vec<f64> {
    match params.base_measure {
        BaseMeasure::Unigram => unigrams.iter().map(|share| share.ln()).collect(),
        BaseMeasure::Uniform => vec![0.0; rows.n_rows],
    }
}

/// Relative frequency of each row among the tokens that have one.
pub(crate) fn unigrams(rows: &WordRows, counts: &[u64]) -> Vec<f64> {
    let mut sums = vec![0.0; rows.n_rows];
    for (&row, &count) in rows.of_word.iter().zip(counts) {
        if let Some(sum) = sums.get_mut(row as usize) {
            *sum += count as f64;
        }
    }
    let total: f64 = sums.iter().sum();
    sums.iter().map(|sum| sum / total).collect()
}

/// Facts about a training.
fn facts(params: &FhmmParams, state: &State, statistics: &Statistics) -> Map<String, Value> {
    let measured = state.measured;
    let mut facts = Map::new();
    facts.insert("epochs".into(), state.epoch.into());
    facts.insert("inference".into(), json!(params.chosen_inference()));
    facts.insert("train_bound".into(), json!(measured.train_bound));
    facts.insert("valid_bound".into(), json!(measured.valid_bound));
    if state.epoch > 0 {
        facts.insert("sweeps".into(), measured.sweeps.into());
        facts.insert("e_step_seconds".into(), measured.e_seconds.into());
        facts.insert("m_step_seconds".into(), measured.m_seconds.into());
        let warnings = collapsed_layers(params, &statistics.occupancy());
        if !warnings.is_empty() {
            facts.insert("warnings".into(), json!(warnings));
        }
    }
    facts.retain(|_, value| !value.is_null());
    facts
}

/// Warnings about collapsed layers, with nearly all tokens in one state: they carry no information.
pub(crate) fn collapsed_layers(params: &FhmmParams, occupancy: &[f64]) -> Vec<String> {
    /// Share of tokens in one state from which a layer counts as collapsed.
    const COLLAPSED: f64 = 0.99;
    let layers = occupancy.chunks_exact(params.n_states).enumerate();
    let collapsed = layers.filter(|(_, shares)| shares.iter().any(|&share| share > COLLAPSED));
    let warning = |(layer, shares): (usize, &[f64])| {
        let share = 100.0 * shares.iter().copied().fold(0.0, f64::max);
        format!(
            "layer {} has collapsed: {share:.1} % of all tokens are in one of its states; use fewer layers, \
             another seed, or `restarts`",
            layer + 1
        )
    };
    collapsed.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapsed_layer_gives_a_warning() {
        let params = FhmmParams { n_layers: 3, n_states: 2, ..FhmmParams::default() };
        let warnings = collapsed_layers(&params, &[0.6, 0.4, 0.003, 0.997, 0.95, 0.05]);
        assert_eq!(warnings.len(), 1);
        let warning = &warnings[0];
        assert!(warning.starts_with("layer 2 has collapsed: 99.7 % of all tokens"), "{warning}");
    }
}
