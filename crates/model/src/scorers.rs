//! Scoring word by word: one text, or many at once.

use latens_corpus::WordId;
use rayon::prelude::*;

/// Scores running text word by word.
///
/// The model decides how the end of a sentence affects the history: an n-gram model resets it, a
/// recurrent network keeps it. Use a new scorer for an empty history.
///
/// A word of probability zero scores −∞ and leaves the scorer in a valid state, so that later
/// scores are not NaN.
pub trait Scorer: Send {
    /// Returns ln p(word | history), then appends `word` to the history.
    ///
    /// # Panics
    /// If `word` is not below [`n_words`](crate::LanguageModel::n_words).
    fn read(&mut self, word: WordId) -> f64;

    /// Writes ln p(w | history) to `out[w]` for every word w, without changing the history.
    ///
    /// Takes `&mut self` for scratch memory only.
    ///
    /// # Panics
    /// If the length of `out` is not [`n_words`](crate::LanguageModel::n_words).
    fn next_log_probs(&mut self, out: &mut [f64]);
}

/// Scores many running texts at once, word by word. Each text is a stream with its own history.
///
/// The results are those of one [`Scorer`] per stream, up to rounding.
pub trait BatchScorer: Send {
    /// Writes ln p(w | history) of every word w to the row of each stream. Rows follow each other in `out`.
    ///
    /// # Panics
    /// If `out` does not have one row of [`n_words`](crate::LanguageModel::n_words) entries per stream.
    fn next_log_probs(&mut self, out: &mut [f64]);

    /// Takes one step in each stream. The streams that remain keep their order.
    ///
    /// # Panics
    /// If there is not one step per stream, or a word is not below [`n_words`](crate::LanguageModel::n_words).
    fn advance(&mut self, steps: &[StreamStep]);
}

/// What happens to a stream of a [`BatchScorer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStep {
    /// Appends a word to the history.
    Read(WordId),
    /// Begins again with the prompt as the history.
    Restart,
    /// Removes the stream.
    End,
}

/// One scorer per stream. This works for every model; networks have a faster way.
pub(crate) struct Scorers<'a, F> {
    first: First<F>,
    streams: Vec<Box<dyn Scorer + 'a>>,
}

/// How streams begin.
struct First<F> {
    /// Returns a scorer with an empty history.
    scorer: F,
    prompt: Vec<WordId>,
}

impl<'a, F: Fn() -> Box<dyn Scorer + 'a> + Send + Sync> Scorers<'a, F> {
    pub(crate) fn new(scorer: F, prompt: &[WordId], n_streams: usize) -> Scorers<'a, F> {
        let first = First { scorer, prompt: prompt.to_vec() };
        let streams = (0..n_streams).into_par_iter().map(|_| first.begin()).collect();
        Scorers { first, streams }
    }
}

impl<'a, F: Fn() -> Box<dyn Scorer + 'a>> First<F> {
    fn begin(&self) -> Box<dyn Scorer + 'a> {
        let mut scorer = (self.scorer)();
        self.prompt.iter().for_each(|&word| _ = scorer.read(word));
        scorer
    }
}

impl<'a, F: Fn() -> Box<dyn Scorer + 'a> + Send + Sync> BatchScorer for Scorers<'a, F> {
    fn next_log_probs(&mut self, out: &mut [f64]) {
        let n = self.streams.len();
        if n == 0 {
            return assert!(out.is_empty(), "there must be one row per stream");
        }
        assert!(out.len().is_multiple_of(n), "there must be one row per stream");
        let rows = out.par_chunks_exact_mut(out.len() / n).zip(&mut self.streams);
        rows.for_each(|(row, scorer)| scorer.next_log_probs(row));
    }

    fn advance(&mut self, steps: &[StreamStep]) {
        assert_eq!(steps.len(), self.streams.len(), "there must be one step per stream");
        let Scorers { first, streams } = self;
        let streams = std::mem::take(streams).into_par_iter().zip(steps);
        let advanced = streams.filter_map(|(mut scorer, &step)| match step {
            StreamStep::Read(word) => {
                scorer.read(word);
                Some(scorer)
            }
            StreamStep::Restart => Some(first.begin()),
            StreamStep::End => None,
        });
        self.streams = advanced.collect();
    }
}
