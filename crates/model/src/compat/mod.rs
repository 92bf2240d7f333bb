//! Word vectors in the formats of other programs. Nothing here is known outside: [`WordVectors`] with a
//! [`Lexicon`] come out, and go in.
//!
//! | Format | Reader and writer | What it is |
//! |---|---|---|
//! | word2vec text, fastText `.vec` | [`read_text`], [`write_text`] with [`TextFormat::Word2vec`] | a line `number-of-words dim`, then `word x x x …` a line |
//! | GloVe | the same with [`TextFormat::Glove`] | the same without the first line |
//! | word2vec binary | [`read_binary`], [`write_binary`] | the first line, then each word, a blank, and its numbers as bytes |
//! | numpy | [`npy`] | a matrix, and the words in a file of their own |

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
