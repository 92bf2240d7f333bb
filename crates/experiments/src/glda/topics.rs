//! Coherence of topics of 20 Newsgroups (Das et al. 2015, Table 1).

use crate::corpora::topics::{Document, encode, encode_with, newsgroups, vectors};
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::corpus::{Lexicon, Sentences, WordId};
use latens::lda::{Covariance, Glda, GldaInputs, Lda, Preset, Ranking};
use latens::model::{Fit, TopicModel, WordVectors};
use latens::tasks::topics::{Cooccurrences, diversity};
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "glda-topics",
    about: "coherence of 50 topics of 20 Newsgroups (PMI of the top 15 words): Gaussian LDA and LDA",
    run,
};

const N_TOPICS: usize = 50;
const N_WORDS: usize = 15;
/// Mean PMI of the nine topics per model that the paper shows.
const PAPER_GAUSSIAN: f64 = 1.402;
const PAPER_LDA: f64 = 0.509;

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut documents = newsgroups(data)?;
    if effort.is_quick() {
        documents = documents.into_iter().step_by(5).collect();
    }
    let corpus = encode(&documents)?;
    let lexicon = &corpus.lexicon;
    let mut rows = Vec::new();
    // The likelihood converges after 30 iterations.
    let iterations = if effort.is_quick() { 20 } else { 50 };
    for dim in [50, 100] {
        let (own, vectors) = vectors(data, dim)?;
        let (vectors, _) = vectors.for_words(&own.vocab, &lexicon.vocab);
        let unit = unit_length(&vectors)?;
        let default = Glda::params().n_topics(N_TOPICS).n_iterations(iterations);
        let das = default.clone().prior(Preset::Das2015);
        let damped = default.clone().likelihood_weight(0.1);
        let round = default.clone().covariance(Covariance::Spherical);
        for (name, params, vectors) in [
            ("full", default, &vectors),
            ("full, prior of the authors", das, &vectors),
            ("full, weight 0.1", damped, &vectors),
            ("spherical, unit length", round, &unit),
        ] {
            let name = format!("G-LDA {dim}-d, {name}");
            note(&format!("fitting {name}"));
            let model = params.with(GldaInputs::default().vectors(vectors)).fit(&corpus)?;
            for (by, words) in [(Ranking::Density, "density"), (Ranking::Count, "count")] {
                let topics = topics(N_TOPICS, lexicon, |k| model.ranked_words(k, N_WORDS, by));
                let paper = (words == "density").then_some(PAPER_GAUSSIAN);
                let measured = measure(&topics, lexicon, &documents)?;
                rows.extend(measured.rows(&format!("{name}, by {words}"), paper, note));
                measured.show_best(&topics, note);
            }
        }
    }
    note("fitting LDA");
    let model = Lda::params().n_topics(N_TOPICS).n_iterations(4 * iterations).fit(&corpus)?;
    let topics = topics(N_TOPICS, lexicon, |k| model.top_word_ids(k, N_WORDS));
    let measured = measure(&topics, lexicon, &documents)?;
    rows.extend(measured.rows("LDA", Some(PAPER_LDA), note));
    measured.show_best(&topics, note);
    Ok(rows)
}

/// The vectors, scaled to unit length.
fn unit_length(vectors: &WordVectors) -> Result<WordVectors> {
    let mut values = vectors.values().to_vec();
    for vector in values.chunks_exact_mut(vectors.dim()) {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
    }
    Ok(WordVectors::new(vectors.dim(), values)?)
}

fn topics(
    n: usize,
    lexicon: &Lexicon,
    words: impl Fn(usize) -> Vec<(WordId, f32)>,
) -> Vec<Vec<String>> {
    let letters = |(word, _): (WordId, f32)| lexicon.vocab.word(word).to_owned();
    (0..n).map(|k| words(k).into_iter().map(letters).collect()).collect()
}

/// Coherence and diversity of the topics of a model.
struct Measured {
    /// Topic index and PMI of each topic for which it is defined.
    pmi: Vec<(usize, f64)>,
    npmi: Vec<f64>,
    diversity: f64,
}

fn measure(topics: &[Vec<String>], lexicon: &Lexicon, documents: &[Document]) -> Result<Measured> {
    let words: Vec<String> = topics.iter().flatten().cloned().collect();
    let reference = Cooccurrences::lexicon(&words, lexicon);
    let read = encode_with(documents, &reference)?;
    let known = read.iter().map(|document| {
        let is_known = |word: &&WordId| word.index() < reference.vocab.len();
        document.words.iter().filter(is_known).copied().collect::<Vec<_>>()
    });
    let counts = Cooccurrences::count(&reference, &Sentences::from_words(known));
    let found: Vec<_> = topics.iter().map(|topic| counts.coherence(topic)).collect();
    Ok(Measured {
        pmi: found.iter().enumerate().filter_map(|(k, c)| Some((k, c.pmi?))).collect(),
        npmi: found.iter().filter_map(|c| c.npmi).collect(),
        diversity: diversity(topics),
    })
}

impl Measured {
    /// Reports the figures and returns them as rows.
    fn rows(&self, name: &str, paper: Option<f64>, note: &mut dyn FnMut(&str)) -> Vec<Row> {
        let rows = self.figures(name, paper);
        let figures: Vec<String> =
            rows.iter().map(|row| format!("{} {:.3}", row.column, row.ours)).collect();
        note(&format!("{name}: {}", figures.join(", ")));
        rows
    }

    fn figures(&self, name: &str, paper: Option<f64>) -> Vec<Row> {
        let row = |column: &str, paper, ours| {
            let (row, column) = (name.to_owned(), column.to_owned());
            Row::new(row, column, paper, ours)
        };
        let pmi: Vec<f64> = self.pmi.iter().map(|&(_, pmi)| pmi).collect();
        let mut best = pmi.clone();
        best.sort_by(|a, b| b.total_cmp(a));
        let mut npmi = self.npmi.clone();
        npmi.sort_by(f64::total_cmp);
        vec![
            row("PMI of its own text, best 9", paper, mean(&best[..best.len().min(9)])),
            row("PMI, all topics", None, mean(&pmi)),
            row("NPMI", None, mean(&self.npmi)),
            row("NPMI, median", None, npmi.get(npmi.len() / 2).copied().unwrap_or(f64::NAN)),
            row("diversity", None, self.diversity),
        ]
    }

    /// Reports the nine topics with the highest PMI.
    fn show_best(&self, topics: &[Vec<String>], note: &mut dyn FnMut(&str)) {
        let mut best = self.pmi.clone();
        best.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (k, pmi) in best.into_iter().take(9) {
            note(&format!("  {pmi:6.3} {}", topics[k].join(" ")));
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
