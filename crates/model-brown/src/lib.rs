//! Brown clusters (Brown et al. 1992): a hard clustering of words that maximizes the mutual information of adjacent
//! clusters, with the clusters in a binary tree.
//!
//! [`Algorithm::Brown`] is the original greedy algorithm, computed exactly. It is fast because an insertion or a merger
//! updates only those entries of the table of losses that change (`algorithms/loss_table.rs`).
//! [`Algorithm::Exchange`] moves words between clusters, and suits large vocabularies (`algorithms/exchange.rs`).
//!
//! ```
//! use latens_model::{Params, unwatched};
//! use latens_model_brown::{Brown, BrownParams};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 200, /* seed */ 1);
//! let params = BrownParams { n_clusters: 4, ..BrownParams::default() }.validate()?;
//! let brown = Brown::fit(&params, &corpus, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.brown");
//! brown.save(&path)?;
//! let brown = Brown::open(&path)?;
//! assert_eq!(brown.clusters().n_clusters(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod fit;
mod model;
mod file;
mod algorithms;
mod counts;

pub use model::Brown;
pub use params::{Algorithm, BrownParams};
