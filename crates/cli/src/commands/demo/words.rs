//! Representations of words: Brown clusters, word2vec and linear dynamical systems.

use super::files::{inputs, model_file, training_text};
use super::result::ModelResult;
use crate::output::thousands;
use anyhow::Result;
use latens::brown::Brown;
use latens::corpus::WordId;
use latens::corpus::embedded::Split;
use latens::lds::Lds;
use latens::model::Fit;
use latens::word2vec::Word2vec;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(super) fn brown(folder: &Path, _seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 4)?;
    let model = Brown::params().n_clusters(60).fit(&corpus)?;
    model.save(model_file(folder, Brown::KIND))?;
    let (clusters, vocab) = (model.clusters(), &corpus.lexicon.vocab);
    let mut members: Vec<Vec<&str>> = vec![Vec::new(); clusters.n_clusters()];
    for (word, &cluster) in vocab.words().zip(clusters.of_word()) {
        if let Some(cluster) = cluster {
            members[cluster as usize].push(word);
        }
    }
    // Words come most frequent first; the clusters with most words show best what a class is.
    members.sort_by_key(|words| std::cmp::Reverse(words.len()));
    let lines = members.iter().take(6).map(|words| {
        let words: Vec<&str> = words.iter().take(9).copied().collect();
        format!("    {}\n", words.join(" "))
    });
    let text = format!(
        "brown: clusters words that occur in similar contexts\n  \
         {} clusters of {} words; some of them:\n{}",
        clusters.n_clusters(),
        thousands(vocab.len()),
        lines.collect::<String>(),
    );
    let metrics = json!({ "mutual_information": model.facts()["mutual_information"] });
    Ok(ModelResult { model: Brown::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// Words whose neighbors word2vec shows.
const CONTENT_WORDS: [&str; 3] = ["moon", "oven", "judge"];

pub(super) fn word_vectors(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 3)?;
    let model = Word2vec::params().dim(50).window(3).epochs(40).seed(seed).fit(&corpus)?;
    model.save(model_file(folder, Word2vec::KIND))?;
    let (vectors, vocab) = (model.vectors(), &corpus.lexicon.vocab);
    let lines = CONTENT_WORDS.iter().filter_map(|&example| {
        let id = vocab.get(example)?;
        let near = vectors.nearest(vectors.get(id)?, 6, &[id]);
        let near: Vec<&str> = near.iter().map(|&(word, _)| vocab.word(word)).collect();
        Some(format!("    {example}: {}\n", near.join(" ")))
    });
    let text = format!(
        "word2vec: assigns similar vectors to words in similar contexts\n  \
         {} words, {} dimensions; nearest neighbors of some words:\n{}",
        thousands(vocab.len()),
        vectors.dim(),
        lines.collect::<String>(),
    );
    let metrics = json!({ "loss": model.facts()["loss"] });
    Ok(ModelResult {
        model: Word2vec::KIND,
        seconds: started.elapsed().as_secs_f64(),
        metrics,
        text,
    })
}

/// Words whose neighbors the linear dynamical system shows.
const FUNCTION_WORDS: [&str; 4] = ["she", "the", "of", "was"];

pub(super) fn dynamical(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 4)?;
    let valid = corpus.lexicon.read(&inputs(folder, Split::Valid))?;
    let model = Lds::params().dim(30).seed(seed).valid(&valid).fit(&corpus)?;
    model.save(model_file(folder, Lds::KIND))?;
    let lines = FUNCTION_WORDS.map(|word| format!("    {word}: {}\n", neighbors(&model, word, 6)));
    let text = format!(
        "lds: models text by a {}-dimensional state with linear dynamics\n  \
         nearest neighbors of some words:\n{}",
        model.dim(),
        lines.concat(),
    );
    let metrics =
        json!({ "gain": model.facts()["gain"], "valid_gain": model.facts()["valid_gain"] });
    Ok(ModelResult { model: Lds::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// The words whose vectors have the smallest angles with a word's.
fn neighbors(model: &Lds, word: &str, n: usize) -> String {
    let (vectors, vocab) = (model.type_vectors(), &model.lexicon().vocab);
    let vector = |id: usize| vectors.row(id);
    let own = vocab.id(word).index();
    let cosine = |id: usize| vector(id).iter().zip(vector(own)).map(|(a, b)| a * b).sum::<f32>();
    let mut ids: Vec<usize> = (WordId::EOS.index() + 1..vocab.len())
        .filter(|&id| id != own && model.count(WordId::from(id)) >= 10)
        .collect();
    ids.sort_by(|&a, &b| cosine(b).total_cmp(&cosine(a)));
    let words = ids.into_iter().take(n).map(|id| vocab.word(WordId::from(id)));
    words.collect::<Vec<_>>().join(" ")
}
