//! Roles: what a fitted model can be used for. A model has one or more of four roles.

use crate::features::FeatureRows;
use crate::fit::{Device, DeviceError, FitError};
use crate::sampling::{SampleSize, WatchSample};
use crate::scorers::{BatchScorer, Scorer, Scorers};
use crate::tagging::{TagInput, TagOutputs, Tagged};
use latens_corpus::{Sentences, WordId};
use latens_math::{Matrix, Rng, sample_log_index};
use rayon::prelude::*;
use thiserror::Error;

/// Computes features of each token in the context of its sentence.
pub trait TokenEncoder: Send + Sync {
    /// Number of feature columns. Every column index is below this.
    fn n_features(&self) -> usize;

    /// Appends one row per token. Dense encoders fill every column.
    ///
    /// A [`WordId::EOS`] in `sentence` is encoded like any other token; callers choose whether to
    /// include it. An empty sentence appends no rows.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows);

    /// The rows of each of several sentences, computed on several threads. Equals [`TokenEncoder::encode`] of each
    /// sentence up to rounding. Override if many sentences are cheaper together.
    fn encode_all(&self, sentences: &[&[WordId]]) -> Vec<FeatureRows> {
        let encode = |sentence: &&[WordId]| {
            let mut rows = FeatureRows::new();
            self.encode(sentence, &mut rows);
            rows
        };
        sentences.par_iter().map(encode).collect()
    }

    /// The largest number of values per token that [`TokenEncoder::encode_all`] keeps in memory. Callers with a long text
    /// choose by it how many tokens to encode at a time.
    fn values_per_token(&self) -> usize {
        self.n_features()
    }
}

impl<E: TokenEncoder + ?Sized> TokenEncoder for &E {
    fn n_features(&self) -> usize {
        (**self).n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        (**self).encode(sentence, out);
    }

    fn encode_all(&self, sentences: &[&[WordId]]) -> Vec<FeatureRows> {
        (**self).encode_all(sentences)
    }

    fn values_per_token(&self) -> usize {
        (**self).values_per_token()
    }
}

/// Assigns probabilities to running text.
///
/// All logarithms are natural. Sentences end with [`WordId::EOS`].
pub trait LanguageModel: Send + Sync {
    /// Number of words in the predictive distribution, including [`WordId::UNK`] and
    /// [`WordId::EOS`]. Every word id is below this.
    fn n_words(&self) -> usize;

    /// Returns a scorer with an empty history.
    fn scorer(&self) -> Box<dyn Scorer + '_>;

    /// Number of texts with which [`LanguageModel::batch_scorer`] is fast. Override together with it.
    fn n_streams(&self) -> usize {
        // Threads share them evenly.
        4 * rayon::current_num_threads()
    }

    /// Returns a scorer of many texts at once, whose histories begin with the same words. Override if many texts are cheaper
    /// together.
    ///
    /// # Panics
    /// If a word of the prompt is not below [`LanguageModel::n_words`].
    fn batch_scorer(&self, prompt: &[WordId], n_streams: usize) -> Box<dyn BatchScorer + '_> {
        Box::new(Scorers::new(|| self.scorer(), prompt, n_streams))
    }

    /// Whether the end of a sentence resets the scorer, so that sentences can be scored
    /// independently and in parallel.
    fn forgets_sentences(&self) -> bool {
        false
    }

    /// Preferred number of sentences per call of [`LanguageModel::token_log_probs`], for models that forget sentences.
    /// Override if one call with many sentences is cheaper than calls with few sentences in parallel.
    fn sentences_together(&self) -> usize {
        1
    }

    /// ln p of one sentence with an empty history. Override if scoring a whole sentence at once is
    /// cheaper.
    fn log_prob(&self, sentence: &[WordId]) -> f64 {
        self.text_log_prob(sentence)
    }

    /// Draws texts with empty histories, each with its own random numbers. The same seed gives different texts on different
    /// devices. Fails on a device on which this model cannot draw. Override if many texts are cheaper together.
    fn sample_texts(
        &self,
        size: SampleSize,
        seed: u64,
        device: Device,
        watch: &mut WatchSample<'_>,
    ) -> Result<Vec<Vec<WordId>>, FitError> {
        sample_texts(self, size, seed, device, watch)
    }

    /// ln p of every word of running text given the words before it, with an empty history. Equals one scorer's results up
    /// to rounding. Override if scoring many words at once is cheaper.
    fn token_log_probs(&self, text: &[WordId]) -> Vec<f64> {
        let mut scorer = self.scorer();
        text.iter().map(|&word| scorer.read(word)).collect()
    }

    /// ln p of running text with an empty history: the sum of [`LanguageModel::token_log_probs`] up to rounding. Override if
    /// the sum is cheaper.
    fn text_log_prob(&self, text: &[WordId]) -> f64 {
        self.token_log_probs(text).iter().sum()
    }

    /// ln p of a whole text on a GPU. Fails if there is none, or if this model cannot be scored there.
    fn log_prob_on_gpu(&self, _text: &Sentences) -> Result<f64, DeviceError> {
        Err(DeviceError::cuda("this model is scored on the CPU only"))
    }

    /// ln p of every word of a whole text given the words before it, on a GPU. Fails if there is none, or if this model
    /// cannot be scored word by word there.
    fn token_log_probs_on_gpu(&self, _text: &Sentences) -> Result<Vec<f64>, DeviceError> {
        Err(DeviceError::cuda("this model is scored word by word on the CPU only"))
    }
}

/// Draws texts with one scorer each. This works for every model; networks have a faster way.
fn sample_texts<M: LanguageModel + ?Sized>(
    model: &M,
    size: SampleSize,
    seed: u64,
    device: Device,
    watch: &mut WatchSample<'_>,
) -> Result<Vec<Vec<WordId>>, FitError> {
    if device == Device::Cuda {
        let problem = "this model draws text on the CPU only".to_owned();
        return Err(FitError::Device { device, problem });
    }
    let mut texts = Vec::with_capacity(size.n_texts);
    let at_once = 4 * rayon::current_num_threads();
    while texts.len() < size.n_texts {
        let next = texts.len()..size.n_texts.min(texts.len() + at_once);
        texts.par_extend(next.into_par_iter().map(|i| text(model, size, seed, i)));
        if watch(texts.len().saturating_mul(size.n_tokens)).is_break() {
            return Err(FitError::Interrupted);
        }
    }
    Ok(texts)
}

/// The text with index i.
fn text<M: LanguageModel + ?Sized>(
    model: &M,
    size: SampleSize,
    seed: u64,
    i: usize,
) -> Vec<WordId> {
    let (mut scorer, mut rng) = (model.scorer(), Rng::stream(seed, i as u64));
    let mut log_probs = vec![0.0; model.n_words()];
    let mut words = Vec::new();
    while words.len() < size.n_tokens && !size.is_complete(&words) {
        scorer.next_log_probs(&mut log_probs);
        if !size.keep_unk {
            log_probs[WordId::UNK.index()] = f64::NEG_INFINITY;
        }
        // Nothing can follow, which happens only in models from elsewhere.
        if log_probs.iter().all(|&log_prob| log_prob == f64::NEG_INFINITY) {
            break;
        }
        let word = WordId::from(sample_log_index(&log_probs, &mut rng));
        scorer.read(word);
        words.push(word);
    }
    words
}

/// Infers topic mixtures of documents.
pub trait TopicModel: Send + Sync {
    /// Number of topics.
    fn n_topics(&self) -> usize;

    /// The topic proportions θ_d of a document: one non-negative entry per topic. They sum to one,
    /// also for an empty document.
    fn mixture(&self, document: &[WordId]) -> Vec<f32>;

    /// Computes tables that [`TopicModel::mixture`] computes on first use. Call it before a loop on several threads:
    /// otherwise, each thread may compute them.
    fn prepare(&self) {}

    /// The topic proportions of each of several documents, computed on several threads: one row per document.
    fn mixtures(&self, documents: &[&[WordId]]) -> Matrix<f32> {
        self.prepare();
        let rows = documents.par_iter().flat_map_iter(|document| self.mixture(document));
        Matrix::from_vec(documents.len(), self.n_topics(), rows.collect())
    }

    /// The ids of the `n` most probable words of a topic with their probabilities, in descending order.
    /// Fewer if the vocabulary is smaller.
    ///
    /// # Panics
    /// If `topic` is not below [`TopicModel::n_topics`].
    fn top_word_ids(&self, topic: usize, n: usize) -> Vec<(WordId, f32)>;
}

/// Assigns a tag, such as a part of speech, to each word of a sentence.
///
/// Taggers take raw words and apply the preprocessing of their training text.
pub trait Tagger: Send + Sync {
    /// Names of the tags.
    fn tags(&self) -> &[String];

    /// The tag of each word of a sentence, as an index into [`Tagger::tags`].
    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError>;

    /// The tags of each of several sentences without parts of speech, as of [`Tagger::tag_all_with`].
    fn tag_all(&self, sentences: &[Vec<&str>]) -> Vec<Result<Vec<u32>, TagError>> {
        let found = self.tag_all_with(&TagInput::of_words(sentences), TagOutputs::default());
        found.into_iter().map(|tagged| Ok(tagged?.tags)).collect()
    }

    /// The tags of each of several sentences, with other outputs, computed on several threads. Equals [`Tagger::tag`],
    /// [`Tagger::tag_with_pos`], [`Tagger::tag_marginals`] and [`Tagger::tag_n_best`] of each sentence up to rounding.
    /// Override if many sentences are cheaper together.
    fn tag_all_with(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        sentences.par_iter().map(|sentence| tag_sentence(self, sentence, outputs)).collect()
    }

    /// The tagger on a GPU. `None` if the GPU has nothing to compute for this tagger; fails if there is no GPU.
    fn on_gpu(&self) -> Option<Result<Box<dyn GpuTagger + '_>, DeviceError>> {
        None
    }

    /// Zero-based column of the part-of-speech input, if the tagger uses one.
    fn pos_column(&self) -> Option<usize> {
        None
    }

    /// Like [`Tagger::tag`], with the sentence's values of that column.
    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        let _ = pos;
        self.tag(words)
    }

    /// Posterior probability of each tag of [`Tagger::tags`] for each word: one row per word, which sums to one.
    ///
    /// `pos` has the sentence's values of [`Tagger::pos_column`].
    fn tag_marginals(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        let _ = (words, pos);
        Err(TagError::NoMarginals)
    }

    /// The `n` most probable sequences of tags with their log probabilities, best first; fewer if there are fewer.
    ///
    /// `pos` has the sentence's values of [`Tagger::pos_column`].
    fn tag_n_best(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        n: usize,
    ) -> Result<Vec<(Vec<u32>, f64)>, TagError> {
        let _ = (words, pos, n);
        Err(TagError::NoSequences)
    }

    /// Frequency of the word in the training text.
    fn n_seen(&self, word: &str) -> u64;
}

/// A tagger that computes on a GPU, where it keeps what it needs there.
pub trait GpuTagger {
    /// The outputs for each of several sentences, those of [`Tagger::tag_all_with`] up to
    /// rounding.
    fn tag_all_with(
        &mut self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Result<Vec<Result<Tagged, TagError>>, DeviceError>;
}

/// Tags one sentence.
fn tag_sentence<T: Tagger + ?Sized>(
    tagger: &T,
    &TagInput { words, pos }: &TagInput<'_>,
    outputs: TagOutputs,
) -> Result<Tagged, TagError> {
    let n_best = match outputs.n_best {
        0 => Vec::new(),
        n => tagger.tag_n_best(words, pos, n)?,
    };
    let tags = match (n_best.first(), pos) {
        (Some((tags, _)), _) => tags.clone(),
        (None, Some(pos)) => tagger.tag_with_pos(words, pos)?,
        (None, None) => tagger.tag(words)?,
    };
    let marginals = outputs.marginals.then(|| tagger.tag_marginals(words, pos)).transpose()?;
    Ok(Tagged { tags, marginals, n_best })
}

impl<T: Tagger + ?Sized> Tagger for &T {
    fn tags(&self) -> &[String] {
        (**self).tags()
    }

    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        (**self).tag(words)
    }

    fn tag_all(&self, sentences: &[Vec<&str>]) -> Vec<Result<Vec<u32>, TagError>> {
        (**self).tag_all(sentences)
    }

    fn tag_all_with(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        (**self).tag_all_with(sentences, outputs)
    }

    fn on_gpu(&self) -> Option<Result<Box<dyn GpuTagger + '_>, DeviceError>> {
        (**self).on_gpu()
    }

    fn pos_column(&self) -> Option<usize> {
        (**self).pos_column()
    }

    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        (**self).tag_with_pos(words, pos)
    }

    fn tag_marginals(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        (**self).tag_marginals(words, pos)
    }

    fn tag_n_best(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        n: usize,
    ) -> Result<Vec<(Vec<u32>, f64)>, TagError> {
        (**self).tag_n_best(words, pos, n)
    }

    fn n_seen(&self, word: &str) -> u64 {
        (**self).n_seen(word)
    }
}

/// A sentence cannot be tagged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagError {
    /// A word is out of vocabulary, and the training text had no unknown words.
    #[error("the word `{word}` is unknown, and the training text had no unknown words")]
    UnknownWord {
        /// The word before preprocessing.
        word: String,
    },
    /// The tagger needs parts of speech, and the text has none.
    #[error("the tagger reads parts of speech in column {column}, and the text has no such column")]
    NoPartsOfSpeech {
        /// One-based column.
        column: usize,
    },
    /// The tagger cannot compute posterior probabilities of tags.
    #[error("the tagger cannot compute tag probabilities")]
    NoMarginals,
    /// The tagger cannot compute the n best tag sequences.
    #[error("the tagger cannot compute n-best tag sequences")]
    NoSequences,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A uniform distribution over words.
    struct Uniform(usize);

    impl LanguageModel for Uniform {
        fn n_words(&self) -> usize {
            self.0
        }

        fn scorer(&self) -> Box<dyn Scorer + '_> {
            Box::new(Uniform(self.0))
        }
    }

    impl Scorer for Uniform {
        fn read(&mut self, _: WordId) -> f64 {
            -(self.0 as f64).ln()
        }

        fn next_log_probs(&mut self, out: &mut [f64]) {
            out.fill(-(self.0 as f64).ln());
        }
    }

    /// Words 0 and 1 follow each other; word 2 follows nothing.
    struct Alternating(usize);

    impl LanguageModel for Alternating {
        fn n_words(&self) -> usize {
            3
        }

        fn scorer(&self) -> Box<dyn Scorer + '_> {
            Box::new(Alternating(0))
        }
    }

    impl Scorer for Alternating {
        fn read(&mut self, word: WordId) -> f64 {
            self.0 = word.index();
            0.0
        }

        fn next_log_probs(&mut self, out: &mut [f64]) {
            out.fill(f64::NEG_INFINITY);
            out[1 - self.0] = 0.0;
        }
    }

    #[test]
    fn drawn_words_depend_on_the_words_before_them() {
        use std::ops::ControlFlow;
        let size = SampleSize::of_tokens(45, 9);
        let mut seen = vec![];
        let mut watch = |n| {
            seen.push(n);
            ControlFlow::Continue(())
        };
        let model = Alternating(0);
        let texts = model.sample_texts(size, 1, Device::Cpu, &mut watch).unwrap();
        assert_eq!(texts, vec![[1, 0, 1, 0, 1].map(WordId).to_vec(); 9]);
        let draw = |size| {
            model.sample_texts(size, 1, Device::Cpu, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        // The first word is the end of the sentence.
        assert_eq!(draw(SampleSize::of_sentences(2, 5)), vec![vec![WordId::EOS]; 2]);
        assert_eq!(draw(SampleSize::of_sentences(2, 0)), vec![vec![]; 2]);
        // Only `<unk>` follows it.
        assert_eq!(draw(SampleSize::of_tokens(10, 2).keep_unk(false)), vec![vec![WordId::EOS]; 2]);
        assert_eq!(seen.last(), Some(&size.total()));
        let mut stop = |_| ControlFlow::Break(());
        let stopped = model.sample_texts(size, 1, Device::Cpu, &mut stop);
        assert!(matches!(stopped, Err(FitError::Interrupted)));
    }

    #[test]
    fn the_log_prob_of_a_sentence_is_the_sum_over_its_words() {
        let model: &dyn LanguageModel = &Uniform(10);
        let sentence = [WordId(2), WordId::UNK, WordId::EOS];
        assert!((model.log_prob(&sentence) + 3.0 * 10f64.ln()).abs() < 1e-12);
        assert_eq!(model.log_prob(&[]), 0.0);
    }
}
