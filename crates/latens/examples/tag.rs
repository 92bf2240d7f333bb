//! Trains a tagger with and without clusters of words from unlabeled text: the guide "Tag words" as a program.
//!
//! `cargo run -p latens --example tag`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::prelude::*;
use latens::tasks::tagging::evaluate;

fn tagged(split: Split) -> Result<TaggedSentences, Box<dyn std::error::Error>> {
    let text = embedded::tagged(split);
    let rows = text.split("\n\n").filter(|sentence| !sentence.trim().is_empty()).map(|sentence| {
        let columns = sentence.lines().filter_map(|line| line.split_once(' '));
        columns.collect::<Vec<(&str, &str)>>()
    });
    Ok(TaggedSentences::from_rows(rows)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (train, test) = (tagged(Split::Train)?, tagged(Split::Test)?);
    let corpus = Corpus::from_lines(embedded::text(Split::Train).lines())?;
    let brown = Brown::params().n_clusters(30).fit(&corpus)?;

    let plain = FeatureTagger::params().n_iterations(30).fit(&train)?;
    let encoder = Encoder::from_model(brown, None)?;
    let inputs = TaggerInputs::default().encoder(encoder);
    let with_clusters = FeatureTagger::params().n_iterations(30).with(inputs).fit(&train)?;
    for (name, tagger) in [("words", &plain), ("words and clusters", &with_clusters)] {
        println!("{name}: accuracy {:.3}", evaluate(tagger, &test, 1)?.accuracy);
    }
    Ok(())
}
