//! Reads text into sentences, documents and tagged sentences of word ids.
//!
//! A [`Corpus`] holds [`Sentences`] and the [`Lexicon`] that defines their word ids. A
//! [`DocumentCorpus`] does the same for [`Documents`]. [`TaggedSentences`] hold tokens with columns of
//! tags. All of them read files or text in memory; a [`Reader`] sets options such as lowercasing or the
//! size of the vocabulary. The crate is independent of models.
//!
//! ```
//! use latens_corpus::{Corpus, WordId};
//!
//! let corpus = Corpus::from_lines(["the cat saw the dog", "the dog ran"])?;
//! assert_eq!(corpus.sentences.len(), 2);
//! assert_eq!(corpus.sentences.n_tokens(), 10); // with one end-of-sentence token per sentence
//! assert_eq!(corpus.lexicon.vocab.word(WordId(2)), "the"); // by frequency, after `<unk>` and `<eos>`
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cats.txt");
//! std::fs::write(&path, "The cat saw the dog\nThe dog ran\n")?;
//! let corpus = Corpus::reader().lowercase(true).min_count(2).read_file(&path)?;
//! assert_eq!(corpus.lexicon.vocab.words().collect::<Vec<_>>(), ["<unk>", "<eos>", "the", "dog"]);
//!
//! let held_out = corpus.lexicon.sentences(["the dog sleeps"]);
//! assert_eq!(held_out.get(0), [WordId(2), WordId(3), WordId::UNK, WordId::EOS]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compression;
mod words;
mod cleaning;
mod input;
mod lexicon;
mod token_ids;
mod encode;
mod census;
mod sentences;
mod corpus;
mod names;
mod documents;
mod document_corpus;
mod annotated;
mod reader;
mod disk;
pub mod embedded;
mod error;

pub use annotated::guess::ColumnGuess;
pub use annotated::tagged::{MissingColumn, TaggedSentence, TaggedSentences};
pub use annotated::to_tag::{Layout, SourceText, TextToTag};
pub use census::Census;
pub use cleaning::frequency::DocumentFrequency;
pub use cleaning::rules::Cleaning;
pub use cleaning::stop_words::StopWords;
pub use compression::{open_input, write_compressed};
pub use corpus::Corpus;
pub use document_corpus::DocumentCorpus;
pub use documents::{Document, Documents, DocumentsOfWords};
pub use error::ReadError;
pub use input::columns::Columns;
pub use input::folder::folder_files;
pub use input::format::{Field, Format};
pub use input::inputs::{DEFAULT_MAX_LINE, Inputs, Invalid, ReadWatch};
pub use input::lines::{LineError, LineReader};
pub use lexicon::Lexicon;
pub use reader::{LearnsVocab, Reader};
pub use sentences::Sentences;
pub use token_ids::names::TokenNames;
pub use token_ids::npy::NpyHeader;
pub use words::normalize::Normalize;
pub use words::preprocessing::{Digits, Preprocessing};
pub use words::tokenize::{NUM, Tokenize, has_no_spaces};
pub use words::vocab::{EOS, UNK, Vocab, VocabError, VocabLimits};
pub use words::vocab_arrays::{read_vocab, vocab_arrays, write_vocab};
pub use words::word_id::WordId;
