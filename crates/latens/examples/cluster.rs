//! Trains a hidden Markov model from the shards of a text: the guide "Train on several machines" as a program.
//!
//! `cargo run -p latens --example cluster`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::corpus::{Preprocessing, VocabLimits};
use latens::fit_shards;
use latens::model::shards::{Arrays, Part, Round};
use latens::prelude::*;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A shard is a fixed part of the text: here 500 lines, on a cluster usually a file.
    let lines: Vec<String> = embedded::text(Split::Train).lines().map(str::to_owned).collect();
    let shards: Vec<Part> = lines.chunks(500).map(|part| Part::Lines(part.to_vec())).collect();

    // The vocabulary is learned from the shards as well, in one round.
    let limits = VocabLimits { min_count: 2, max_vocab: 0 };
    let empty = Lexicon::new(Preprocessing::default(), limits, Vocab::from_counts([], &limits));
    let Round::Lexicon(lexicon) = fit_shards("vocab", json!({}), empty, &shards, Arrays::new())?
    else {
        return Err("`vocab` learns a vocabulary".into());
    };
    println!("{} shards, {} words", shards.len(), lexicon.vocab.len());

    // Each round is an iteration of Baum–Welch. `fit_shards` runs all shards in this process; the functions of
    // `latens::shard_kind` are the steps for drivers that distribute them.
    let params =
        json!({ "n_states": 64, "n_clusters": 8, "parameterization": "scalar", "epochs": 5 });
    let Round::Model(hmm) = fit_shards("hmm", params, (*lexicon).clone(), &shards, Arrays::new())?
    else {
        return Err("`hmm` learns a model".into());
    };

    // The same model as that of one process, up to rounding.
    let corpus = Corpus { sentences: lexicon.sentences(&lines), lexicon: *lexicon };
    let params = Hmm::params().n_states(64).n_clusters(8).epochs(5);
    let whole = params.parameterization(latens::hmm::Parameterization::Scalar).fit(&corpus)?;
    let valid = corpus.lexicon.sentences(embedded::text(Split::Valid).lines());
    let of_shards = hmm.as_language_model().ok_or("a language model")?;
    println!("shards:      perplexity {:.4}", perplexity(of_shards, &valid).perplexity());
    println!("one process: perplexity {:.4}", perplexity(&whole, &valid).perplexity());
    Ok(())
}
