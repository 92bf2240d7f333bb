//! Topic models, in which each document is a mixture of topics.
//!
//! - [`Lda`] (Blei et al. 2003): a topic is a distribution over the words of the training vocabulary.
//! - [`Glda`] (Das et al. 2015): a topic is a Gaussian over word vectors. Words outside the training text can be
//!   assigned topics if they have vectors.
//!
//! Both are fitted by Gibbs sampling of the topics of tokens. Optimizations:
//!
//! - Gaussian densities are computed once per word and topic (`glda/gaussian/table.rs`).
//! - A token is removed from its topic in closed form (`glda/gaussian/topic.rs`).
//! - Given explicit Gaussians, documents are independent and sampled in parallel (`glda/sampler/parallel.rs`).
//! - The cost per token of sparse LDA depends on the number of topics per document, not on the total number
//!   (`lda/sampler/sparse.rs`).
//!
//! ```
//! use latens_corpus::Documents;
//! use latens_model::{Fit, TopicModel, WordVectors};
//! use latens_model_lda::{Glda, GldaInputs};
//!
//! let texts = ["cat dog dog cat", "sun moon star", "cat cat dog", "moon star sun sun"];
//! let corpus = Documents::from_texts(texts)?;
//!
//! // One-dimensional vectors: pets are negative, the sky is positive.
//! let place = |word: &str| match word {
//!     "cat" => -1.1,
//!     "dog" => -0.9,
//!     "sun" => 1.0,
//!     "moon" => 1.1,
//!     "star" => 0.8,
//!     _ => 0.0,
//! };
//! let words = corpus.lexicon.vocab.words();
//! let vectors = WordVectors::new(1, words.map(place).collect::<Vec<f32>>())?;
//!
//! let inputs = GldaInputs::default().vectors(&vectors);
//! let model = Glda::params().n_topics(2).psi_scale(0.05).with(inputs).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pets.glda");
//! model.save(&path)?;
//! let model = Glda::open(&path)?;
//! let mixtures = model.infer(["dog cat dog", "moon star"]);
//! let (pets, sky) = (mixtures.row(0), mixtures.row(1));
//! assert!((pets[0] > 0.5) != (sky[0] > 0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod documents;
mod counts;
mod sparse_counts;
mod dirichlet;
mod draw;
mod sharing;
mod sparse_infer;
mod infer;
mod top_words;
mod shards;
mod lda;
mod glda;
mod weights;

pub use glda::{
    Covariance, Glda, GldaInputs, GldaParams, GldaShards, MoreVectors, Preset, Sampler, Start,
    Topics,
};
pub use infer::{InferenceParams, Inferred};
pub use lda::{Completion, Lda, LdaParams, LdaSampler, LdaShards};
pub use top_words::Ranking;
pub use weights::TopicWord;
