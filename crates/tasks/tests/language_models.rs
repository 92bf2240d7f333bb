//! Perplexity and sampling with models whose probabilities are known.

use latens_corpus::{Sentences, WordId};
use latens_math::Rng;
use latens_model::{Device, FitError, LanguageModel, SampleSize, Scorer, WatchSample};
use latens_tasks::{
    Impossible, SampleOptions, first_impossible, perplexity, sample, sample_sentences,
    sample_sentences_on, sample_with,
};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Four words with fixed probabilities. If it remembers, half of the probability goes to a repetition of the last word,
/// also across sentences.
struct Fixed {
    probs: [f64; 4],
    remembers: bool,
}

struct FixedScorer<'a> {
    model: &'a Fixed,
    last: Option<WordId>,
}

impl LanguageModel for Fixed {
    fn n_words(&self) -> usize {
        self.probs.len()
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(FixedScorer { model: self, last: None })
    }

    fn forgets_sentences(&self) -> bool {
        !self.remembers
    }
}

impl FixedScorer<'_> {
    fn log_prob(&self, word: WordId) -> f64 {
        let prob = self.model.probs[word.index()];
        match self.last {
            Some(last) if self.model.remembers => {
                (0.5 * prob + if last == word { 0.5 } else { 0.0 }).ln()
            }
            _ => prob.ln(),
        }
    }
}

impl Scorer for FixedScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        let log_prob = self.log_prob(word);
        self.last = Some(word);
        log_prob
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        for (word, out) in out.iter_mut().enumerate() {
            *out = self.log_prob(WordId::from(word));
        }
    }
}

const A: WordId = WordId(2);
const B: WordId = WordId(3);

#[test]
fn the_perplexity_of_a_uniform_model_is_the_vocabulary_size() {
    let text = Sentences::from_words([vec![A, B], vec![], vec![WordId::UNK, A, A]]);
    let found = perplexity(&Fixed { probs: [0.25; 4], remembers: false }, &text);
    assert_eq!((found.tokens, found.oov), (8, 1));
    assert!((found.perplexity() - 4.0).abs() < 1e-12);
    assert!((found.log_prob - 8.0 * 0.25f64.ln()).abs() < 1e-12);
}

#[test]
fn a_model_that_remembers_reads_the_text_in_order() {
    let text = Sentences::from_words([vec![A], vec![A, A]]);
    let model = Fixed { probs: [0.1, 0.2, 0.3, 0.4], remembers: true };
    // A eos A A eos: the word read last is none, A, eos, A, A.
    let expected = [0.3, 0.5 * 0.2, 0.5 * 0.3, 0.5 * 0.3 + 0.5, 0.5 * 0.2];
    let expected: f64 = expected.iter().map(|p: &f64| p.ln()).sum();
    assert!((perplexity(&model, &text).log_prob - expected).abs() < 1e-12);
}

#[test]
fn a_word_of_probability_zero_makes_the_perplexity_infinite() {
    let text = Sentences::from_words([vec![A]]);
    let found = perplexity(&Fixed { probs: [0.0, 0.5, 0.0, 0.5], remembers: false }, &text);
    assert_eq!(found.perplexity(), f64::INFINITY);
}

#[test]
fn perplexity_does_not_depend_on_the_number_of_threads() {
    let mut rng = Rng::new(3);
    let words = (0..5000).map(|_| vec![WordId(2 + (rng.uniform() * 2.0) as u32); 3]);
    let text = Sentences::from_words(words.collect::<Vec<_>>());
    let model = Fixed { probs: [0.1, 0.2, 0.3, 0.4], remembers: false };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| perplexity(&model, &text).log_prob.to_bits())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn sampled_words_have_the_frequencies_of_the_model() {
    let model = Fixed { probs: [0.2, 0.4, 0.1, 0.3], remembers: false };
    let mut rng = Rng::new(1);
    let mut counts = [0usize; 4];
    let n_sentences = 20_000;
    for _ in 0..n_sentences {
        sample(&model, 1000, &mut rng).iter().for_each(|word| counts[word.index()] += 1);
    }
    assert_eq!(counts[WordId::UNK.index()] + counts[WordId::EOS.index()], 0);
    // Without `<unk>`, a sentence ends before each word with probability 0.4/0.8, else A or B follows.
    let expected = [n_sentences as f64 * 0.1 / 0.4, n_sentences as f64 * 0.3 / 0.4];
    for (count, expected) in counts[2..].iter().zip(expected) {
        // Five standard deviations; the variance is at most twice the mean.
        assert!((*count as f64 - expected).abs() < 5.0 * (2.0 * expected).sqrt(), "{counts:?}");
    }
    let mut draw = |seed| {
        rng = Rng::new(seed);
        (0..50).flat_map(|_| sample(&model, 1000, &mut rng)).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn sampling_stops_at_max_words_or_when_only_unk_is_left() {
    let model = Fixed { probs: [0.0, 0.0, 1.0, 0.0], remembers: false };
    assert_eq!(sample(&model, 5, &mut Rng::new(1)), [A; 5]);
    let silent = Fixed { probs: [1.0, 0.0, 0.0, 0.0], remembers: false };
    assert!(sample(&silent, 5, &mut Rng::new(1)).is_empty());
}

#[test]
fn the_first_token_of_probability_zero_is_found() {
    let model = Fixed { probs: [0.0, 0.5, 0.5, 0.0], remembers: false };
    let possible = Sentences::from_words([vec![A], vec![A, A]]);
    assert_eq!(first_impossible(&model, &possible), None);
    let text = Sentences::from_words([vec![A], vec![A, A, WordId::UNK, B], vec![B]]);
    assert_eq!(perplexity(&model, &text).perplexity(), f64::INFINITY);
    let expected = Impossible { sentence_idx: 1, token_idx: 2 };
    assert_eq!(first_impossible(&model, &text), Some(expected));
}

/// What [`sample_sentences`] gives, and how often it asked whether to continue.
fn sentences(
    model: &Fixed,
    prompt: &[WordId],
    options: &SampleOptions,
    n: usize,
) -> (Vec<Vec<WordId>>, usize) {
    let (mut sentences, mut n_calls) = (Vec::new(), 0);
    let flow = sample_sentences(model, prompt, options, n, 7, |next| {
        sentences.extend(next);
        n_calls += 1;
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow, ControlFlow::Continue(()));
    (sentences, n_calls)
}

fn at_most(max_words: usize) -> SampleOptions {
    let mut options = SampleOptions::default();
    options.max_words = max_words;
    options
}

/// 1,000 sentences are more than are drawn at once.
#[test]
fn sentences_drawn_together_are_those_drawn_one_after_the_other() {
    let model = Fixed { probs: [0.1, 0.2, 0.3, 0.4], remembers: true };
    for prompt in [vec![], vec![B, A]] {
        for max_words in [0, 1, 4, 1000] {
            let options = at_most(max_words);
            let alone = |i| sample_with(&model, &prompt, &options, &mut Rng::stream(7, i));
            let expected: Vec<Vec<WordId>> = (0..1000).map(alone).collect();
            for n in [0, 1, 255, 1000] {
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let draw = || sentences(&model, &prompt, &options, n).0;
                    assert_eq!(pool.unwrap().install(draw), expected[..n]);
                }
            }
        }
    }
}

#[test]
fn drawing_stops_when_told_also_before_a_sentence_ends() {
    // Without the end of the sentence.
    let model = Fixed { probs: [0.1, 0.0, 0.3, 0.6], remembers: false };
    let mut n_calls = 0;
    let flow = sample_sentences(&model, &[], &at_most(usize::MAX), 10, 1, |next| {
        assert!(next.is_empty());
        n_calls += 1;
        if n_calls < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break("enough") }
    });
    assert_eq!((flow, n_calls), (ControlFlow::Break("enough"), 5));
    // Three sentences are drawn at once on any number of threads.
    assert_eq!(sentences(&model, &[], &at_most(20), 3).1, 20);
}

/// Nearly all sentences are empty. The others never end.
struct Endless;

struct EndlessScorer {
    has_begun: bool,
}

impl LanguageModel for Endless {
    fn n_words(&self) -> usize {
        3
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(EndlessScorer { has_begun: false })
    }
}

impl Scorer for EndlessScorer {
    fn read(&mut self, word: WordId) -> f64 {
        let mut log_probs = [0.0; 3];
        self.next_log_probs(&mut log_probs);
        self.has_begun = true;
        log_probs[word.index()]
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        let endless: f64 = if self.has_begun { 1.0 } else { 1e-4 };
        out.copy_from_slice(&[f64::NEG_INFINITY, (1.0 - endless).ln(), endless.ln()]);
    }
}

/// Sentences after a very long one wait for it. There is a limit to their number, which leaves them as they are.
#[test]
fn sentences_wait_for_a_very_long_one() {
    let (n, options) = (60_000, at_most(20_000));
    let mut sentences: Vec<Vec<WordId>> = Vec::new();
    let flow = sample_sentences(&Endless, &[], &options, n, 7, |next| {
        sentences.extend(next);
        ControlFlow::<()>::Continue(())
    });
    assert_eq!((flow, sentences.len()), (ControlFlow::Continue(()), n));
    let n_long = sentences.iter().filter(|words| words.len() == 20_000).count();
    assert!((1..40).contains(&n_long), "{n_long} of {n}");
    for (i, words) in sentences.iter().enumerate() {
        let begins = sample_with(&Endless, &[], &at_most(1), &mut Rng::stream(7, i as u64));
        assert_eq!(words.is_empty(), begins.is_empty(), "sentence {i}");
    }
}

/// Draws `a b` with an end, or `a a a …` without one, and notes the sizes and seeds.
struct OnGpu(Mutex<Vec<(SampleSize, u64)>>);

impl LanguageModel for OnGpu {
    fn n_words(&self) -> usize {
        4
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        unreachable!("the texts come from the device")
    }

    fn sample_texts(
        &self,
        size: SampleSize,
        seed: u64,
        device: Device,
        _: &mut WatchSample<'_>,
    ) -> Result<Vec<Vec<WordId>>, FitError> {
        assert_eq!(device, Device::Cuda);
        self.0.lock().unwrap().push((size, seed));
        let text = |i: usize| match i % 2 {
            0 => vec![WordId(2), WordId(3), WordId::EOS],
            _ => vec![WordId(2); size.n_tokens],
        };
        Ok((0..size.n_texts).map(text).collect())
    }
}

#[test]
fn a_device_draws_thousands_of_sentences_at_once() {
    let model = OnGpu(Mutex::default());
    let options = at_most(5);
    let mut sentences = Vec::new();
    let flow = sample_sentences_on(Device::Cuda, &model, &[], &options, 40_000, 7, |next| {
        sentences.extend(next);
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    assert_eq!(sentences.len(), 40_000);
    assert_eq!(sentences[..2], [vec![WordId(2), WordId(3)], vec![WordId(2); 5]]);
    let parts = std::mem::take(&mut *model.0.lock().unwrap());
    assert_eq!(parts.iter().map(|part| part.0.n_texts).collect::<Vec<_>>(), [16_384, 16_384, 7232]);
    assert!(parts.iter().all(|part| part.0.ends_at_eos && !part.0.keep_unk));
    assert!(parts[0].1 != parts[1].1 && parts[1].1 != parts[2].1, "{parts:?}");
    let stopped = sample_sentences_on(Device::Cuda, &model, &[], &options, 40_000, 7, |_| {
        ControlFlow::Break("enough")
    });
    assert_eq!(stopped.unwrap(), ControlFlow::Break("enough"));
    assert_eq!(model.0.lock().unwrap()[..], parts[..1], "the seed determines the sentences");
}

#[test]
fn a_device_does_not_change_probabilities() {
    let model = OnGpu(Mutex::default());
    let with = |change: &dyn Fn(&mut SampleOptions)| {
        let mut options = SampleOptions::default();
        change(&mut options);
        options
    };
    for (prompt, options) in [
        (&[WordId(2)][..], SampleOptions::default()),
        (&[], with(&|options| options.temperature = 0.5)),
        (&[], with(&|options| options.top_k = Some(2))),
        (&[], with(&|options| options.top_p = Some(0.5))),
    ] {
        let receive = |_| ControlFlow::<()>::Continue(());
        let drawn = sample_sentences_on(Device::Cuda, &model, prompt, &options, 1, 1, receive);
        assert!(matches!(drawn, Err(FitError::Device { device: Device::Cuda, .. })), "{options:?}");
    }
    assert!(model.0.lock().unwrap().is_empty());
}
