//! The role of a tagger.

use super::hmm_tagger::HmmTagger;
#[cfg(feature = "cuda")]
use super::on_gpu::HmmTaggerOnGpu;
use crate::fitted::together::max_tokens;
use latens_corpus::WordId;
use latens_model::{
    DeviceError, GpuTagger, Matrix, TagError, TagInput, TagOutputs, Tagged, Tagger,
};
use rayon::prelude::*;

impl Tagger for HmmTagger<'_> {
    fn tags(&self) -> &[String] {
        &self.tags.names
    }

    /// Tags in two steps, because the exact joint decoding is too slow: first the posterior of states p̂(z_t | w) given
    /// the words alone, then argmax_y Σ_z g(y|z) p̂(z) for each word.
    ///
    /// The words of an impossible sentence are tagged independently.
    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        let posterior = self.states_of(words)?;
        Ok((0..words.len()).map(|at| self.best_tag(&posterior, at)).collect())
    }

    fn tag_all_with(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        if outputs.n_best > 0 {
            return vec![Err(TagError::NoSequences); sentences.len()];
        }
        // Unknown words have emission probabilities of their own, so that only some sentences have theirs at a time.
        let parts = TagInput::parts(sentences, max_tokens(self.hmm.space.k));
        parts.flat_map(|part| self.tag_part(part, outputs)).collect()
    }

    fn on_gpu(&self) -> Option<Result<Box<dyn GpuTagger + '_>, DeviceError>> {
        #[cfg(feature = "cuda")]
        return Some(
            HmmTaggerOnGpu::open(self)
                .map(|on_gpu| -> Box<dyn GpuTagger + '_> { Box::new(on_gpu) }),
        );
        #[cfg(not(feature = "cuda"))]
        Some(Err(DeviceError::built_without_cuda()))
    }

    /// Σ_z g(y|z) p̂(z_t | w): the posterior of the tags given the words alone.
    fn tag_marginals(&self, words: &[&str], _: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        let posterior = self.states_of(words)?;
        Ok(self.marginals(&posterior, words.len()))
    }

    fn n_seen(&self, word: &str) -> u64 {
        let word = self.hmm.lexicon.preprocessing.normalize_word(word);
        if let Some(number) = self.tags.rare_words.find(&word) {
            return self.tags.rare_counts[number as usize];
        }
        match self.hmm.lexicon.vocab.id(&word) {
            WordId::UNK => 0,
            id => self.hmm.lexicon.vocab.count(id),
        }
    }
}

impl HmmTagger<'_> {
    /// Tags sentences whose posteriors fit in memory.
    fn tag_part(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        let emitters =
            sentences.par_iter().map(|sentence| match self.emitters_of(sentence.words) {
                Ok(emitters) => (Some(emitters), None),
                Err(error) => (None, Some(error)),
            });
        let (emitters, errors): (Vec<_>, Vec<_>) = emitters.unzip();
        self.hmm.map_posteriors(emitters, |idx, posterior| {
            let words = sentences[idx].words;
            match &errors[idx] {
                Some(error) => Err(error.clone()),
                None => self.tagged(words, posterior, outputs),
            }
        })
    }
}
