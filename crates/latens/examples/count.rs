//! Counts n-grams and pairs of words at several distances: the guide "Count co-occurrences" as a program.
//!
//! `cargo run -p latens --example count`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::counts::{Boundary, Budget, LagCounts};
use latens::prelude::*;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = Corpus::from_lines(embedded::text(Split::Train).lines())?;
    let watch = &mut |_| ControlFlow::Continue(());
    let counts = LagCounts::of(&corpus, 3, Boundary::Sentence, &Budget::default(), watch)?;
    for (lag, pairs) in counts.lags().iter().enumerate() {
        println!("distance {}: {} distinct pairs", lag + 1, pairs.nnz());
    }
    Ok(())
}
