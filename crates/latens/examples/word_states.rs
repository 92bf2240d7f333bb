//! Learns a factorial hidden Markov model from unlabeled text, and a tagger with its states as features: the guide
//! "Features from unlabeled text" as a program.
//!
//! `cargo run -p latens --example word_states`

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
    let fhmm = Fhmm::params().n_layers(2).n_states(5).epochs(2).fit(&corpus)?;

    let params = FeatureTagger::params().n_iterations(30);
    let without = params.clone().fit(&train)?;
    // Posteriors say more than the most probable states, which are the default.
    let encoder = Encoder::from_model(fhmm, Some("posterior"))?;
    let with = params.with(TaggerInputs::default().encoder(encoder)).fit(&train)?;
    for (name, tagger) in [("words", &without), ("words and posteriors", &with)] {
        println!("{name}: accuracy {:.3}", evaluate(tagger, &test, 1)?.accuracy);
    }
    Ok(())
}
