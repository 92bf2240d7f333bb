//! Trains word vectors, and finds the words nearest to a word: the guide "Word vectors" as a program.
//!
//! `cargo run -p latens --example word_vectors`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(3);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;

    let word2vec = Word2vec::params().dim(30).epochs(10).fit(&corpus)?;
    let vocab = &corpus.lexicon.vocab;
    for word in ["moon", "kitchen"] {
        let Some(id) = vocab.get(word) else { continue };
        let Some(vector) = word2vec.vectors().get(id) else { continue };
        let near = word2vec.vectors().nearest(vector, 5, &[id]);
        let near: Vec<&str> = near.into_iter().map(|(word, _)| vocab.word(word)).collect();
        println!("{word}: {}", near.join(" "));
    }
    Ok(())
}
