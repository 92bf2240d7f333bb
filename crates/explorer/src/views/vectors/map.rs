//! Maps of the most frequent words in two dimensions: by principal components at once, by t-SNE in the background.

use super::super::text::largest;
use crate::error::ViewError;
use bhtsne::tSNE;
use latens::corpus::WordId;
use latens::model::{Model, WordVectors};
use latens::tasks::plot::principal_plane;
use rayon::ThreadPoolBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of words on the map.
const N_MAP: usize = 600;
/// Iterations of t-SNE.
const N_EPOCHS: usize = 500;
/// Number of neighbors that t-SNE keeps near, if there are enough words.
const PERPLEXITY: usize = 30;
/// t-SNE needs more words than this.
const MIN_TSNE: usize = 8;

/// How words are placed.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Projection {
    /// The first two principal components.
    #[default]
    Pca,
    /// t-SNE (van der Maaten and Hinton 2008), which keeps near words near.
    Tsne,
}

/// The maps of a model.
#[derive(Default)]
pub(super) struct Maps {
    words: OnceLock<MappedWords>,
    tsne: Arc<Tsne>,
}

/// The words of a map at their principal components.
struct MappedWords {
    words: Vec<WordId>,
    places: Vec<[f64; 2]>,
    n_vectors: usize,
}

/// A map that another thread computes once.
#[derive(Default)]
struct Tsne {
    is_started: AtomicBool,
    n_epochs_done: AtomicUsize,
    /// `None` if it could not be computed.
    places: OnceLock<Option<Vec<[f64; 2]>>>,
}

impl Maps {
    /// The map with its words, or how far it is computed.
    pub(super) fn answer(
        &self,
        model: &dyn Model,
        vectors: &WordVectors,
        projection: Projection,
    ) -> Result<Value, ViewError> {
        let mapped = self.words(model, vectors);
        let places = match projection {
            Projection::Pca => &mapped.places,
            Projection::Tsne => {
                self.start(mapped, vectors);
                let Some(places) = self.tsne.places.get() else {
                    let n_done = self.tsne.n_epochs_done.load(Ordering::Relaxed);
                    return Ok(json!({ "progress": n_done as f64 / N_EPOCHS as f64 }));
                };
                places.as_ref().ok_or_else(|| {
                    ViewError::no_answer(format!("t-SNE needs more than {MIN_TSNE} words"))
                })?
            }
        };
        let vocab = &model.lexicon().vocab;
        let place = |(&word, [x, y]): (&WordId, &[f64; 2])| json!({ "word": vocab.word(word), "count": vocab.count(word), "x": x, "y": y });
        let words: Vec<Value> = mapped.words.iter().zip(places).map(place).collect();
        Ok(json!({ "words": words, "n_vectors": mapped.n_vectors, "dim": vectors.dim() }))
    }

    /// Computes the principal components, so that the first query is answered at once.
    pub(super) fn fill(&self, model: &dyn Model, vectors: &WordVectors) {
        self.words(model, vectors);
    }

    /// Computes all maps, and waits for them.
    pub(super) fn finish(&self, model: &dyn Model, vectors: &WordVectors) {
        self.start(self.words(model, vectors), vectors);
        self.tsne.places.wait();
    }

    fn words(&self, model: &dyn Model, vectors: &WordVectors) -> &MappedWords {
        self.words.get_or_init(|| MappedWords::new(model, vectors))
    }

    /// Starts t-SNE on another thread, unless it was started before.
    fn start(&self, mapped: &MappedWords, vectors: &WordVectors) {
        if self.tsne.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let rows: Vec<Vec<f32>> = mapped.rows(vectors).map(unit).collect();
        let (start, shared) = (mapped.places.clone(), Arc::clone(&self.tsne));
        std::thread::spawn(move || {
            let counter = Arc::clone(&shared);
            let count = move |epoch| counter.n_epochs_done.store(epoch, Ordering::Relaxed);
            // A panic must not leave others waiting.
            let work = std::panic::AssertUnwindSafe(|| tsne(&rows, &start, count));
            let places = std::panic::catch_unwind(work).ok().flatten();
            let _ = shared.places.set(places);
        });
    }
}

impl MappedWords {
    /// The most frequent words with vectors, most frequent first.
    fn new(model: &dyn Model, vectors: &WordVectors) -> MappedWords {
        let vocab = &model.lexicon().vocab;
        let mut n_vectors = 0;
        let count = |word: usize| {
            let word = WordId::from(word);
            if vectors.get(word).is_none() {
                return -1.0;
            }
            n_vectors += 1;
            // `<unk>` and `<eos>` are not shown.
            if word.index() > 1 { vocab.count(word) as f64 } else { -1.0 }
        };
        let counts: Vec<f64> = (0..vocab.len()).map(count).collect();
        let found = largest(&counts, N_MAP).into_iter().filter(|&word| counts[word] >= 0.0);
        let words: Vec<WordId> = found.map(WordId::from).collect();
        let mut mapped = MappedWords { words, places: Vec::new(), n_vectors };
        mapped.places = principal_plane(&mapped.rows(vectors).collect::<Vec<_>>());
        mapped
    }

    fn rows<'a>(&'a self, vectors: &'a WordVectors) -> impl Iterator<Item = &'a [f32]> {
        self.words.iter().filter_map(|&word| vectors.get(word))
    }
}

/// A vector scaled to length one, so that distances are those of directions.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    vector.iter().map(|x| (f64::from(*x) / length) as f32).collect()
}

/// Places of rows by exact t-SNE, which starts from given places and therefore draws no random numbers. `None` if there
/// are too few rows.
fn tsne(
    rows: &[Vec<f32>],
    start: &[[f64; 2]],
    count: impl Fn(usize) + Send + 'static,
) -> Option<Vec<[f64; 2]>> {
    if rows.len() <= MIN_TSNE {
        return None;
    }
    // Small, as others recommend: standard deviation 0.0001 along the first axis.
    let spread = start.iter().map(|[x, _]| x * x).sum::<f64>() / start.len() as f64;
    let scale = 1e-4 / spread.sqrt().max(f64::MIN_POSITIVE);
    let start: Vec<f32> = start.iter().flatten().map(|x| (x * scale) as f32).collect();
    let distance = |a: &Vec<f32>, b: &Vec<f32>| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    let perplexity = PERPLEXITY.min((rows.len() - 1) / 3);
    let embed = || {
        let mut map: tSNE<f32, Vec<f32>> = tSNE::new(rows);
        map.perplexity(perplexity as f32)
            .epochs(N_EPOCHS)
            .initial_embedding(start)
            .epoch_callback(move |epoch, _| count(epoch));
        map.exact(distance).embedding()
    };
    // On one thread, sums have the same order on every machine, and other queries keep theirs.
    let pool = ThreadPoolBuilder::new().num_threads(1).build().ok()?;
    let place = |place: &[f32]| Some([finite(place[0])?, finite(place[1])?]);
    pool.install(embed).chunks_exact(2).map(place).collect()
}

fn finite(x: f32) -> Option<f64> {
    x.is_finite().then_some(f64::from(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three bundles of directions in ten dimensions.
    fn bundles() -> Vec<Vec<f32>> {
        let row = |i: usize| {
            (0..10)
                .map(move |j| if j == i % 3 { 1.0 } else { 0.1 * ((i * 7 + j * 3) as f32).sin() })
        };
        (0..60).map(|i| unit(&row(i).collect::<Vec<f32>>())).collect()
    }

    #[test]
    fn words_of_a_bundle_lie_together_and_every_run_is_equal() {
        let rows = bundles();
        let start = principal_plane(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let places = tsne(&rows, &start, |_| {}).unwrap();
        let far = |i: usize, j: usize| {
            (0..2).map(|axis| (places[i][axis] - places[j][axis]).powi(2)).sum::<f64>()
        };
        for i in 0..rows.len() {
            let others = (0..rows.len()).filter(|&j| j != i);
            let nearest = others.min_by(|&a, &b| far(i, a).total_cmp(&far(i, b))).unwrap();
            assert_eq!(nearest % 3, i % 3, "the neighbor of {i} is {nearest}");
        }
        assert_eq!(tsne(&rows, &start, |_| {}).unwrap(), places);
        assert_eq!(tsne(&rows[..MIN_TSNE], &start[..MIN_TSNE], |_| {}), None);
    }
}
