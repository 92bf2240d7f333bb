use super::top_words::{prevalence, word_weights};
use crate::args::ReadingArgs;
use crate::commands::roles::topic_model;
use crate::output::{Output, shown};
use crate::reading::watched;
use anyhow::Result;
use clap::Args;
use latens::corpus::{Documents, WordId};
use latens::model::Model;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;

/// Propose a name for each topic
///
/// Reads a topic model, and prints the words and phrases that are most distinctive of each topic: frequent, and rarely in
/// other topics. With documents, pairs of neighboring words are candidates, too.
#[derive(Args)]
pub(crate) struct LabelArgs {
    /// Topic model
    model: PathBuf,
    /// Documents to take phrases from, such as the training documents
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Number of words and phrases per name
    #[arg(long, value_name = "N", default_value_t = 3)]
    n_words: usize,
}

#[derive(Serialize)]
struct Label {
    topic: usize,
    label: String,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Serialize)]
struct Candidate {
    phrase: String,
    score: f64,
}

/// Minimum number of occurrences of a phrase.
const MIN_COUNT: f64 = 5.0;

pub(super) fn run(args: &LabelArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let n_topics = topic_model(model, &args.model)?.n_topics();
    let pairs = if args.files.is_empty() {
        HashMap::new()
    } else {
        let inputs = watched(args.reading.document_inputs(&args.files)?, output);
        pairs(&Documents::read_with(&inputs, model.lexicon())?, model)
    };
    let candidates = candidates(model, &pairs);
    let labels: Vec<Label> = (0..n_topics)
        .map(|topic| {
            let candidates = best(&candidates[topic], args.n_words);
            let names: Vec<String> = candidates.iter().map(|c| c.phrase.clone()).collect();
            Label { topic, label: names.join(", "), candidates }
        })
        .collect();
    output.result(&json!({ "labels": labels }), |out| {
        labels.iter().try_for_each(|l| writeln!(out, "{:3}  {}", l.topic, shown(&l.label)))
    })
}

/// Counts of neighboring known words.
fn pairs(documents: &Documents, model: &dyn Model) -> HashMap<(WordId, WordId), f64> {
    let n_words = model.lexicon().vocab.len();
    let is_known = |word: &WordId| *word > WordId::EOS && word.index() < n_words;
    let mut counts = HashMap::new();
    for document in documents.iter() {
        for pair in document.words.windows(2).filter(|pair| pair.iter().all(is_known)) {
            *counts.entry((pair[0], pair[1])).or_default() += 1.0;
        }
    }
    counts
}

/// The candidates of each topic: a word or phrase with n occurrences, n_k of them in the topic, has the score n_k² / n. The
/// occurrences of a phrase are divided by the probability of the topic given both words.
fn candidates(model: &dyn Model, pairs: &HashMap<(WordId, WordId), f64>) -> Vec<Vec<Candidate>> {
    let vocab = &model.lexicon().vocab;
    let (weights, prevalence) = (word_weights(model), prevalence(model));
    // p(k | w) is proportional to p(k) p(w | k).
    let posterior = |words: &[WordId]| -> Vec<f64> {
        let of_topic = |(of_words, p): (&HashMap<WordId, f64>, &f64)| {
            let weight = |word: &WordId| of_words.get(word).copied().unwrap_or(0.0);
            p * words.iter().map(weight).product::<f64>()
        };
        let joint: Vec<f64> = weights.iter().zip(&prevalence).map(of_topic).collect();
        let sum: f64 = joint.iter().sum();
        joint.into_iter().map(|p| if sum > 0.0 { p / sum } else { 0.0 }).collect()
    };
    let mut found = vec![Vec::new(); weights.len()];
    let mut add = |phrase: String, count: f64, topics: Vec<f64>| {
        for (of_topic, share) in found.iter_mut().zip(topics).filter(|(_, share)| *share > 0.0) {
            of_topic.push(Candidate { phrase: phrase.clone(), score: count * share * share });
        }
    };
    for word in (2..vocab.len()).map(WordId::from) {
        let name = vocab.word(word).replace('_', " ");
        add(name, vocab.count(word) as f64, posterior(&[word]));
    }
    for (&(a, b), &count) in pairs.iter().filter(|&(_, &count)| count >= MIN_COUNT) {
        let [of_a, of_b] = [a, b].map(|word| vocab.count(word).max(1) as f64);
        // Words that are mostly neighbors are a name; others are neighbors by chance.
        let bound = count / of_a.min(of_b);
        let name = format!("{} {}", vocab.word(a), vocab.word(b)).replace('_', " ");
        add(name, 2.0 * count * bound.min(1.0), posterior(&[a, b]));
    }
    found
}

/// The best candidates, without words of better ones.
fn best(candidates: &[Candidate], n: usize) -> Vec<Candidate> {
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    order.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.phrase.cmp(&b.phrase)));
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in order {
        let mut words = candidate.phrase.split(' ');
        let is_new = |word: &str| !chosen.iter().any(|c| c.phrase.split(' ').any(|w| w == word));
        if chosen.len() < n && words.all(is_new) {
            chosen.push(candidate.clone());
        }
    }
    chosen
}
