use crate::inference::smoother::Engine;
use crate::train::trainer::{self as fit, State, Task};
use crate::params::{BaseMeasure, FhmmParams};
use crate::word_rows::Rows;
use crate::shape::Shape;
use crate::train::statistics::Statistics;
use latens_corpus::{Corpus, Lexicon, Sentences, WordId};
use latens_model::{Checkpoint, FitError, Valid, Watch, data_fingerprint};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// A factorial hidden Markov model of sentences.
#[derive(Debug)]
pub struct Fhmm {
    pub(crate) params: Valid<FhmmParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) rows: Rows,
    pub(crate) engine: Engine<f32>,
}

impl Fhmm {
    /// What the file calls this model.
    pub const KIND: &str = "fhmm";

    /// Learns a model from sentences, each on its own; `valid` is text to measure it on after each epoch.
    ///
    /// Facts of it say what was measured: `train_bound` (of the last epoch, while it learned) and `valid_bound`, lower
    /// bounds of the log-likelihood in nats a token; `sweeps` a token; and what went wrong, if anything did
    /// ([`Fhmm::warnings`]).
    pub fn fit(
        params: &Valid<FhmmParams>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        watch: &mut Watch,
    ) -> Result<Fhmm, FitError> {
        fit_from(None, params, corpus, valid, watch)
    }

    /// Goes on from a checkpoint of [`Fhmm::fit`] with the same parameters and text.
    pub fn resume(
        params: &Valid<FhmmParams>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Fhmm, FitError> {
        fit_from(Some(checkpoint), params, corpus, valid, watch)
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<FhmmParams> {
        &self.params
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about its training, which are saved with it.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// What a user should know of its training, in words; usually nothing.
    pub fn warnings(&self) -> Vec<&str> {
        let warnings = self.facts.get("warnings").and_then(Value::as_array);
        warnings.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// How many words the model tells apart; rare ones may share a place.
    pub fn n_words(&self) -> usize {
        self.rows.n_rows
    }

    /// The id of a word as it is written, after preprocessing. A word that is not in the vocabulary has an id
    /// beyond it if rare words of the training text look like it; the model's encoders know what it stands for.
    pub fn word_id(&self, word: &str) -> WordId {
        self.lexicon.vocab.get(word).unwrap_or_else(|| self.rows.id_of_unseen(word))
    }

    /// The `n` words that tell a state best from the other states of its layer, best first: by θ less the logarithm of
    /// the mean of e^θ over the layer's states. Words without a place of their own are left out.
    ///
    /// # Panics
    /// If there is no such layer or state.
    pub fn top_words(&self, layer: usize, state: usize, n: usize) -> Vec<(WordId, f32)> {
        let shape = self.engine.parameters().shape;
        assert!(layer < shape.n_layers && state < shape.n_states, "there is such a state");
        let n_own = (shape.n_words - self.rows.signatures.len()) as u32;
        let unknown = WordId::UNK.index();
        let is_own = |&(word, &row): &(usize, &u32)| {
            row < n_own && (word == unknown || row != self.rows.of_word[unknown])
        };
        let own = self.rows.of_word.iter().enumerate().filter(is_own);
        let score = |(word, &row): (usize, &u32)| {
            let scores = &self.engine.parameters().scores(row as usize)[shape.layer(layer)];
            let mean = scores.iter().map(|s| s.exp()).sum::<f32>() / scores.len() as f32;
            (WordId::from(word), scores[state] - mean.ln())
        };
        let mut words: Vec<(WordId, f32)> = own.map(score).collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.0.cmp(&b.0.0)));
        words.truncate(n);
        words
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
        return Err(FitError::not_enough_data("held-out text of at least 1 sentence", 0));
    }
    let mut counts = vec![0; lexicon.vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    let rows = Rows::new(&lexicon.vocab, &counts, params.min_count, params.unknown);
    if rows.n_rows < 2 {
        let needs = format!("at least 2 words that are seen {} times", params.min_count);
        return Err(FitError::not_enough_data(needs, rows.n_rows));
    }
    let unigrams = unigrams(&rows, &counts);
    let base = match params.base_measure {
        BaseMeasure::Unigram => unigrams.iter().map(|share| share.ln()).collect(),
        BaseMeasure::Uniform => vec![0.0; rows.n_rows],
    };
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
    let fit::Fitted { engine, statistics, state } = fit::fit(&task, checkpoint, watch)?;
    drop(task);
    let mut facts = facts(params, &state, &statistics);
    facts.insert("tokens".into(), sentences.n_tokens().into());
    facts.insert("sentences".into(), sentences.len().into());
    facts.insert("words".into(), rows.n_rows.into());
    facts.insert("batch_sentences".into(), params.batch_size(sentences.len()).into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    let (params, lexicon) = (params.clone(), lexicon.clone());
    Ok(Fhmm { params, lexicon, facts, rows, engine })
}

/// How often each row is seen, as a share of all tokens with a row.
fn unigrams(rows: &Rows, counts: &[u64]) -> Vec<f64> {
    let mut sums = vec![0.0; rows.n_rows];
    for (&row, &count) in rows.of_word.iter().zip(counts) {
        if let Some(sum) = sums.get_mut(row as usize) {
            *sum += count as f64;
        }
    }
    let total: f64 = sums.iter().sum();
    sums.iter().map(|sum| sum / total).collect()
}

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
        let warnings = warnings(params, &statistics.occupancy());
        if !warnings.is_empty() {
            facts.insert("warnings".into(), json!(warnings));
        }
    }
    facts.retain(|_, value| !value.is_null());
    facts
}

/// Layers that have died, in words: all tokens are in one state, so that nothing is learned from them.
fn warnings(params: &FhmmParams, occupancy: &[f64]) -> Vec<String> {
    /// A state with such a share of all tokens leaves nothing to the others.
    const ALL: f64 = 0.99;
    let layers = occupancy.chunks_exact(params.n_states).enumerate();
    let dead = layers.filter(|(_, shares)| shares.iter().any(|&share| share > ALL));
    let tell = |(layer, shares): (usize, &[f64])| {
        let share = 100.0 * shares.iter().copied().fold(0.0, f64::max);
        format!(
            "layer {} has died: {share:.1} % of all tokens are in one of its states; use fewer layers, \
             another seed, or `restarts`",
            layer + 1
        )
    };
    dead.map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_has_died_is_told_of() {
        let params = FhmmParams { n_layers: 3, n_states: 2, ..FhmmParams::default() };
        let told = warnings(&params, &[0.6, 0.4, 0.003, 0.997, 0.95, 0.05]);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("layer 2 has died: 99.7 % of all tokens"), "{}", told[0]);
    }
}
