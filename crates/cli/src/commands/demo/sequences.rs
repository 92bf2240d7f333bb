//! Models of sentences: n-grams, hidden Markov models and factorial ones.

use super::files::{inputs, model_file, training_text};
use super::result::ModelResult;
use crate::output::thousands;
use anyhow::Result;
use latens::brown::Brown;
use latens::corpus::embedded::Split;
use latens::corpus::{Corpus, WordId};
use latens::fhmm::Fhmm;
use latens::hmm::{Hmm, HmmInputs};
use latens::math::Rng;
use latens::model::{Fit, LanguageModel};
use latens::ngram::Ngram;
use latens::tasks::{perplexity, sample};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A frequent context of the training text.
const CONTEXT: &str = "she put the";

pub(super) fn ngram(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 2)?;
    let test = corpus.lexicon.read(&inputs(folder, Split::Test))?;
    let fit = |order| -> Result<Ngram> { Ok(Ngram::params().order(order).fit(&corpus)?) };
    let (single, model) = (fit(1)?, fit(3)?);
    model.save(model_file(folder, Ngram::KIND))?;
    let [single_ppl, ppl] = [&single, &model].map(|model| perplexity(model, &test).perplexity());
    let vocab = &corpus.lexicon.vocab;
    let mut rng = Rng::new(seed);
    let lines = (0..3).map(|_| {
        let words = sample(&model, 25, &mut rng);
        let words: Vec<&str> = words.into_iter().map(|word| vocab.word(word)).collect();
        format!("    {}\n", words.join(" "))
    });
    let samples: String = lines.collect();
    let guesses = guesses(&model, CONTEXT);
    let text = format!(
        "n-gram: predicts each word from the two preceding words\n  \
         {} words, {} training tokens\n  \
         perplexity on held-out text: {ppl:.0} (unigram model: {single_ppl:.0})\n  \
         most likely words after \"{CONTEXT}\": {guesses}\n  \
         generated sentences:\n{samples}",
        thousands(vocab.len()),
        thousands(corpus.sentences.n_tokens()),
    );
    let metrics = json!({ "test_perplexity": ppl, "unigram_test_perplexity": single_ppl });
    Ok(ModelResult { model: Ngram::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// The five words, marks aside, that are most likely after `words`.
fn guesses(model: &Ngram, words: &str) -> String {
    let mut scorer = model.scorer();
    model.lexicon().ids(words).into_iter().for_each(|word| {
        scorer.read(word);
    });
    let mut log_probs = vec![0.0; model.n_words()];
    scorer.next_log_probs(&mut log_probs);
    let mut ids: Vec<usize> =
        (0..log_probs.len()).filter(|&id| id != WordId::UNK.index()).collect();
    ids.sort_by(|&a, &b| log_probs[b].total_cmp(&log_probs[a]));
    let vocab = &model.lexicon().vocab;
    let words = ids.into_iter().map(|id| vocab.word(WordId::from(id)));
    let words = words.filter(|word| word.starts_with(char::is_alphabetic));
    words.take(5).collect::<Vec<_>>().join(", ")
}

pub(super) fn hidden_markov(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 2)?;
    let [valid, test] =
        [Split::Valid, Split::Test].map(|split| corpus.lexicon.read(&inputs(folder, split)));
    let brown = Brown::params().n_clusters(16).fit(&corpus)?;
    let params = Hmm::params().n_states(256).n_clusters(16).state_dropout(0.5);
    let model = params
        .dim(64)
        .epochs(8)
        .seed(seed)
        .with(HmmInputs::default().clusters(brown.clusters()))
        .valid(&valid?)
        .fit(&corpus)?;
    model.save(model_file(folder, Hmm::KIND))?;
    let ppl = perplexity(&model, &test?).perplexity();
    let lines = example_states(&model, &corpus);
    let text = format!(
        "hmm: models sentences as paths through {} hidden states\n  \
         perplexity on held-out text: {ppl:.0}\n  \
         words with the same state in the training text:\n{lines}",
        model.n_states(),
    );
    let metrics = json!({ "test_perplexity": ppl });
    Ok(ModelResult { model: Hmm::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// The most frequent words of the states that have most different ones, by the best path through each
/// sentence.
fn example_states(model: &Hmm, corpus: &Corpus) -> String {
    let mut counts: BTreeMap<u32, BTreeMap<WordId, u32>> = BTreeMap::new();
    for sentence in corpus.sentences.iter() {
        let states = model.viterbi_of(sentence).unwrap_or_default();
        for (&word, state) in sentence.iter().zip(states).filter(|(word, _)| **word > WordId::EOS) {
            *counts.entry(state).or_default().entry(word).or_default() += 1;
        }
    }
    let mut states: Vec<_> = counts.into_values().collect();
    states.sort_by_key(|words| std::cmp::Reverse(words.len()));
    let line = |words: &BTreeMap<WordId, u32>| {
        let mut words: Vec<_> = words.iter().collect();
        words.sort_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
        let words: Vec<&str> =
            words.iter().take(9).map(|&(&word, _)| corpus.lexicon.vocab.word(word)).collect();
        format!("    {}\n", words.join(" "))
    };
    states.iter().take(5).map(line).collect()
}

pub(super) fn factorial(folder: &Path, seed: u64) -> Result<ModelResult> {
    /// Minimum count of the words shown; states of rarer words are noise.
    const OFTEN: u64 = 15;
    let started = Instant::now();
    let corpus = training_text(folder, 1)?;
    let (valid, vocab) =
        (corpus.lexicon.read(&inputs(folder, Split::Valid))?, &corpus.lexicon.vocab);
    let params = Fhmm::params().n_layers(3).n_states(6).epochs(10).seed(seed);
    let model = params.valid(&valid).fit(&corpus)?;
    model.save(model_file(folder, Fhmm::KIND))?;
    let line = |layer: usize, state: usize| {
        let words = model.top_word_ids(layer, state, vocab.len()).into_iter();
        let words = words.filter(|&(word, _)| word != WordId::EOS && vocab.count(word) >= OFTEN);
        let words: Vec<&str> = words.take(8).map(|(word, _)| vocab.word(word)).collect();
        format!("    layer {}: {}\n", layer + 1, words.join(" "))
    };
    let lines = (0..3).flat_map(|layer| (0..2).map(move |state| (layer, state)));
    let lines: String = lines.map(|(layer, state)| line(layer, state)).collect();
    let text = format!(
        "fhmm: models every word by {} hidden states, one per layer\n  \
         words with the highest scores in some states:\n{lines}",
        model.n_layers(),
    );
    let metrics = json!({ "valid_bound": model.facts()["valid_bound"] });
    Ok(ModelResult { model: Fhmm::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}
