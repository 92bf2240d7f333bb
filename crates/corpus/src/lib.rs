//! From text files to words with numbers.
//!
//! [`Inputs`] names text files; [`Corpus`] reads them into [`Sentences`] with a [`Vocab`],
//! [`Documents`] into labelled documents, [`TaggedSentences`] into tokens with columns of tags. The
//! crate knows no models.
//!
//! ```
//! use latens_corpus::{Corpus, Inputs, Preprocessing, VocabLimits, WordId};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cats.txt");
//! std::fs::write(&path, "the cat saw the dog\nthe dog ran\n")?;
//! let corpus =
//!     Corpus::read(&Inputs::new([path]), &Preprocessing::default(), &VocabLimits::default())?;
//! assert_eq!(corpus.lexicon.vocab.word(WordId(2)), "the"); // after `<unk>` and `<eos>`, by frequency
//! assert_eq!(corpus.sentences.len(), 2);
//! assert_eq!(corpus.sentences.n_tokens(), 10); // one end of sentence a sentence
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod word;
mod vocab;
mod preprocessing;
mod format;
mod input;
mod records;
mod encode;
mod sentences;
mod corpus;
mod encoded;
mod documents;
mod spool;
mod tagged;
pub mod embedded;
mod error;

pub use corpus::{Census, Corpus, Lexicon};
pub use documents::{Document, Documents};
pub use error::ReadError;
pub use format::{Field, Format};
pub use input::{Inputs, Invalid, ReadWatch, open_input};
pub use preprocessing::{Digits, NUM, Preprocessing, Tokenize};
pub use sentences::Sentences;
pub use spool::{read_vocab, vocab_arrays, write_vocab};
pub use tagged::{MissingColumn, TaggedSentence, TaggedSentences};
pub use vocab::{EOS, UNK, Vocab, VocabError, VocabLimits};
pub use word::WordId;
