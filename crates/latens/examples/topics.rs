//! Finds topics of documents: the guide "Find topics" as a program.
//!
//! `cargo run -p latens --example topics`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded;
use latens::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The embedded documents are lines of a label, a split and the text.
    let docs = embedded::docs();
    let texts = docs.lines().filter_map(|line| line.splitn(3, '\t').nth(2));
    let corpus = DocumentCorpus::reader().lowercase(true).min_count(3).read_texts(texts)?;
    let lda = Lda::params().n_topics(10).n_iterations(100).fit(&corpus)?;

    for topic in 0..lda.n_topics() {
        let words = lda.ranked_words(topic, 8, latens::lda::Ranking::Distinctive);
        let words: Vec<&str> =
            words.into_iter().map(|(word, _)| corpus.lexicon.vocab.word(word)).collect();
        println!("topic {topic}: {}", words.join(" "));
    }
    let mixtures = lda.infer(["the ship sailed past the harbor", "flour, butter and sugar"]);
    for mixture in mixtures.rows() {
        println!("{mixture:.2?}");
    }
    Ok(())
}
