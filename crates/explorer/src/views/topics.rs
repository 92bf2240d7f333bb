//! Topics: their map, their words by relevance, and the topics of a word.

use super::args::{MAX_ROWS, NoArgs, WordArgs, below, parse};
use super::text::largest;
use super::topic_table::{TopicTable, top_words};
use crate::error::ViewError;
use latens::corpus::WordId;
use latens::lda::TopicWord;
use latens::model::Model;
use latens::tasks::stability::{matches, stability};
use latens::tasks::topics::relevance;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Number of words of a topic that a comparison shows.
const N_NAME: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicArgs {
    topic: usize,
    #[serde(default = "default_lambda")]
    lambda: f64,
    #[serde(default = "default_n")]
    n: usize,
}

/// The value that Sievert & Shirley (2014) found best for naming topics.
fn default_lambda() -> f64 {
    0.6
}

fn default_n() -> usize {
    30
}

/// Answers `topics`, `topic` and `search`; `None` for other views.
pub(crate) fn answer(
    model: &dyn Model,
    table: &TopicTable,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    Some(match view {
        "topics" => parse::<NoArgs>(args).map(|_| topics(model, table)),
        "topic" => parse::<TopicArgs>(args).and_then(|args| topic(model, table, &args)),
        "search" => parse::<WordArgs>(args).map(|args| search(model, table, &args.word)),
        _ => return None,
    })
}

fn topics(model: &dyn Model, table: &TopicTable) -> Value {
    let one = |topic: usize| {
        let [x, y] = table.places[topic];
        let (prevalence, words) = (table.prevalence[topic], &table.names[topic]);
        json!({ "topic": topic, "prevalence": prevalence, "x": x, "y": y, "words": words })
    };
    let topics: Vec<Value> = (0..table.words.len()).map(one).collect();
    json!({ "topics": topics, "n_tokens": table.n_tokens, "n_words": model.lexicon().vocab.len() })
}

fn topic(model: &dyn Model, table: &TopicTable, args: &TopicArgs) -> Result<Value, ViewError> {
    let topic = below("topic", args.topic, table.words.len())?;
    if !(0.0..=1.0).contains(&args.lambda) {
        return Err(ViewError::arguments("`lambda` must be in [0, 1]"));
    }
    let words = &table.words[topic];
    let score = |word: &TopicWord| relevance(word.weight, table.prob(word.word), args.lambda);
    let scores: Vec<f64> = words.iter().map(score).collect();
    let one = |at: usize| {
        let TopicWord { word, count, weight } = words[at];
        json!({
            "word": model.lexicon().vocab.word(word),
            "weight": weight,
            "count": count,
            "total": table.totals[word.index()],
            "relevance": scores[at],
        })
    };
    let best: Vec<Value> = largest(&scores, args.n.min(MAX_ROWS)).into_iter().map(one).collect();
    Ok(json!({
        "topic": topic,
        "prevalence": table.prevalence[topic],
        "n_words": words.len(),
        "words": best,
    }))
}

/// The words that contain `part`, those that begin with it first, with their shares per topic.
fn search(model: &dyn Model, table: &TopicTable, part: &str) -> Value {
    const MAX_WORDS: usize = 20;
    const MAX_TOPICS: usize = 6;
    let vocab = &model.lexicon().vocab;
    let part = part.trim().to_lowercase();
    let mut found: Vec<(usize, WordId)> = Vec::new();
    if !part.is_empty() {
        let ids = (2..vocab.len()).map(WordId::from);
        let at = |word: WordId| vocab.word(word).to_lowercase().find(&part);
        let used = ids.filter(|word| table.totals[word.index()] > 0.0);
        found = used.filter_map(|word| Some((at(word)?.min(1), word))).collect();
    }
    let rank = |&(at, word): &(usize, WordId)| {
        (vocab.word(word) != part, at, std::cmp::Reverse(table.totals[word.index()] as u64), word)
    };
    found.sort_by_key(rank);
    let n_found = found.len();
    found.truncate(MAX_WORDS);
    let mut counts: HashMap<WordId, Vec<(usize, f64)>> =
        found.iter().map(|&(_, word)| (word, Vec::new())).collect();
    for (topic, words) in table.words.iter().enumerate() {
        for word in words {
            if let Some(counts) = counts.get_mut(&word.word) {
                counts.push((topic, word.count));
            }
        }
    }
    let one = |&(_, word): &(usize, WordId)| {
        let (mut topics, total) = (counts[&word].clone(), table.totals[word.index()]);
        topics.sort_by(|a, b| b.1.total_cmp(&a.1));
        topics.truncate(MAX_TOPICS);
        let share =
            |(topic, count): (usize, f64)| json!({ "topic": topic, "share": count / total });
        let topics: Vec<Value> = topics.into_iter().map(share).collect();
        json!({ "word": vocab.word(word), "total": total, "topics": topics })
    };
    json!({ "n_found": n_found, "words": found.iter().map(one).collect::<Vec<_>>() })
}

/// Which topic of one model is which of another, by their top words.
pub(crate) fn compare(a: &dyn Model, b: &dyn Model) -> Result<Value, ViewError> {
    const N_WORDS: usize = 20;
    let topics = |model: &dyn Model| -> Result<Vec<Vec<String>>, ViewError> {
        let Some(topics) = model.as_topic_model() else {
            return Err(ViewError::arguments("both items must be topic models"));
        };
        Ok((0..topics.n_topics()).map(|topic| top_words(model, topic, N_WORDS)).collect())
    };
    let (a, b) = (topics(a)?, topics(b)?);
    let found = matches(&a, &b);
    let first = |words: &Vec<String>| words.iter().take(N_NAME).cloned().collect::<Vec<_>>();
    let side = |topic: usize, topics: &[Vec<String>]| json!({ "topic": topic, "words": first(&topics[topic]) });
    let pairs: Vec<Value> = found
        .iter()
        .map(|pair| {
            json!({
                "first": side(pair.first, &a),
                "second": side(pair.second, &b),
                "similarity": pair.similarity,
            })
        })
        .collect();
    let unmatched = |n: usize, used: &dyn Fn(usize) -> bool, topics: &[Vec<String>]| {
        (0..n).filter(|&topic| !used(topic)).map(|topic| side(topic, topics)).collect::<Vec<_>>()
    };
    let only_first = unmatched(a.len(), &|t| found.iter().any(|pair| pair.first == t), &a);
    let only_second = unmatched(b.len(), &|t| found.iter().any(|pair| pair.second == t), &b);
    Ok(json!({
        "stability": stability(&a, &b),
        "pairs": pairs,
        "only_first": only_first,
        "only_second": only_second,
    }))
}
