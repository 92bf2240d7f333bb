//! A model or a training log, with the views it has.

use crate::error::ViewError;
use crate::views::brown::{BrownCache, inner_nodes};
use crate::views::documents::ShownDocuments;
use crate::views::hmm::HmmCache;
use crate::views::topic_table::TopicTable;
use crate::views::vectors::VectorCache;
use crate::views::{brown, documents, fhmm, hmm, language, log, tags, topics, vectors};
use latens::brown::Brown;
use latens::fhmm::Fhmm;
use latens::hmm::Hmm;
use latens::lds::Lds;
use latens::model::Model;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Something the page shows.
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Model(Box<ShownModel>),
    Log(PathBuf),
}

/// A model, and what is computed once for its views.
pub(crate) struct ShownModel {
    pub(crate) model: Box<dyn Model>,
    documents: Option<ShownDocuments>,
    /// Parameters, if they are known from the file.
    pub(crate) parameters: Value,
    panels: OnceLock<Vec<&'static str>>,
    topics: OnceLock<TopicTable>,
    hmm: HmmCache,
    brown: BrownCache,
    vectors: VectorCache,
}

impl ShownModel {
    pub(crate) fn new(model: Box<dyn Model>, parameters: Value) -> ShownModel {
        ShownModel {
            model,
            documents: None,
            parameters,
            panels: OnceLock::new(),
            topics: OnceLock::new(),
            hmm: HmmCache::default(),
            brown: BrownCache::default(),
            vectors: VectorCache::default(),
        }
    }

    /// Shows documents with the topics of the model.
    pub(crate) fn set_documents(&mut self, documents: ShownDocuments) {
        self.documents = Some(documents);
        self.panels = OnceLock::new();
    }

    fn topics(&self) -> &TopicTable {
        self.topics.get_or_init(|| TopicTable::new(&*self.model))
    }

    /// Computes what views share, so that they answer at once.
    pub(crate) fn prepare(&self) {
        if self.model.as_topic_model().is_some() {
            self.topics();
        } else {
            self.vectors.fill(&*self.model);
        }
        if let Some(hmm) = self.model.downcast_ref::<Hmm>() {
            self.hmm.fill(hmm);
        }
    }

    /// Computes what otherwise goes on in the background, and waits for it.
    pub(crate) fn finish(&self) {
        if self.panels().contains(&"words") {
            self.vectors.finish(&*self.model);
        }
    }

    /// The parts of the page that this model has. The first one is shown first.
    fn panels(&self) -> &[&'static str] {
        // Some models compute their vectors whenever they are asked for them.
        self.panels.get_or_init(|| self.find_panels())
    }

    fn find_panels(&self) -> Vec<&'static str> {
        let model = &*self.model;
        let is_topics = model.as_topic_model().is_some();
        let mut panels = Vec::new();
        let mut add = |panel, has_it: bool| panels.extend(has_it.then_some(panel));
        add("topics", is_topics);
        add("documents", is_topics);
        add("trend", self.documents.as_ref().is_some_and(ShownDocuments::has_trend));
        add("compare", is_topics);
        let is_hmm = model.downcast_ref::<Hmm>().is_some();
        let is_fhmm = model.downcast_ref::<Fhmm>().is_some();
        add("states", is_hmm);
        add("layers", is_fhmm);
        add("sentence", is_hmm || is_fhmm);
        add("text", model.as_language_model().is_some() && !is_hmm);
        add("tags", model.as_tagger().is_some());
        add("tree", model.downcast_ref::<Brown>().is_some());
        let has_vectors = !is_topics && model.word_vectors().is_some();
        add("words", has_vectors);
        add("pairs", model.downcast_ref::<Lds>().is_some());
        // Language models have other views of a sentence.
        add("context", has_vectors && model.as_language_model().is_none());
        add("samples", is_hmm || is_fhmm || model.as_language_model().is_some());
        add("about", true);
        panels
    }

    fn answer(&self, view: &str, args: &Value) -> Option<Result<Value, ViewError>> {
        let model = &*self.model;
        if view == "about" {
            return Some(Ok(self.about()));
        }
        if model.as_topic_model().is_some() {
            let documents = self.documents.as_ref();
            return topics::answer(model, self.topics(), view, args)
                .or_else(|| documents::answer(model, documents, view, args));
        }
        let hmm = || hmm::answer(model.downcast_ref::<Hmm>()?, &self.hmm, view, args);
        let fhmm = || fhmm::answer(model.downcast_ref::<Fhmm>()?, view, args);
        let brown = || brown::answer(model.downcast_ref::<Brown>()?, &self.brown, view, args);
        hmm()
            .or_else(fhmm)
            .or_else(brown)
            .or_else(|| language::answer(model, view, args))
            .or_else(|| tags::answer(model, view, args))
            .or_else(|| vectors::answer(model, &self.vectors, view, args))
    }

    fn about(&self) -> Value {
        let lexicon = self.model.lexicon();
        json!({
            "parameters": self.parameters,
            "facts": self.model.facts(),
            "preprocessing": lexicon.preprocessing,
            "n_words": lexicon.vocab.len(),
        })
    }

    /// The queries whose answers a report contains.
    fn report_queries(&self) -> Vec<(&'static str, Value)> {
        /// Limit on the pages of details, so that a report stays small.
        const MAX_DETAILS: usize = 300;
        let model = &*self.model;
        let mut queries = vec![("about", json!({}))];
        if let Some(topics) = model.as_topic_model() {
            queries.push(("topics", json!({})));
            for topic in 0..topics.n_topics().min(MAX_DETAILS) {
                // The slider of a report moves in steps of 0.1.
                queries.extend((0..=10).map(|step| {
                    ("topic", json!({ "topic": topic, "lambda": f64::from(step) / 10.0 }))
                }));
                if self.documents.is_some() {
                    queries.push(("documents", json!({ "topic": topic })));
                }
            }
            if self.documents.as_ref().is_some_and(ShownDocuments::has_trend) {
                queries.push(("trend", json!({})));
            }
            return queries;
        }
        if model.downcast_ref::<Hmm>().is_some() {
            let args = json!({ "first": 0, "n": MAX_DETAILS });
            let states = self.answer("states", &args);
            queries.push(("states", args));
            let states = states.and_then(Result::ok).unwrap_or_default();
            for state in states["states"].as_array().into_iter().flatten() {
                queries.push(("state", json!({ "state": state["state"] })));
            }
        }
        if let Some(fhmm) = model.downcast_ref::<Fhmm>() {
            queries.push(("layers", json!({})));
            let all = (0..fhmm.n_layers()).flat_map(|layer| {
                (0..fhmm.n_states()).map(move |state| json!({ "layer": layer, "state": state }))
            });
            queries.extend(all.take(MAX_DETAILS).map(|args| ("layer_state", args)));
        }
        if let Some(brown) = model.downcast_ref::<Brown>() {
            let nodes = inner_nodes(brown, &self.brown, 1000);
            queries.extend(nodes.into_iter().map(|path| ("node", json!({ "path": path }))));
        }
        if self.panels().contains(&"words") {
            queries.push(("map", json!({})));
            queries.push(("map", json!({ "projection": "tsne" })));
            let map = self.answer("map", &json!({})).and_then(Result::ok).unwrap_or_default();
            for word in map["words"].as_array().into_iter().flatten().take(MAX_DETAILS) {
                queries.push(("neighbors", json!({ "word": word["word"] })));
            }
        }
        if model.downcast_ref::<Lds>().is_some() {
            queries.push(("pairs", json!({})));
        }
        if self.panels().contains(&"samples") {
            queries.push(match self.panels().contains(&"text") {
                true => ("sample", json!({ "prompt": "", "seed": 1, "temperature": 1.0 })),
                false => ("sample_states", json!({ "seed": 1 })),
            });
        }
        queries
    }
}

impl Item {
    /// What the list of items says about this one.
    pub(crate) fn listed(&self) -> Value {
        match &self.content {
            Content::Model(shown) => json!({
                "name": self.name,
                "kind": shown.model.kind(),
                "description": shown.model.description(),
                "panels": shown.panels(),
                "n_words": shown.model.lexicon().vocab.len(),
                "has_documents": shown.documents.is_some(),
            }),
            Content::Log(_) => json!({
                "name": self.name,
                "kind": "log",
                "description": "a training log",
                "panels": ["log"],
            }),
        }
    }

    /// The answer to a query; `None` if there is no such view.
    pub(crate) fn answer(&self, view: &str, args: &Value) -> Option<Result<Value, ViewError>> {
        match &self.content {
            Content::Model(shown) => shown.answer(view, args),
            Content::Log(path) => log::answer(path, view, args),
        }
    }

    /// The queries whose answers a report contains.
    pub(crate) fn report_queries(&self) -> Vec<(&'static str, Value)> {
        match &self.content {
            Content::Model(shown) => shown.report_queries(),
            Content::Log(_) => vec![("log", json!({}))],
        }
    }
}
