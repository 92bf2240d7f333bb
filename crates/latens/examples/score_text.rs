//! Scores held-out text with a Kneser–Ney model: the guide "Score text" as a program.
//!
//! `cargo run -p latens --example score_text`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(2);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let ngram = Ngram::params().order(3).fit(&corpus)?;

    let text = embedded::text(Split::Test);
    let held_out = corpus.lexicon.sentences(text.lines());
    let score = perplexity(&ngram, &held_out);
    println!("perplexity {:.1} on {} tokens", score.perplexity(), held_out.n_tokens());
    for line in text.lines().take(3) {
        let mut words = corpus.lexicon.ids(line);
        words.push(WordId::EOS);
        println!("{:8.2}  {line}", ngram.log_prob(&words));
    }
    Ok(())
}
