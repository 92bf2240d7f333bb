//! The file formats of other programs.

use clap::ValueEnum;

/// A file format of other programs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ForeignFormat {
    /// N-gram language model in the ARPA format
    Arpa,
    /// Brown clusters as `wcluster` writes them: path, word, count
    Paths,
    /// Word vectors as text, with a first line that gives the number of words and dimensions
    Word2vec,
    /// Word vectors in the binary format of word2vec
    Word2vecBinary,
    /// Word vectors as text without a header line
    Glove,
    /// Word vectors as fastText writes them (`.vec`), the same as `word2vec`
    Fasttext,
    /// Word vectors as a NumPy matrix, with the words in a separate file
    Npy,
}
