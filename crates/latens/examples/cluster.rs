//! Trains a hidden Markov model from the shards of a text: the guide "Train on several machines" as a program.
//!
//! `cargo run -p latens --example cluster`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::corpus::embedded::{self, Split};
use latens::corpus::{Inputs, Preprocessing, VocabLimits};
use latens::fit_shards;
use latens::model::shards::{Arrays, Part, Round};
use latens::prelude::*;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A shard is a fixed part of the text that consists of whole files, here one file of 500 lines.
    let folder = tempfile::tempdir()?;
    let text = embedded::text(Split::Train);
    let lines: Vec<&str> = text.lines().collect();
    let mut files = Vec::new();
    for (i, part) in lines.chunks(500).enumerate() {
        files.push(folder.path().join(format!("part-{i}.txt")));
        std::fs::write(&files[i], part.join("\n"))?;
    }
    let shard = |file| Part::Files(Box::new(Inputs::new([file])));
    let shards: Vec<Part> = files.iter().map(shard).collect();

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
    let corpus = Corpus { sentences: lexicon.read(&Inputs::new(&files))?, lexicon: *lexicon };
    let params = Hmm::params().n_states(64).n_clusters(8).epochs(5);
    let whole = params.parameterization(latens::hmm::Parameterization::Scalar).fit(&corpus)?;
    let valid = corpus.lexicon.sentences(embedded::text(Split::Valid).lines());
    let of_shards = hmm.as_language_model().ok_or("a language model")?;
    println!("shards:      perplexity {:.4}", perplexity(of_shards, &valid).perplexity());
    println!("one process: perplexity {:.4}", perplexity(&whole, &valid).perplexity());
    Ok(())
}
