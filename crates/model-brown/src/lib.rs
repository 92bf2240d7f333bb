//! Brown clusters (Brown et al. 1992): words in classes such that the class of a word tells as much as
//! possible about the class of the next one, and the classes in a binary tree.
//!
//! [`Algorithm::Brown`] is the classic greedy algorithm with a window of one cluster too many, exactly; what
//! makes it fast is that only those entries of the table of losses are touched that change (`table.rs`).
//! [`Algorithm::Exchange`] moves words between classes, for large vocabularies (`exchange.rs`).
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
mod algorithms;
mod counts;

pub use model::Brown;
pub use params::{Algorithm, BrownParams};
