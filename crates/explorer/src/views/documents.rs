//! Documents and their topics: those of a file, and those that a user types.

use super::args::{NoArgs, PageArgs, TextArgs, below, parse};
use super::text::{check_length, largest};
use crate::error::ViewError;
use latens::corpus::{Documents, WordId};
use latens::lda::{Glda, InferenceParams, Inferred, Lda, Topics};
use latens::model::{Model, Params};
use latens::tasks::trend::{Group, Prevalence};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number of words of a document that an answer shows.
const MAX_WORDS: usize = 2000;
/// Number of words in the beginning of a document.
const N_BEGINNING: usize = 12;

/// Documents with their topics.
pub struct ShownDocuments {
    documents: Documents,
    inferred: Vec<Inferred>,
    /// Column and groups of the prevalence of topics.
    trend: Option<(String, Vec<Group>)>,
}

impl ShownDocuments {
    /// Infers the topics of documents that were read with the lexicon of the model; `None` for models without topics.
    pub fn new(model: &dyn Model, documents: Documents) -> Option<ShownDocuments> {
        let inferred = infer(model, &documents)?;
        Some(ShownDocuments { documents, inferred, trend: None })
    }

    /// The topic proportions of the documents.
    pub fn mixtures(&self) -> Vec<&[f32]> {
        self.inferred.iter().map(|inferred| inferred.mixture.as_slice()).collect()
    }

    /// Adds the prevalence of topics per value of a column.
    pub fn with_trend(mut self, column: &str, groups: Vec<Group>) -> ShownDocuments {
        self.trend = Some((column.to_owned(), groups));
        self
    }

    /// Whether there is a prevalence per value of a column.
    pub(crate) fn has_trend(&self) -> bool {
        self.trend.is_some()
    }
}

fn infer(model: &dyn Model, documents: &Documents) -> Option<Vec<Inferred>> {
    let params = InferenceParams::default().validate().expect("the default parameters are valid");
    if let Some(lda) = model.downcast_ref::<Lda>() {
        return Some(lda.infer_documents(documents, &params));
    }
    let glda = model.downcast_ref::<Glda>()?;
    Some(glda.infer_documents(documents, None, Topics::Fixed, &params))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicDocumentsArgs {
    topic: usize,
    #[serde(default)]
    first: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentArgs {
    document: usize,
}

/// Answers `color`, and `documents`, `document` and `trend` if there are documents; `None` for other views.
pub(crate) fn answer(
    model: &dyn Model,
    shown: Option<&ShownDocuments>,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    Some(match (view, shown) {
        ("color", _) => parse::<TextArgs>(args).and_then(|args| color(model, &args.text)),
        ("documents", Some(shown)) => {
            parse::<TopicDocumentsArgs>(args).and_then(|args| shown.of_topic(model, &args))
        }
        ("document", Some(shown)) => {
            parse::<DocumentArgs>(args).and_then(|args| shown.document(model, args.document))
        }
        ("trend", Some(shown)) => parse::<NoArgs>(args).and_then(|_| shown.trend()),
        _ => return None,
    })
}

/// The topics of a typed document.
fn color(model: &dyn Model, text: &str) -> Result<Value, ViewError> {
    check_length(text)?;
    let documents = model.lexicon().documents([text]);
    let Some(inferred) = infer(model, &documents) else {
        return Err(ViewError::arguments("this is not a topic model"));
    };
    Ok(colored(model, &documents, 0, &inferred[0]))
}

/// The mixture of a document, and its words with their topics.
fn colored(model: &dyn Model, documents: &Documents, at: usize, inferred: &Inferred) -> Value {
    let words = documents.get(at).words;
    let word = |(&id, topic): (&WordId, &Option<u16>)| json!({ "word": text_of(model, documents, id), "topic": topic });
    let shares: Vec<f64> = inferred.mixture.iter().map(|&share| f64::from(share)).collect();
    let mixture = |topic: usize| json!({ "topic": topic, "share": shares[topic] });
    json!({
        "n_words": words.len(),
        "n_skipped": inferred.n_skipped,
        "words": words.iter().zip(&inferred.topics).take(MAX_WORDS).map(word).collect::<Vec<_>>(),
        "mixture": largest(&shares, 10).into_iter().map(mixture).collect::<Vec<_>>(),
    })
}

fn text_of<'a>(model: &'a dyn Model, documents: &'a Documents, id: WordId) -> &'a str {
    documents.extra_word(id).unwrap_or_else(|| model.lexicon().vocab.word(id))
}

impl ShownDocuments {
    /// The documents with the largest shares of a topic.
    fn of_topic(&self, model: &dyn Model, args: &TopicDocumentsArgs) -> Result<Value, ViewError> {
        const N: usize = 20;
        let n_topics = model.as_topic_model().map_or(0, |model| model.n_topics());
        let topic = below("topic", args.topic, n_topics)?;
        let share = |inferred: &Inferred| f64::from(inferred.mixture[topic]);
        let shares: Vec<f64> = self.inferred.iter().map(share).collect();
        let page = PageArgs { first: args.first, n: N };
        let order = largest(&shares, page.first.saturating_add(page.n));
        let one = |&at: &usize| {
            let document = self.documents.get(at);
            let words = document.words.iter().take(N_BEGINNING);
            let words: Vec<&str> = words.map(|&id| text_of(model, &self.documents, id)).collect();
            json!({
                "document": at,
                "id": self.id(at),
                "label": document.label,
                "share": shares[at],
                "words": words,
            })
        };
        let rows: Vec<Value> = order.iter().skip(page.first).map(one).collect();
        Ok(
            json!({ "topic": topic, "n_documents": shares.len(), "first": page.first, "documents": rows }),
        )
    }

    fn document(&self, model: &dyn Model, at: usize) -> Result<Value, ViewError> {
        let at = below("document", at, self.documents.len())?;
        let mut answer = colored(model, &self.documents, at, &self.inferred[at]);
        answer["document"] = json!(at);
        answer["id"] = json!(self.id(at));
        answer["label"] = json!(self.documents.get(at).label);
        Ok(answer)
    }

    /// The identifier of a document; its number, counted from 1, if it has none.
    fn id(&self, at: usize) -> String {
        match self.documents.get(at).id {
            "" => (at + 1).to_string(),
            id => id.to_owned(),
        }
    }

    fn trend(&self) -> Result<Value, ViewError> {
        let Some((column, groups)) = &self.trend else {
            return Err(ViewError::no_answer("no column of the documents was chosen"));
        };
        let topic = |p: &Prevalence| json!({ "mean": p.mean, "low": p.low, "high": p.high });
        let group = |group: &Group| {
            let topics: Vec<Value> = group.topics.iter().map(topic).collect();
            json!({ "value": group.value, "n_documents": group.n_documents, "topics": topics })
        };
        Ok(json!({ "column": column, "groups": groups.iter().map(group).collect::<Vec<_>>() }))
    }
}
