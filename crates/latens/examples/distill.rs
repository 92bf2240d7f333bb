//! Distills a language model into a hidden Markov model: the guide "Distill a language model" as a program.
//!
//! `cargo run -p latens --example distill`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::hmm::{HmmInputs, Teacher};
use latens::prelude::*;
use latens::tasks::perplexity;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(2);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let test = corpus.lexicon.sentences(embedded::text(Split::Test).lines());
    let ngram = Ngram::params().order(3).fit(&corpus)?;
    println!("teacher: perplexity {:.1}", perplexity(&ngram, &test).perplexity());

    // The second argument identifies the teacher in checkpoints.
    let teacher = Teacher::new(&ngram, 1, /* n_tokens */ 50_000).text_weight(1);
    let params = Hmm::params().n_states(64).n_clusters(8).dim(32).epochs(3).learning_rate(0.01);
    let student = params.with(HmmInputs::default().teacher(&teacher)).fit(&corpus)?;
    println!("student: perplexity {:.1}", perplexity(&student, &test).perplexity());
    Ok(())
}
