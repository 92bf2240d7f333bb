//! Constrained generation: a language model writes sentences with given words, steered by hidden Markov models.
//!
//! Every case is a sentence of the validation text: one to three of its rarest words must occur, in at most as many words
//! as it has and five more.

use super::kept_models::{Earlier, KeptModels, Training};
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::brown::{Algorithm, Brown};
use latens::control::{Alphabet, Constraint, Guide, Lengths, Lookahead, LookaheadOptions, Steerer};
use latens::corpus::{Lexicon, WordId};
use latens::hmm::{Expectations, Hmm, HmmParams, Teacher};
use latens::math::Rng;
use latens::model::{Fit, LanguageModel};
use latens::neural::{NeuralParams, usable_device};
use latens::ngram::Ngram;
use latens::tasks::{SampleOptions, sample_with};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "control",
    about: "sentences of an LSTM that must contain given words: success, perplexity, BLEU and speed",
    run: |data, effort, note| control(data, effort, Earlier::Ignore, note),
};

/// Number of words beyond those of the sentence that a generated one may have.
const EXTRA_WORDS: usize = 5;

/// A sentence, and the words that must occur.
struct Case {
    words: Vec<WordId>,
    required: Vec<WordId>,
}

pub(crate) fn control(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let ptb = PennTreebank::read(data)?;
    let kept = KeptModels::new(earlier);
    let lexicon = &ptb.train.lexicon;
    let mut params = NeuralParams::lstm();
    if effort.is_quick() {
        params = params.dim(48).n_layers(1).epochs(2).batch_size(100);
    }
    note("LSTM that generates text");
    let lstm = kept.network(&params, (&ptb.train, &ptb.valid), note)?;
    note("5-gram model that scores text");
    let judge = Ngram::params().fit(&ptb.train)?;
    let cases = cases(&ptb, if effort.is_quick() { 6 } else { 100 });
    let mut rows = Vec::new();
    let mut table = Table { judge: &judge, lexicon, rows: &mut rows };

    let started = Instant::now();
    let free = cases.iter().enumerate().map(|(i, case)| {
        let options = case.options();
        sample_with(&lstm, &[], &options, &mut Rng::stream(1, i as u64))
    });
    let free: Vec<Vec<WordId>> = free.collect();
    table.add("no guide", &cases, &free, started.elapsed().as_secs_f64(), note);

    let sizes: &[usize] = if effort.is_quick() { &[64, 256] } else { &[1024, 4096, 32768] };
    for &n_states in sizes {
        note(&format!("guide of {n_states} states"));
        let hmm = guide(&kept, &ptb, (&lstm, &params), n_states, effort, note)?;
        let expectations = Expectations::on(&hmm, usable_device())?;
        let (mut found, mut log_probs) = (Vec::new(), Vec::new());
        let started = Instant::now();
        for (i, case) in cases.iter().enumerate() {
            let (words, log_prob) = case.generate(&lstm, &expectations, lexicon, i)?;
            found.push(words);
            log_probs.push(log_prob);
        }
        let name = format!("guide of {n_states} states");
        table.add(&name, &cases, &found, started.elapsed().as_secs_f64(), note);
        table.push(&name, "tries of rejection sampling, median", median_tries(&mut log_probs));

        let started = Instant::now();
        let mut filled = Vec::new();
        for (i, case) in cases.iter().enumerate() {
            filled.push(case.fill(&lstm, &expectations, lexicon, i)?);
        }
        let name = format!("guide of {n_states} states, infilling");
        table.add_filled(&name, &cases, &filled, started.elapsed().as_secs_f64(), note);
    }
    Ok(rows)
}

/// A hidden Markov model distilled from the LSTM.
fn guide(
    kept: &KeptModels,
    ptb: &PennTreebank,
    (lstm, lstm_params): (&dyn LanguageModel, &NeuralParams),
    n_states: usize,
    effort: Effort,
    note: &mut dyn FnMut(&str),
) -> Result<Hmm> {
    let mut params = HmmParams::default().n_states(n_states).n_clusters(128).epochs(10);
    params = params.learning_rate(0.004).batch_tokens(2048);
    // Large models overfit even to many samples, and cost less with dropout.
    params = params.state_dropout(if n_states > 10_000 { 0.5 } else { 0.1 });
    let mut n_tokens = 20_000_000;
    if effort.is_quick() {
        (params, n_tokens) = (params.n_clusters(16).dim(48).epochs(2), 100_000);
    }
    let clusters = Brown::params().n_clusters(params.n_clusters).algorithm(Algorithm::Exchange);
    let brown = clusters.fit(&ptb.train)?;
    let identity = serde_json::to_string(lstm_params)?;
    let identity = latens::model::fingerprint(identity.bytes().map(u32::from));
    let teacher = Teacher::new(lstm, identity, n_tokens).device(usable_device());
    let training = Training {
        corpus: &ptb.train,
        valid: &ptb.valid,
        clusters: Some(brown.clusters()),
        teacher: Some(&teacher),
    };
    kept.hmm(&params, &training, note)
}

/// Sentences of the validation text, with words that must occur.
fn cases(ptb: &PennTreebank, n: usize) -> Vec<Case> {
    let vocab = &ptb.train.lexicon.vocab;
    let mut cases = Vec::new();
    for sentence in ptb.valid.iter() {
        let words = &sentence[..sentence.len() - 1];
        let is_known = words.iter().all(|&word| word != WordId::UNK && vocab.word(word) != "N");
        if cases.len() == n || !(8..=25).contains(&words.len()) || !is_known {
            continue;
        }
        let mut rarest = words.to_vec();
        rarest.sort_by_key(|&word| (vocab.count(word), word));
        rarest.dedup();
        rarest.truncate(1 + cases.len() % 3);
        cases.push(Case { words: words.to_vec(), required: rarest });
    }
    cases
}

impl Case {
    fn lengths(&self) -> Lengths {
        Lengths { min: 1, max: self.words.len() + EXTRA_WORDS }
    }

    fn options(&self) -> SampleOptions {
        let mut options = SampleOptions::default();
        options.max_words = self.lengths().max;
        options
    }

    /// A sentence with the required words, and ln p of the constraint under the guide.
    fn generate(
        &self,
        model: &dyn LanguageModel,
        expectations: &Expectations<'_>,
        lexicon: &Lexicon,
        idx: usize,
    ) -> Result<(Vec<WordId>, f64)> {
        let words = self.required.iter().map(|&word| lexicon.vocab.word(word).to_owned());
        let constraint = Constraint::contains_all(words);
        let automaton = constraint.compile(&Alphabet::Words(lexicon))?.automaton;
        let lookahead =
            Lookahead::with(expectations, automaton, LookaheadOptions::new(self.lengths()))?;
        let steerer = Steerer::new(model, Guide::new(expectations.hmm(), &lookahead), &[])?;
        let found = steerer.sample(&self.options(), &mut Rng::stream(2, idx as u64))?;
        Ok((found.words, steerer.log_prob()))
    }

    /// The first and the last third of the sentence, with something between.
    fn fill(
        &self,
        model: &dyn LanguageModel,
        expectations: &Expectations<'_>,
        lexicon: &Lexicon,
        idx: usize,
    ) -> Result<Vec<WordId>> {
        let (prefix, suffix) = self.ends();
        let text: Vec<&str> = suffix.iter().map(|&word| lexicon.vocab.word(word)).collect();
        let constraint = Constraint::ends_with(text.join(" "));
        let automaton = constraint.compile(&Alphabet::Words(lexicon))?.automaton;
        let n_gap = self.words.len() - prefix.len() - suffix.len();
        let lengths = Lengths { min: suffix.len() + 1, max: suffix.len() + n_gap + EXTRA_WORDS };
        let lookahead = Lookahead::with(expectations, automaton, LookaheadOptions::new(lengths))?;
        let steerer = Steerer::new(model, Guide::new(expectations.hmm(), &lookahead), prefix)?;
        let found = steerer.sample(&self.options(), &mut Rng::stream(3, idx as u64))?;
        Ok([prefix, &found.words].concat())
    }

    /// The first and the last third.
    fn ends(&self) -> (&[WordId], &[WordId]) {
        let third = self.words.len() / 3;
        (&self.words[..third], &self.words[self.words.len() - third..])
    }

    fn is_met(&self, words: &[WordId]) -> bool {
        self.required.iter().all(|word| words.contains(word))
    }

    fn is_filled(&self, words: &[WordId]) -> bool {
        let (prefix, suffix) = self.ends();
        words.starts_with(prefix) && words.ends_with(suffix)
    }
}

/// How often a sample without a guide would have to be drawn, by the probability of the constraint.
fn median_tries(log_probs: &mut [f64]) -> f64 {
    log_probs.sort_by(f64::total_cmp);
    (-log_probs[log_probs.len() / 2]).exp()
}

struct Table<'a> {
    judge: &'a Ngram,
    lexicon: &'a Lexicon,
    rows: &'a mut Vec<Row>,
}

impl Table<'_> {
    fn push(&mut self, row: &str, column: &str, ours: f64) {
        self.rows.push(Row::new(row, column, None, ours));
    }

    fn add(
        &mut self,
        name: &str,
        cases: &[Case],
        found: &[Vec<WordId>],
        seconds: f64,
        note: &mut dyn FnMut(&str),
    ) {
        let n_met = cases.iter().zip(found).filter(|(case, words)| case.is_met(words)).count();
        self.add_measured(name, cases, found, (n_met, seconds), note);
    }

    fn add_filled(
        &mut self,
        name: &str,
        cases: &[Case],
        found: &[Vec<WordId>],
        seconds: f64,
        note: &mut dyn FnMut(&str),
    ) {
        let n_met = cases.iter().zip(found).filter(|(case, words)| case.is_filled(words)).count();
        self.add_measured(name, cases, found, (n_met, seconds), note);
    }

    fn add_measured(
        &mut self,
        name: &str,
        cases: &[Case],
        found: &[Vec<WordId>],
        (n_met, seconds): (usize, f64),
        note: &mut dyn FnMut(&str),
    ) {
        let with_end = |words: &Vec<WordId>| [&words[..], &[WordId::EOS]].concat();
        let log_prob: f64 = found.iter().map(|words| self.judge.log_prob(&with_end(words))).sum();
        let n_tokens: usize = found.iter().map(|words| words.len() + 1).sum();
        let references: Vec<&[WordId]> = cases.iter().map(|case| &case.words[..]).collect();
        for (column, ours) in [
            ("constraints met, %", 100.0 * n_met as f64 / cases.len() as f64),
            ("perplexity under a 5-gram model", (-log_prob / n_tokens as f64).exp()),
            ("BLEU", 100.0 * bleu(found, &references)),
            ("words per second", n_tokens as f64 / seconds),
        ] {
            note(&format!("  {column}: {ours:.1}"));
            self.push(name, column, ours);
        }
        if let Some(words) = found.first() {
            let words: Vec<&str> =
                words.iter().map(|&word| self.lexicon.vocab.word(word)).collect();
            note(&format!("  the first: {}", words.join(" ")));
        }
    }
}

/// BLEU of sentences with one reference each (Papineni et al. 2002), with one added to the counts of n-grams of more than
/// one word (Lin and Och 2004).
fn bleu(found: &[Vec<WordId>], references: &[&[WordId]]) -> f64 {
    fn grams(words: &[WordId], n: usize) -> HashMap<&[WordId], usize> {
        let mut counts = HashMap::new();
        words.windows(n).for_each(|gram| *counts.entry(gram).or_insert(0) += 1);
        counts
    }
    let log_precision = |n: usize| {
        let added = f64::from(u8::from(n > 1));
        let (mut matches, mut total) = (added, added);
        for (words, reference) in found.iter().zip(references) {
            let known = grams(reference, n);
            for (gram, count) in grams(words, n) {
                matches += count.min(known.get(gram).copied().unwrap_or(0)) as f64;
                total += count as f64;
            }
        }
        (matches / f64::max(total, 1.0)).ln()
    };
    let n_found: usize = found.iter().map(Vec::len).sum();
    let n_reference: usize = references.iter().map(|words| words.len()).sum();
    let brevity = (1.0 - n_reference as f64 / n_found.max(1) as f64).min(0.0);
    (brevity + (1..=4).map(log_precision).sum::<f64>() / 4.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ids: &[u32]) -> Vec<WordId> {
        ids.iter().map(|&id| WordId(id)).collect()
    }

    #[test]
    fn bleu_agrees_with_a_count_by_hand() {
        let reference = words(&[2, 3, 4, 5, 6]);
        assert!((bleu(std::slice::from_ref(&reference), &[&reference]) - 1.0).abs() < 1e-12);
        // 3 of 4 words, (1 + 1) of (3 + 1) pairs, 1 of (2 + 1) triples, 1 of (1 + 1) quadruples; one word too short.
        let found = words(&[2, 3, 9, 5]);
        let expected = (0.75f64 * 0.5 * (1.0 / 3.0) * 0.5).powf(0.25) * (1.0f64 - 5.0 / 4.0).exp();
        assert!((bleu(&[found], &[&reference]) - expected).abs() < 1e-12);
        assert_eq!(bleu(&[words(&[9])], &[&reference]), 0.0);
    }

    #[test]
    fn the_median_of_tries_is_that_of_probabilities() {
        let tries = median_tries(&mut [-1.0, -30.0, -2.0]);
        assert!((tries - 2f64.exp()).abs() < 1e-9);
    }
}
