//! Distillation: training on text that another language model draws.

use latens_corpus::{Sentences, WordId};
use latens_math::{BatchPlace, Rng};
use latens_model::{Device, FitError, LanguageModel, SampleSize, fingerprint};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// A language model that draws the training text of a hidden Markov model.
///
/// Every epoch reads its own part of the drawn text, so that no sample is read twice, and the corpus of the fit
/// [`Teacher::text_weight`] times. The vocabulary of the corpus must be that of the teacher. Training by gradient
/// supports teachers; Baum–Welch does not.
pub struct Teacher<'a> {
    model: &'a dyn LanguageModel,
    fingerprint: u64,
    n_tokens: usize,
    text_weight: usize,
    device: Device,
    watch: Option<Box<WatchDraw<'a>>>,
    keep: Option<Box<KeepText<'a>>>,
}

/// Receives how many tokens of how many are drawn, and decides whether to continue.
type WatchDraw<'a> = dyn Fn(usize, usize) -> ControlFlow<()> + Sync + 'a;

/// Receives the texts that were drawn for an epoch.
type KeepText<'a> = dyn Fn(&[Vec<WordId>]) -> Result<(), FitError> + Sync + 'a;

impl<'a> Teacher<'a> {
    /// Learns from `n_tokens` tokens that `model` draws. `fingerprint` identifies the model: a checkpoint of the student
    /// continues only with the same one.
    pub fn new(model: &'a dyn LanguageModel, fingerprint: u64, n_tokens: usize) -> Teacher<'a> {
        Teacher {
            model,
            fingerprint,
            n_tokens,
            text_weight: 1,
            device: Device::Cpu,
            watch: None,
            keep: None,
        }
    }

    /// Sets how many times each epoch reads the corpus of the fit, in addition to the drawn text. The default is 1.
    #[must_use]
    pub fn text_weight(mut self, weight: usize) -> Self {
        self.text_weight = weight;
        self
    }

    /// Sets the device that draws. The default is the CPU.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Sets a callback that receives how many tokens of how many are drawn. If it returns [`ControlFlow::Break`], the
    /// training stops with [`FitError::Interrupted`].
    #[must_use]
    pub fn watch(mut self, watch: impl Fn(usize, usize) -> ControlFlow<()> + Sync + 'a) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Sets a callback that receives the texts of each epoch.
    #[must_use]
    pub fn keep(
        mut self,
        keep: impl Fn(&[Vec<WordId>]) -> Result<(), FitError> + Sync + 'a,
    ) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    /// Number of tokens that are drawn in all epochs together.
    pub(crate) fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// How many times each epoch reads the corpus.
    pub(crate) fn copies(&self) -> usize {
        self.text_weight
    }

    /// A hash of the model and the sizes.
    pub fn fingerprint(&self) -> u64 {
        let sizes = [self.n_tokens as u64, self.text_weight as u64, self.fingerprint];
        fingerprint(sizes.into_iter().flat_map(|x| [x as u32, (x >> 32) as u32]))
    }

    /// Draws the text of an epoch and joins it with the corpus.
    fn text(&self, epoch: &Epoch<'_>) -> Result<Sentences, FitError> {
        let n_tokens = epoch.share(self.n_tokens).len();
        let size = SampleSize::of_tokens(n_tokens, self.n_texts(n_tokens));
        let total = size.total();
        let mut watch = |n| self.watch.as_ref().map_or(ControlFlow::Continue(()), |f| f(n, total));
        let seed = (Rng::at(epoch.seed, TEXTS, BatchPlace { epoch: epoch.idx, batch: 0 }).uniform()
            * 2f64.powi(53)) as u64;
        let texts = self.model.sample_texts(size, seed, self.device, &mut watch)?;
        if let (true, Some(keep)) = (epoch.is_new, &self.keep) {
            keep(&texts)?;
        }
        let copies = std::iter::repeat_n(epoch.corpus, self.text_weight);
        let copies = copies.flat_map(|corpus| corpus.segments());
        Ok(joined(
            texts.iter().map(|text| whole_sentences(text)).chain(copies),
            self.model.n_words(),
        ))
    }

    /// Number of texts that are drawn at once: many for the throughput of a device, but each with some hundred tokens,
    /// because an unfinished sentence at its end is lost.
    fn n_texts(&self, n_tokens: usize) -> usize {
        let most = match self.device {
            Device::Cpu => 128,
            Device::Cuda => 8192,
        };
        (n_tokens / 500).clamp(1, most)
    }
}

impl fmt::Debug for Teacher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Teacher { n_tokens, text_weight, device, .. } = self;
        let mut debug = f.debug_struct("Teacher");
        debug.field("n_tokens", n_tokens).field("text_weight", text_weight);
        debug.field("device", device).finish_non_exhaustive()
    }
}

/// The random stream of the texts, which no other part of training uses.
const TEXTS: u8 = 6;

/// An epoch that needs text.
pub(crate) struct Epoch<'a> {
    pub(crate) idx: usize,
    pub(crate) n_epochs: usize,
    pub(crate) seed: u64,
    /// Whether it begins; else it is continued from a checkpoint.
    pub(crate) is_new: bool,
    pub(crate) corpus: &'a Sentences,
}

impl Epoch<'_> {
    /// The part of n tokens that belongs to this epoch.
    fn share(&self, n: usize) -> Range<usize> {
        let end = |idx: usize| (n as u128 * idx as u128 / self.n_epochs.max(1) as u128) as usize;
        end(self.idx)..end(self.idx + 1)
    }
}

/// The drawn text of all epochs so far. Mini-batches borrow it, so that it is kept until the training ends.
pub(crate) struct DrawnTexts<'a> {
    teacher: &'a Teacher<'a>,
    texts: Vec<OnceLock<Sentences>>,
}

impl<'a> DrawnTexts<'a> {
    pub(crate) fn new(teacher: &'a Teacher<'a>, n_epochs: usize) -> DrawnTexts<'a> {
        DrawnTexts { teacher, texts: (0..n_epochs).map(|_| OnceLock::new()).collect() }
    }

    /// The text of an epoch, which is drawn unless it was before.
    pub(crate) fn of(&self, epoch: &Epoch<'_>) -> Result<&Sentences, FitError> {
        let cell = &self.texts[epoch.idx];
        if let Some(text) = cell.get() {
            return Ok(text);
        }
        let text = self.teacher.text(epoch)?;
        if text.is_empty() {
            let needs = "at least 1 complete sentence from the teacher";
            return Err(FitError::not_enough_data(needs, "text without an end of sentence"));
        }
        Ok(cell.get_or_init(|| text))
    }
}

/// The text up to the end of its last sentence.
fn whole_sentences(text: &[WordId]) -> &[WordId] {
    let end = text.iter().rposition(|&word| word == WordId::EOS).map_or(0, |last| last + 1);
    &text[..end]
}

/// Sentences of several texts. Each text is a segment, so that sequences of running text do not go from one to another.
fn joined<'a>(texts: impl Iterator<Item = &'a [WordId]>, n_words: usize) -> Sentences {
    let (mut ids, mut offsets, mut segments) = (Vec::new(), vec![0], vec![0]);
    for text in texts.filter(|text| !text.is_empty()) {
        for sentence in text.split_inclusive(|&word| word == WordId::EOS) {
            ids.extend_from_slice(sentence);
            offsets.push(ids.len() as u64);
        }
        segments.push(offsets.len() as u64 - 1);
    }
    let parts = (ids.into(), offsets.into(), segments.into());
    Sentences::from_parts(parts.0, parts.1, parts.2, n_words).expect("whole sentences of the model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_model::Scorer;
    use std::sync::Mutex;

    /// Draws `2 2 1 2 2 1 …`, where 1 ends a sentence.
    struct Twos;

    struct State(usize);

    impl LanguageModel for Twos {
        fn n_words(&self) -> usize {
            4
        }

        fn scorer(&self) -> Box<dyn Scorer + '_> {
            Box::new(State(0))
        }
    }

    impl Scorer for State {
        fn read(&mut self, _: WordId) -> f64 {
            self.0 += 1;
            0.0
        }

        fn next_log_probs(&mut self, out: &mut [f64]) {
            out.fill(f64::NEG_INFINITY);
            out[if self.0 % 3 == 2 { 1 } else { 2 }] = 0.0;
        }
    }

    #[test]
    fn epochs_share_the_drawn_tokens_and_read_the_corpus() {
        let corpus = Sentences::from_words([[WordId(3)]]);
        let kept = Mutex::new(vec![]);
        let teacher = Teacher::new(&Twos, 1, 35).text_weight(2).keep(|texts| {
            kept.lock().unwrap().push(texts.len());
            Ok(())
        });
        let drawn = DrawnTexts::new(&teacher, 4);
        let epoch = |idx, is_new| Epoch { idx, n_epochs: 4, seed: 1, is_new, corpus: &corpus };
        let sizes: Vec<usize> = (0..4).map(|i| epoch(i, true).share(35).len()).collect();
        assert_eq!(sizes, [8, 9, 9, 9]);
        // Of eight tokens, two sentences of three are whole.
        let text = drawn.of(&epoch(0, true)).unwrap();
        let expected = [&[2, 2, 1][..], &[2, 2, 1], &[3, 1], &[3, 1]];
        let expected: Vec<Vec<WordId>> =
            expected.iter().map(|ids| ids.iter().map(|&id| WordId(id)).collect()).collect();
        assert_eq!(text.iter().collect::<Vec<_>>(), expected);
        assert_eq!(text.segment_bounds(), [0, 2, 3, 4]);
        // Not drawn again, and not kept when it is continued.
        drawn.of(&epoch(0, true)).unwrap();
        drawn.of(&epoch(1, false)).unwrap();
        assert_eq!(*kept.lock().unwrap(), [1]);
    }

    #[test]
    fn a_teacher_that_never_ends_a_sentence_is_an_error() {
        let teacher = Teacher::new(&Twos, 1, 2);
        let corpus = Sentences::from_words(Vec::<[WordId; 1]>::new());
        let drawn = DrawnTexts::new(&teacher, 1);
        let epoch = Epoch { idx: 0, n_epochs: 1, seed: 1, is_new: true, corpus: &corpus };
        let error = drawn.of(&epoch).unwrap_err();
        assert!(matches!(error, FitError::NotEnoughData { .. }), "{error}");
    }
}
