//! Topics of the embedded documents, over words and over vectors.

use super::files::model_file;
use super::result::ModelResult;
use anyhow::Result;
use latens::corpus::{
    Cleaning, Corpus, DocumentCorpus, Documents, Field, Format, Lexicon, Tokenize, WordId,
};
use latens::lda::{Covariance, Sampler};
use latens::lda::{Glda, GldaInputs, InferenceParams, Inferred, Lda, Ranking, Topics};
use latens::model::{Fit, Params};
use latens::word2vec::Word2vec;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

const N_TOPICS: usize = 10;

/// The documents without stop words, punctuation and numbers.
fn documents(folder: &Path) -> Result<DocumentCorpus> {
    let reader = DocumentCorpus::reader()
        .format(Format::Docs(vec![Field::Label, Field::Split, Field::Text]))
        .tokenize(Tokenize::Words)
        .lowercase(true)
        .min_count(3)
        .cleaning(Cleaning::topics());
    Ok(reader.read_file(folder.join("documents.tsv"))?)
}

pub(super) fn words(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = documents(folder)?;
    let model = Lda::params().n_topics(N_TOPICS).seed(seed).fit(&corpus)?;
    model.save(model_file(folder, Lda::KIND))?;
    let found = model.infer_documents(&corpus.documents, &InferenceParams::default().validate()?);
    let purity = purity(&corpus.documents, &found);
    let topics = table(&corpus.lexicon, |k| model.ranked_words(k, 9, Ranking::Distinctive));
    let text = format!(
        "lda: finds the topics of documents\n  \
         distinctive words of 5 of {N_TOPICS} topics:\n{topics}  \
         the strongest topic predicts the subject of {:.0} % of the documents\n",
        100.0 * purity
    );
    let seconds = started.elapsed().as_secs_f64();
    Ok(ModelResult { model: Lda::KIND, seconds, metrics: json!({ "purity": purity }), text })
}

pub(super) fn vectors(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = documents(folder)?;
    let own = topical_vectors(&corpus, seed)?;
    let (vectors, _) = own.vectors().for_words(&own.lexicon().vocab, &corpus.lexicon.vocab);
    // A document has few words, so its other words weigh more than the density of a vector.
    let model = Glda::params()
        .n_topics(N_TOPICS)
        .n_iterations(50)
        .sampler(Sampler::Parallel)
        .covariance(Covariance::Spherical)
        .likelihood_weight(0.1)
        .seed(seed)
        .with(GldaInputs::default().vectors(&vectors))
        .fit(&corpus)?;
    model.save(model_file(folder, Glda::KIND))?;
    let params = InferenceParams::default().validate()?;
    let found = model.infer_documents(&corpus.documents, None, Topics::Fixed, &params);
    let purity = purity(&corpus.documents, &found);
    let topics = table(&corpus.lexicon, |k| model.ranked_words(k, 9, Ranking::Distinctive));
    let text = format!(
        "glda: topics over word vectors, which extend to new words\n  \
         distinctive words of 5 of {N_TOPICS} topics:\n{topics}  \
         the strongest topic predicts the subject of {:.0} % of the documents\n",
        100.0 * purity
    );
    let seconds = started.elapsed().as_secs_f64();
    Ok(ModelResult { model: Glda::KIND, seconds, metrics: json!({ "purity": purity }), text })
}

/// Vectors of the words of the documents, learned without stop words: neighbors are then words of the same subject.
fn topical_vectors(corpus: &DocumentCorpus, seed: u64) -> Result<Word2vec> {
    let vocab = &corpus.lexicon.vocab;
    let is_known = |word: &&WordId| word.index() < vocab.len();
    let documents = corpus.documents.iter().map(|document| {
        document.words.iter().filter(is_known).map(|&word| vocab.word(word)).collect::<Vec<_>>()
    });
    let sentences = Corpus::reader().read_tokens(documents)?;
    Ok(Word2vec::params().dim(50).window(5).epochs(40).seed(seed).fit(&sentences)?)
}

/// The first topics, one line per topic.
fn table(lexicon: &Lexicon, words: impl Fn(usize) -> Vec<(WordId, f32)>) -> String {
    let line = |k: usize| {
        let words = words(k).into_iter().map(|(word, _)| lexicon.vocab.word(word));
        format!("    {}\n", words.collect::<Vec<_>>().join(" "))
    };
    (0..5).map(line).collect()
}

/// The share of documents whose subject is the most frequent one of those with the same strongest topic.
fn purity(documents: &Documents, found: &[Inferred]) -> f64 {
    let mut subjects: BTreeMap<usize, BTreeMap<&str, usize>> = BTreeMap::new();
    for (document, found) in documents.iter().zip(found) {
        let strongest = (0..found.mixture.len())
            .max_by(|&a, &b| found.mixture[a].total_cmp(&found.mixture[b]))
            .unwrap_or(0);
        *subjects.entry(strongest).or_default().entry(document.label).or_default() += 1;
    }
    let best = |counts: &BTreeMap<&str, usize>| counts.values().copied().max().unwrap_or(0);
    let n_right: usize = subjects.values().map(best).sum();
    n_right as f64 / documents.len().max(1) as f64
}
