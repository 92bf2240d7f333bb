//! Models and logs, and the answers to queries about them.

use crate::error::{OpenError, ViewError};
use crate::item::{Content, Item, ShownModel};
use crate::views::documents::ShownDocuments;
use crate::views::{log, topics};
use latens::model::Model;
use latens::model::file::inspect;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// The models and training logs that a page shows.
#[derive(Default)]
pub struct Explorer {
    items: Vec<Item>,
}

/// A query of the page.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Index of the model or log.
    pub item: usize,
    /// What is asked, e.g., `topics` or `sentence`.
    pub view: String,
    /// Arguments, an object.
    #[serde(default)]
    pub args: Value,
}

impl Explorer {
    /// Adds a model under a name.
    pub fn add_model(&mut self, name: &str, model: Box<dyn Model>) {
        let content = Content::Model(Box::new(ShownModel::new(model, Value::Null)));
        self.items.push(Item { name: name.to_owned(), content });
    }

    /// Opens a model file or the log of a training run, under the name of the file.
    pub fn open(&mut self, path: &Path) -> Result<(), OpenError> {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let read = |source| OpenError::Read { path: path.to_owned(), source };
        std::fs::File::open(path).map_err(read)?;
        let neither = || OpenError::Neither { path: path.to_owned() };
        if path.is_dir() {
            return Err(neither());
        }
        let content = match inspect(path) {
            // A training run that is not over.
            Ok(found) if found.header.checkpoint.is_some() => return Err(neither()),
            Ok(found) => {
                let parameters = found.header.parameters.clone();
                Content::Model(Box::new(ShownModel::new(latens::open(path)?, parameters)))
            }
            Err(_) if log::is_log(path).map_err(read)? => Content::Log(path.to_owned()),
            Err(_) => return Err(neither()),
        };
        self.items.push(Item { name, content });
        Ok(())
    }

    /// Number of models and logs.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The models with their indices.
    pub fn models(&self) -> impl Iterator<Item = (usize, &dyn Model)> {
        self.items.iter().enumerate().filter_map(|(idx, item)| match &item.content {
            Content::Model(shown) => Some((idx, &*shown.model)),
            Content::Log(_) => None,
        })
    }

    /// Shows documents with a topic model.
    pub fn set_documents(&mut self, item: usize, documents: ShownDocuments) {
        if let Some(Item { content: Content::Model(shown), .. }) = self.items.get_mut(item) {
            shown.set_documents(documents);
        }
    }

    /// The models and logs: names, kinds and parts of the page.
    pub fn items(&self) -> Value {
        self.items.iter().map(Item::listed).collect()
    }

    /// Answers a query.
    ///
    /// Waits for answers that another thread computes. Do not call it in tasks of the thread pool of `rayon`: a thread of the
    /// pool could wait for itself.
    pub fn answer(&self, query: &Query) -> Result<Value, ViewError> {
        let item = self.item(query.item)?;
        let none = json!({});
        let args = if query.args.is_null() { &none } else { &query.args };
        if !args.is_object() {
            return Err(ViewError::arguments("arguments must be an object"));
        }
        if query.view == "compare" {
            return self.compare(item, args);
        }
        let unknown = || ViewError::UnknownView { view: query.view.clone() };
        item.answer(&query.view, args).ok_or_else(unknown)?
    }

    /// Computes what views share, so that the first queries are answered at once.
    pub fn prepare(&self) {
        for item in &self.items {
            if let Content::Model(shown) = &item.content {
                shown.prepare();
            }
        }
    }

    /// Computes everything that is otherwise computed in the background, and waits for it.
    pub(crate) fn finish(&self) {
        for item in &self.items {
            if let Content::Model(shown) = &item.content {
                shown.finish();
            }
        }
    }

    /// The queries whose answers a report contains.
    pub(crate) fn report_queries(&self) -> Vec<Query> {
        let mut queries = Vec::new();
        let is_topics = |item: &Item| match &item.content {
            Content::Model(shown) => shown.model.as_topic_model().is_some(),
            Content::Log(_) => false,
        };
        for (item, shown) in self.items.iter().enumerate() {
            let query = |(view, args): (&str, Value)| Query { item, view: view.to_owned(), args };
            queries.extend(shown.report_queries().into_iter().map(query));
            for (other, second) in self.items.iter().enumerate() {
                if other != item && is_topics(shown) && is_topics(second) {
                    queries.push(query(("compare", json!({ "other": other }))));
                }
            }
        }
        queries
    }

    fn item(&self, item: usize) -> Result<&Item, ViewError> {
        self.items.get(item).ok_or(ViewError::UnknownItem { item })
    }

    fn compare(&self, item: &Item, args: &Value) -> Result<Value, ViewError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct CompareArgs {
            other: usize,
        }
        let args = CompareArgs::deserialize(args).map_err(ViewError::arguments)?;
        match (&item.content, &self.item(args.other)?.content) {
            (Content::Model(a), Content::Model(b)) => topics::compare(&*a.model, &*b.model),
            _ => Err(ViewError::arguments("both items must be topic models")),
        }
    }
}
