//! Trains a hidden Markov language model and looks inside: the guide "Language models with hidden states" as a program.
//!
//! `cargo run -p latens --example language_model_hmm`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::prelude::*;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(2);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let valid = corpus.lexicon.sentences(embedded::text(Split::Valid).lines());

    let hmm = Hmm::params()
        .n_states(64)
        .n_clusters(8)
        .dim(32)
        .epochs(3)
        .valid(&valid)
        .watch(|progress| {
            if !progress.metrics.is_empty() {
                println!("epoch {:?}: {:?}", progress.iteration, progress.metrics);
            }
            ControlFlow::Continue(())
        })
        .fit(&corpus)?;

    println!("perplexity {:.1} on the validation text", perplexity(&hmm, &valid).perplexity());
    for state in 0..4 {
        let words: Vec<&str> = hmm.top_words(state, 6).into_iter().map(|(word, _)| word).collect();
        println!("state {state}: {}", words.join(" "));
    }
    let posterior = hmm.posterior("the train left the station")?;
    println!("posterior: {} tokens, {} states", posterior.n_rows(), posterior.n_columns());
    Ok(())
}
