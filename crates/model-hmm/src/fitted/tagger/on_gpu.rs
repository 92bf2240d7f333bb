//! A tagger whose posteriors of states are computed on the device.

use super::hmm_tagger::HmmTagger;
use crate::fitted::on_gpu::states::{DeviceStates, Sentence};
use crate::fitted::together::max_tokens;
use latens_corpus::WordId;
use latens_model::{DeviceError, GpuTagger, TagError, TagInput, TagOutputs, Tagged};
use rayon::prelude::*;
use std::borrow::Cow;

/// A tagger whose posteriors of states are computed on the device. The CPU reads unknown words and computes the tags.
pub(crate) struct HmmTaggerOnGpu<'t> {
    tagger: &'t HmmTagger<'t>,
    states: DeviceStates<'t>,
}

impl<'t> HmmTaggerOnGpu<'t> {
    pub(crate) fn open(tagger: &'t HmmTagger<'t>) -> Result<HmmTaggerOnGpu<'t>, DeviceError> {
        Ok(HmmTaggerOnGpu { tagger, states: DeviceStates::open(tagger.hmm)? })
    }

    /// Tags sentences whose emission probabilities of unknown words fit in memory.
    fn tag_part(
        &mut self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Result<Vec<Result<Tagged, TagError>>, DeviceError> {
        let tagger = self.tagger;
        let read = sentences.par_iter().map(|input| match sentence(tagger, input.words) {
            Ok(sentence) => (sentence, None),
            Err(error) => (Sentence::default(), Some(error)),
        });
        let (read, errors): (Vec<_>, Vec<_>) = read.unzip();
        self.states.map_posteriors(&read, |idx, posterior| match &errors[idx] {
            Some(error) => Err(error.clone()),
            None => tagger.tagged(sentences[idx].words, posterior, outputs),
        })
    }
}

impl GpuTagger for HmmTaggerOnGpu<'_> {
    fn tag_all_with(
        &mut self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Result<Vec<Result<Tagged, TagError>>, DeviceError> {
        if outputs.n_best > 0 {
            return Ok(vec![Err(TagError::NoSequences); sentences.len()]);
        }
        let mut tagged = Vec::with_capacity(sentences.len());
        for part in TagInput::parts(sentences, max_tokens(self.tagger.hmm.space.k)) {
            tagged.extend(self.tag_part(part, outputs)?);
        }
        Ok(tagged)
    }
}

/// The ids of the words of a sentence and of its end. Unknown words are `<unk>` with emission probabilities of their own.
pub(crate) fn sentence(
    tagger: &HmmTagger<'_>,
    words: &[&str],
) -> Result<Sentence<'static>, TagError> {
    let (mut ids, mut own) = (Vec::with_capacity(words.len() + 1), Vec::new());
    for (token, &word) in words.iter().enumerate() {
        ids.push(tagger.known(word).unwrap_or(WordId::UNK));
        if ids[token] == WordId::UNK {
            let unknown = || TagError::UnknownWord { word: word.to_owned() };
            let (_, probabilities) = tagger.unknown(word).ok_or_else(unknown)?;
            own.push((token, probabilities.into_owned()));
        }
    }
    ids.extend(tagger.hmm.can_emit(WordId::EOS).then_some(WordId::EOS));
    Ok(Sentence { words: Cow::Owned(ids), own })
}
