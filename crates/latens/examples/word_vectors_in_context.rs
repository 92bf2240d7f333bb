//! Trains a linear dynamical system, and compares the vectors of a word in two sentences: the guide "Word vectors in
//! context" as a program.
//!
//! `cargo run -p latens --example word_vectors_in_context`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::math::dot_wide;
use latens::prelude::*;

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    dot_wide(a, b) / (dot_wide(a, a) * dot_wide(b, b)).sqrt()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(3);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let lds = Lds::params().dim(20).n_iterations(3).fit(&corpus)?;

    // One row per token: the vector of the word, and the state given the whole sentence.
    let rooms = lds.embed("there was light in the kitchen");
    let stars = lds.embed("there was light from the moon");
    println!("{} tokens, {} dimensions", rooms.n_rows(), rooms.n_columns());
    let light = 2;
    let (word, state) = (0..lds.dim(), lds.dim()..2 * lds.dim());
    for (name, part) in [("word", word), ("state", state)] {
        let similarity = cosine(&rooms.row(light)[part.clone()], &stars.row(light)[part]);
        println!("light in both sentences, {name}: cosine {similarity:.3}");
    }
    Ok(())
}
