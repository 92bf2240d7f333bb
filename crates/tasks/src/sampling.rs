//! Text sampled from a language model.

use latens_corpus::WordId;
use latens_math::{Rng, log_sum_exp, sample_index, softmax};
use latens_model::{Device, FitError, LanguageModel, SampleSize, StreamStep};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How words are drawn. The distribution is changed in this order: `<unk>`, temperature, top k, top p.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampleOptions {
    /// Maximum number of words to draw.
    pub max_words: usize,
    /// Whether `<unk>` may be drawn. Otherwise the other words are renormalized.
    pub keep_unk: bool,
    /// Temperature T: probabilities are raised to the power 1/T and renormalized. Below 1 favors likely words; 0 always
    /// takes the most likely word.
    pub temperature: f64,
    /// Draw only from the k most likely words.
    pub top_k: Option<usize>,
    /// Draw only from the smallest set of most likely words with a total probability of at least p (Holtzman et al.
    /// 2020).
    pub top_p: Option<f64>,
}

impl Default for SampleOptions {
    fn default() -> SampleOptions {
        SampleOptions {
            max_words: 100,
            keep_unk: false,
            temperature: 1.0,
            top_k: None,
            top_p: None,
        }
    }
}

/// Samples one sentence of at most `max_words` words. The end-of-sentence token and `<unk>` are not included.
pub fn sample(model: &dyn LanguageModel, max_words: usize, rng: &mut Rng) -> Vec<WordId> {
    sample_with(model, &[], &SampleOptions { max_words, ..SampleOptions::default() }, rng)
}

/// Samples the continuation of a sentence that begins with `prompt`, without the prompt and the end-of-sentence token.
///
/// # Panics
/// If `temperature` is negative, or a word of the prompt is not below [`LanguageModel::n_words`].
pub fn sample_with(
    model: &dyn LanguageModel,
    prompt: &[WordId],
    options: &SampleOptions,
    rng: &mut Rng,
) -> Vec<WordId> {
    assert!(options.temperature >= 0.0, "the temperature must not be negative");
    let mut scorer = model.scorer();
    prompt.iter().for_each(|&word| _ = scorer.read(word));
    let mut log_probs = vec![0.0; model.n_words()];
    let mut sentence = Vec::new();
    while sentence.len() < options.max_words {
        scorer.next_log_probs(&mut log_probs);
        let Some(word) = options.draw(&mut log_probs, rng) else { break };
        scorer.read(word);
        sentence.push(word);
    }
    sentence
}

/// Samples `n` sentences, many at once, on several threads. Like [`sample_with`] with the random numbers
/// `Rng::stream(seed, i)` for the sentence with index i, up to rounding. A sentence depends neither on `n` nor on the number
/// of threads.
///
/// `receive` gets the sentences in order and decides whether to continue. It is called after each word of the sentences
/// that are drawn together, also without sentences, so that it can stop the work soon.
///
/// ```
/// use latens_corpus::WordId;
/// use latens_tasks::{SampleOptions, sample_sentences};
/// # use latens_model::LanguageModel;
/// use std::ops::ControlFlow;
///
/// fn first_ten(model: &dyn LanguageModel) -> Vec<Vec<WordId>> {
///     let mut sentences = Vec::new();
///     let _ = sample_sentences(model, &[], &SampleOptions::default(), 10, 1, |next| {
///         sentences.extend(next);
///         ControlFlow::<()>::Continue(())
///     });
///     sentences
/// }
/// ```
///
/// # Panics
/// If `temperature` is negative, or a word of the prompt is not below [`LanguageModel::n_words`].
pub fn sample_sentences<B>(
    model: &dyn LanguageModel,
    prompt: &[WordId],
    options: &SampleOptions,
    n: usize,
    seed: u64,
    mut receive: impl FnMut(Vec<Vec<WordId>>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    assert!(options.temperature >= 0.0, "the temperature must not be negative");
    let n_words = model.n_words();
    let mut n_begun = streams_at_once(model.n_streams(), n_words).min(n);
    let mut streams: Vec<Stream> = (0..n_begun).map(|i| Stream::new(seed, i)).collect();
    let mut scorer = model.batch_scorer(prompt, streams.len());
    let mut log_probs = vec![0.0; streams.len() * n_words];
    // Sentences that wait for earlier ones.
    let (mut complete, mut n_received) = (BTreeMap::new(), 0);
    while !streams.is_empty() {
        log_probs.truncate(streams.len() * n_words);
        scorer.next_log_probs(&mut log_probs);
        let rows = log_probs.par_chunks_exact_mut(n_words).zip(&mut streams);
        let drawn: Vec<Option<WordId>> = rows.map(|(row, s)| s.draw(row, options)).collect();
        let mut steps = Vec::with_capacity(streams.len());
        for (stream, drawn) in streams.iter_mut().zip(drawn) {
            if let Some(word) = drawn {
                steps.push(StreamStep::Read(word));
                continue;
            }
            if let Some(sentence) = stream.sentence.take() {
                complete.insert(sentence, std::mem::take(&mut stream.words));
            }
            if n_begun == n {
                steps.push(StreamStep::End);
                continue;
            }
            if n_begun - n_received < MAX_AHEAD {
                *stream = Stream::new(seed, n_begun);
                n_begun += 1;
            }
            steps.push(StreamStep::Restart);
        }
        let mut next = Vec::new();
        while let Some(words) = complete.remove(&(n_received + next.len())) {
            next.push(words);
        }
        n_received += next.len();
        receive(next)?;
        let mut remain = steps.iter().map(|&step| step != StreamStep::End);
        streams.retain(|_| remain.next().expect("there is one step per stream"));
        scorer.advance(&steps);
    }
    ControlFlow::Continue(())
}

/// Samples `n` sentences on a device: on the CPU like [`sample_sentences`]. A GPU draws thousands of sentences at once. The
/// same seed gives different sentences on different devices. A GPU supports [`SampleOptions::max_words`] and
/// [`SampleOptions::keep_unk`] only; other options and models that cannot draw there are errors.
///
/// # Panics
/// On the CPU as [`sample_sentences`].
pub fn sample_sentences_on<B>(
    device: Device,
    model: &dyn LanguageModel,
    prompt: &[WordId],
    options: &SampleOptions,
    n: usize,
    seed: u64,
    mut receive: impl FnMut(Vec<Vec<WordId>>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, FitError> {
    if device == Device::Cpu {
        return Ok(sample_sentences(model, prompt, options, n, seed, receive));
    }
    let SampleOptions { max_words, keep_unk, .. } = *options;
    let plain = SampleOptions { max_words, keep_unk, ..SampleOptions::default() };
    if *options != plain || !prompt.is_empty() {
        let problem =
            "prompts, temperature, top-k and top-p sampling are supported on the CPU only"
                .to_owned();
        return Err(FitError::Device { device, problem });
    }
    let at_once = gpu_sentences_at_once(model.n_words());
    for (part, begin) in (0..n).step_by(at_once).enumerate() {
        let size = SampleSize::of_sentences(at_once.min(n - begin), max_words).keep_unk(keep_unk);
        // Sentences of a part have seeds next to each other, so those of parts must be far apart.
        let seed = (Rng::stream(seed, part as u64).uniform() * 2f64.powi(53)) as u64;
        let mut watch = |_| ControlFlow::Continue(());
        let mut sentences = model.sample_texts(size, seed, device, &mut watch)?;
        for sentence in &mut sentences {
            sentence.pop_if(|word| *word == WordId::EOS);
        }
        if let ControlFlow::Break(value) = receive(sentences) {
            return Ok(ControlFlow::Break(value));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Number of sentences that a GPU draws at once. Each part loads the model again, so that there are few of them.
fn gpu_sentences_at_once(n_words: usize) -> usize {
    /// Bytes of the logits of all words in all sentences.
    const MEMORY: usize = 1 << 30;
    /// More sentences are not faster.
    const MOST: usize = 1 << 14;
    (MEMORY / (4 * n_words.max(1))).clamp(1, MOST)
}

/// Number of sentences that are drawn at once, at most the given one.
fn streams_at_once(most: usize, n_words: usize) -> usize {
    /// Bytes of the probabilities of all words in all streams.
    const MEMORY: usize = 32 << 20;
    (MEMORY / (8 * n_words.max(1))).min(most).max(1)
}

/// Number of sentences that are begun or wait for the first of them, which may be very long.
const MAX_AHEAD: usize = 1 << 14;

/// A sentence that is being drawn.
struct Stream {
    /// Index of the sentence. `None` if the stream waits until it may begin one.
    sentence: Option<usize>,
    words: Vec<WordId>,
    rng: Rng,
}

impl Stream {
    fn new(seed: u64, sentence: usize) -> Stream {
        let rng = Rng::stream(seed, sentence as u64);
        Stream { sentence: Some(sentence), words: Vec::new(), rng }
    }

    /// Draws the next word. Returns it unless it completes the sentence.
    fn draw(&mut self, log_probs: &mut [f64], options: &SampleOptions) -> Option<WordId> {
        if self.sentence.is_none() || self.words.len() == options.max_words {
            return None;
        }
        let word = options.draw(log_probs, &mut self.rng)?;
        self.words.push(word);
        (self.words.len() < options.max_words).then_some(word)
    }
}

impl SampleOptions {
    /// Changes log-probabilities of words; the results are not normalized.
    pub fn apply(&self, log_probs: &mut [f64]) {
        // `<unk>` is useless to a reader. Excluding it renormalizes the other words.
        if !self.keep_unk {
            log_probs[WordId::UNK.index()] = f64::NEG_INFINITY;
        }
        if self.temperature == 0.0 {
            return keep_likeliest(log_probs, 1);
        }
        if self.temperature != 1.0 {
            log_probs.iter_mut().for_each(|log_prob| *log_prob /= self.temperature);
        }
        if let Some(k) = self.top_k {
            keep_likeliest(log_probs, k);
        }
        if let Some(p) = self.top_p.filter(|&p| p < 1.0) {
            keep_likeliest(log_probs, nucleus_size(log_probs, p));
        }
    }

    /// Draws a word. `None` is the end of the sentence, which also comes where no word is possible. `log_probs` become
    /// probabilities.
    fn draw(&self, log_probs: &mut [f64], rng: &mut Rng) -> Option<WordId> {
        self.apply(log_probs);
        if softmax(log_probs) == f64::NEG_INFINITY {
            return None;
        }
        let word = WordId::from(sample_index(log_probs, rng));
        (word != WordId::EOS).then_some(word)
    }
}

/// Sets all but the `k` largest log-probabilities to −∞. Ties go to the first word.
fn keep_likeliest(log_probs: &mut [f64], k: usize) {
    let mut words = possible(log_probs);
    if k < words.len() {
        words.select_nth_unstable_by(k, |&a, &b| likelier(log_probs, a, b));
        words[k..].iter().for_each(|&word| log_probs[word] = f64::NEG_INFINITY);
    }
}

/// Number of the likeliest words whose probability is at least `p` together; at least one.
fn nucleus_size(log_probs: &[f64], p: f64) -> usize {
    let log_total = log_sum_exp(log_probs);
    let mut sum = 0.0;
    let reaches = |&word: &usize| {
        sum += (log_probs[word] - log_total).exp();
        // The tolerance keeps rounding from adding a word.
        sum >= p - 1e-12
    };
    descending(log_probs).iter().position(reaches).map_or(log_probs.len(), |last| last + 1)
}

fn descending(log_probs: &[f64]) -> Vec<usize> {
    let mut order = possible(log_probs);
    order.sort_unstable_by(|&a, &b| likelier(log_probs, a, b));
    order
}

/// The words whose probability is not zero.
fn possible(log_probs: &[f64]) -> Vec<usize> {
    (0..log_probs.len()).filter(|&word| log_probs[word] != f64::NEG_INFINITY).collect()
}

/// Orders words by probability, then by index.
fn likelier(log_probs: &[f64], a: usize, b: usize) -> Ordering {
    log_probs[b].total_cmp(&log_probs[a]).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBS: [f64; 5] = [0.2, 0.1, 0.4, 0.05, 0.25];

    /// The distribution from which a word is drawn.
    fn changed(options: &SampleOptions) -> Vec<f64> {
        let mut log_probs = PROBS.map(f64::ln);
        options.apply(&mut log_probs);
        let total = log_sum_exp(&log_probs);
        log_probs.iter().map(|log_prob| (log_prob - total).exp()).collect()
    }

    fn assert_close(found: &[f64], weights: [f64; 5]) {
        let total: f64 = weights.iter().sum();
        for (found, weight) in found.iter().zip(weights) {
            assert!((found - weight / total).abs() < 1e-12, "{found} {weights:?}");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_vocabulary() {
        for n_words in [1, 10_000, 200_000, 4_000_000] {
            let n = streams_at_once(256, n_words);
            assert!((1..=256).contains(&n) && n * n_words * 8 <= 40_000_000, "{n} × {n_words}");
        }
    }

    #[test]
    fn the_distribution_is_renormalized_exactly() {
        let unk = SampleOptions { keep_unk: true, ..SampleOptions::default() };
        let none = [0.0, PROBS[1], PROBS[2], PROBS[3], PROBS[4]];
        assert_close(&changed(&SampleOptions::default()), none);
        assert_close(&changed(&unk), PROBS);
        for temperature in [0.25, 0.7, 1.0, 3.0] {
            let cooled = changed(&SampleOptions { temperature, ..unk.clone() });
            assert_close(&cooled, PROBS.map(|p| p.powf(1.0 / temperature)));
        }
        assert_close(
            &changed(&SampleOptions { temperature: 0.0, ..unk.clone() }),
            [0., 0., 1., 0., 0.],
        );
        let top_k = SampleOptions { top_k: Some(3), ..unk.clone() };
        assert_close(&changed(&top_k), [0.2, 0.0, 0.4, 0.0, 0.25]);
        // Without `<unk>`, the third is another word.
        let never = SampleOptions { top_k: Some(3), ..SampleOptions::default() };
        assert_close(&changed(&never), [0.0, 0.1, 0.4, 0.0, 0.25]);
        for (p, kept) in [(0.3, 1), (0.4, 1), (0.41, 2), (0.65, 2), (0.8, 3), (0.9, 4), (1.0, 5)] {
            let found = changed(&SampleOptions { top_p: Some(p), ..unk.clone() });
            assert_eq!(found.iter().filter(|&&p| p > 0.0).count(), kept, "{p}");
        }
        // Top p counts the probabilities that top k leaves: 0.4 of 0.65.
        let both = SampleOptions { top_k: Some(2), top_p: Some(0.6), ..unk };
        assert_close(&changed(&both), [0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
