//! Reads text in several ways: the guide "Read text" as a program.
//!
//! `cargo run -p latens --example read_text`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::Tokenize;
use latens::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines = ["The cat sleeps, the dog barks.", "A dog sleeps."];
    let plain = Corpus::from_lines(lines)?;
    let words = Corpus::reader().tokenize(Tokenize::Words).lowercase(true).read_lines(lines)?;
    println!("separated by whitespace: {} words", plain.lexicon.vocab.len());
    println!("Unicode words, lowercase: {} words", words.lexicon.vocab.len());

    let folder = std::env::temp_dir().join(format!("latens-read-text-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("text.txt");
    std::fs::write(&path, lines.join("\n"))?;
    let from_file = Corpus::read_file(&path)?;
    assert_eq!(from_file.sentences.tokens(), plain.sentences.tokens());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
