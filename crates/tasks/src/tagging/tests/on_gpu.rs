//! Taggers with encoders on a device, which is simulated.

use super::fixtures::{Letters, TEXT, encoders, fit, kinds, read};
use crate::tagging::evaluation::tagged::{TagTextError, tag_text, tag_text_on};
use crate::tagging::features::encoder::Encoder;
use crate::tagging::features::word_encoder::{GpuWordEncoder, WordEncoder};
use latens_model::{Device, DeviceError, FeatureRows, TagError, TagOutputs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An encoder that can use a device.
struct OnDevice {
    letters: Letters,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Number of words that the device encoded.
    n_words: AtomicUsize,
    /// Why the device cannot be opened.
    missing: Mutex<Option<DeviceError>>,
    /// Why the device cannot compute.
    broken: Mutex<Option<DeviceError>>,
}

impl WordEncoder for OnDevice {
    fn n_features(&self) -> usize {
        self.letters.n_features()
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        self.letters.encode(words, out);
    }

    fn values_per_token(&self) -> usize {
        // Several parts.
        1 << 16
    }

    fn on_gpu(&self) -> Option<Result<Box<dyn GpuWordEncoder + '_>, DeviceError>> {
        match &*self.state.missing.lock().unwrap() {
            None => Some(Ok(Box::new(Opened(self)))),
            Some(error) => Some(Err(error.clone())),
        }
    }

    fn knows(&self, word: &str) -> bool {
        self.letters.knows(word)
    }
}

struct Opened<'e>(&'e OnDevice);

impl GpuWordEncoder for Opened<'_> {
    fn encode_all(&mut self, sentences: &[Vec<&str>]) -> Result<Vec<FeatureRows>, DeviceError> {
        let OnDevice { letters, state } = self.0;
        if let Some(error) = &*state.broken.lock().unwrap() {
            return Err(error.clone());
        }
        let n_words = sentences.iter().map(Vec::len).sum();
        state.n_words.fetch_add(n_words, Ordering::Relaxed);
        Ok(letters.encode_all(sentences))
    }
}

/// Two encoders, the second of which can use a device.
fn one_of_two(state: &Arc<State>) -> Vec<Encoder> {
    let mut encoders = encoders();
    let on_device = OnDevice { letters: Letters::new(false), state: state.clone() };
    encoders[1].model = Box::new(on_device);
    encoders
}

#[test]
fn a_device_computes_the_encoders_that_it_can_and_the_tags_stay_the_same() {
    let text = read(&TEXT.repeat(40));
    for params in kinds() {
        let state = Arc::<State>::default();
        let tagger = fit(&params, &text, one_of_two(&state));
        let outputs = TagOutputs::default().marginals(true).n_best(2);
        let expected = tag_text(&tagger, &text, outputs).unwrap();
        assert_eq!(tag_text_on(Device::Cpu, &tagger, &text, outputs).unwrap(), expected);
        assert_eq!(state.n_words.load(Ordering::Relaxed), 0);
        assert_eq!(tag_text_on(Device::Cuda, &tagger, &text, outputs).unwrap(), expected);
        assert_eq!(state.n_words.load(Ordering::Relaxed), text.n_tokens());
    }
}

#[test]
fn a_device_that_computes_nothing_of_the_tagger_is_refused() {
    let text = read(TEXT);
    let tagger = fit(&kinds()[0], &text, encoders());
    let refused = tag_text_on(Device::Cuda, &tagger, &text, TagOutputs::default());
    let error = DeviceError::cuda("this tagger uses no hidden Markov model");
    assert_eq!(refused, Err(TagTextError::Device(error)));
}

#[test]
fn errors_of_the_device_and_of_the_text_are_returned() {
    let (text, alone) = (read(TEXT), read("The\ndog\n"));
    let state = Arc::<State>::default();
    let tagger = fit(&kinds()[1], &text, one_of_two(&state));
    let tag = |text| tag_text_on(Device::Cuda, &tagger, text, TagOutputs::default());
    let missing = TagTextError::Tag(TagError::NoPartsOfSpeech { column: 2 });
    assert_eq!(tag(&alone), Err(missing));
    let error = DeviceError::cuda("out of memory");
    *state.broken.lock().unwrap() = Some(error.clone());
    assert_eq!(tag(&text), Err(TagTextError::Device(error)));
    let error = DeviceError::cuda("no device");
    *state.missing.lock().unwrap() = Some(error.clone());
    assert_eq!(tag(&text), Err(TagTextError::Device(error)));
}
