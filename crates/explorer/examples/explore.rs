//! Shows what models learned: the guide "Look at what a model learned" as a program.
//!
//! `cargo run -p latens-explorer --example explore` writes a report;
//! `cargo run -p latens-explorer --example explore -- serve` shows the page until Ctrl-C.

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::corpus::{Cleaning, Tokenize};
use latens::prelude::*;
use latens_explorer::{Explorer, Query, Server, report};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The embedded documents are lines of a label, a split and the text.
    let docs = embedded::docs();
    let texts = docs.lines().filter_map(|line| line.splitn(3, '\t').nth(2));
    let reader = DocumentCorpus::reader().tokenize(Tokenize::Words).lowercase(true);
    let corpus = reader.cleaning(Cleaning::topics()).min_count(3).read_texts(texts)?;
    let topics = Lda::params().n_topics(5).n_iterations(50).fit(&corpus)?;
    let reader = Corpus::reader().lowercase(true).min_count(2);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let states = Hmm::params().n_states(16).n_clusters(4).dim(16).epochs(2).fit(&corpus)?;

    let mut explorer = Explorer::default();
    explorer.add_model("topics", Box::new(topics));
    explorer.add_model("states", Box::new(states));

    // The page asks questions, which are answered as JSON.
    let query = Query { item: 0, view: "topics".to_owned(), args: json!({}) };
    for topic in explorer.answer(&query)?["topics"].as_array().into_iter().flatten() {
        println!("topic {}: {}", topic["topic"], topic["words"]);
    }
    let args = json!({ "text": "the train left the station" });
    let query = Query { item: 1, view: "sentence".to_owned(), args };
    println!("sentence: {}", explorer.answer(&query)?);

    if std::env::args().any(|argument| argument == "serve") {
        let server = Server::bind(explorer, None, /* any free port */ 0)?;
        println!("{}", server.url());
        server.run(|| false)?;
    } else {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("report.html");
        std::fs::write(&path, report(&explorer, "Two models"))?;
        println!("a report of {} bytes", std::fs::metadata(&path)?.len());
    }
    Ok(())
}
