//! Brown clusters (Brown et al. 1992): a hard clustering of words that maximizes the mutual information of adjacent
//! clusters, with the clusters in a binary tree.
//!
//! [`Algorithm::Brown`] is the original greedy algorithm, computed exactly. It is fast because adding
//! a word or merging two clusters updates only those entries of the table of losses that change
//! (`algorithms/loss_table.rs`). [`Algorithm::Exchange`] moves words between clusters, and suits large
//! vocabularies (`algorithms/exchange.rs`).
//!
//! ```
//! use latens_model::Fit;
//! use latens_model_brown::Brown;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 2_000, /* seed */ 1);
//! let brown = Brown::params().n_clusters(2).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.brown");
//! brown.save(&path)?;
//! let brown = Brown::open(&path)?;
//! assert_eq!(brown.n_clusters(), 2);
//! assert_eq!(brown.path("a1"), brown.path("a2"));
//! assert_ne!(brown.path("a1"), brown.path("b1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod cost;
mod fit;
mod model;
mod roles;
mod file;
mod algorithms;
mod counts;
mod shards;

pub use model::Brown;
pub use params::{Algorithm, BrownParams};
pub use shards::{BigramCounts, BrownShards};
