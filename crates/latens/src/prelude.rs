//! Everything that programs usually need: `use latens::prelude::*;`.

pub use crate::open::{open, open_encoder};
pub use latens_corpus::{
    Corpus, DocumentCorpus, Documents, Lexicon, Sentences, TaggedSentences, Vocab, WordId,
};
pub use latens_model::{
    Checkpoint, Device, Fit, FitError, LanguageModel, Matrix, Model, Params, Progress, Scorer,
    Tagger, TokenEncoder, TopicModel, Vectors, WordClusters, WordVectors,
};
pub use latens_model_brown::Brown;
pub use latens_model_fhmm::Fhmm;
pub use latens_model_hmm::{Hmm, HmmInputs};
pub use latens_model_lda::{Glda, GldaInputs, Lda};
pub use latens_model_lds::{Lds, LdsInputs};
pub use latens_model_neural::{Neural, NeuralInputs};
pub use latens_model_ngram::Ngram;
pub use latens_model_word2vec::Word2vec;
pub use latens_tasks::perplexity;
pub use latens_tasks::tagging::{Encoder, FeatureTagger, TaggerInputs};
