//! Readers and writers for the word-vector formats of other programs. All of them convert to and from
//! [`WordVectors`] with a [`Lexicon`].
//!
//! | Format | Reader and writer | Description |
//! |---|---|---|
//! | word2vec text, fastText `.vec` | [`read_text`], [`write_text`] with [`TextFormat::Word2vec`] | a line `n_words dim`, then one line `word x x x …` per word |
//! | GloVe | the same with [`TextFormat::Glove`] | the same without the header line |
//! | word2vec binary | [`read_binary`], [`write_binary`] | the header line, then each word, a space, and its values in binary |
//! | NumPy | [`npy`] | a matrix, and the words in a separate file |

mod error;
mod binary;
mod entries;
pub mod npy;
mod text;

pub use binary::{read_binary, write_binary};
pub use error::{MAX_DIM, VectorsError};
pub use text::{TextFormat, read_text, write_text};

#[cfg(doc)]
use crate::WordVectors;
#[cfg(doc)]
use latens_corpus::Lexicon;
