//! The explorer: a page that shows what models learned.
//!
//! An [`Explorer`] holds models and training logs. It answers the queries of the page as JSON ([`Explorer::answer`]); a
//! [`Server`] serves the page and the answers to a browser, and [`report`] puts both into one file. All numbers come
//! from the library; this crate selects and names them. The page is in `web/`: plain ES modules without a build step.
//!
//! ```
//! use latens::prelude::*;
//! use latens_explorer::{Explorer, Query};
//! use serde_json::json;
//!
//! let texts = ["goals and balls", "pans and pots", "a ball in the goal", "a pot in the pan"];
//! let topics = Lda::params().n_topics(2).n_iterations(20).fit(&Documents::from_texts(texts)?)?;
//!
//! let mut explorer = Explorer::default();
//! explorer.add_model("kitchen", Box::new(topics));
//! let query = Query { item: 0, view: "topics".to_owned(), args: json!({}) };
//! assert_eq!(explorer.answer(&query)?["topics"].as_array().unwrap().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod views;
mod item;
mod explorer;
mod page;
mod report;
mod server;

pub use error::{OpenError, ViewError};
pub use explorer::{Explorer, Query};
pub use report::report;
pub use server::{Limits, Server};
pub use views::documents::ShownDocuments;
