//! The model as a tagger (Chiu and Rush 2020, §5.2 of the draft on tagging).

#[cfg(feature = "cuda")]
use crate::fitted::on_gpu::tagger::HmmTaggerOnGpu;
use crate::fitted::posterior::{Emitters, Posterior};
use crate::fitted::together::max_tokens;
use crate::fitted::unknown_words::UnknownWords;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use crate::tables::tag_table::TagTable;
use latens_corpus::WordId;
use latens_math::dot;
use latens_model::{
    DeviceError, GpuTagger, Matrix, TagError, TagInput, TagOutputs, Tagged, Tagger,
};
use rayon::prelude::*;

/// A tagger that uses a model of words and tags.
pub struct HmmTagger<'a> {
    pub(crate) hmm: &'a Hmm,
    pub(crate) tags: &'a TagTable,
    unknown_words: UnknownWords,
}

impl Hmm {
    /// The tagger of a model that was trained with tags.
    pub fn tagger(&self) -> Option<HmmTagger<'_>> {
        let tags = self.tags.as_ref()?;
        Some(HmmTagger { hmm: self, tags, unknown_words: UnknownWords::new(self) })
    }
}

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

    /// The outputs for a sentence, given the posterior of its states; without one, its words are tagged independently.
    pub(crate) fn tagged(
        &self,
        words: &[&str],
        posterior: Option<Posterior<'_>>,
        outputs: TagOutputs,
    ) -> Result<Tagged, TagError> {
        let posterior = match posterior {
            Some(posterior) => posterior,
            None => self.without_context(&self.emitters_of(words)?),
        };
        let tags = (0..words.len()).map(|at| self.best_tag(&posterior, at)).collect();
        let marginals = outputs.marginals.then(|| self.marginals(&posterior, words.len()));
        Ok(Tagged::new(tags, marginals, Vec::new()))
    }

    /// The posterior of the tags of the first words of a sentence, given that of the states.
    fn marginals(&self, posterior: &Posterior<'_>, n_words: usize) -> Matrix<f32> {
        let mut marginals = Matrix::zeros(n_words, self.tags.len());
        for row in 0..n_words {
            let scores = self.tag_scores(posterior, row);
            let sum: f32 = scores.iter().sum();
            for (tag, score) in scores.into_iter().enumerate() {
                marginals[(row, tag)] = score / sum;
            }
        }
        marginals
    }

    /// The posterior of the states of each word, and of the end of the sentence.
    fn states_of(&self, words: &[&str]) -> Result<Posterior<'_>, TagError> {
        let emitters = self.emitters_of(words)?;
        let chain = self.hmm.chain_of(emitters.iter().cloned());
        let posterior = self.hmm.chain_posterior(chain);
        Ok(posterior.unwrap_or_else(|| self.without_context(&emitters)))
    }

    /// The states of each word, and of the end of the sentence.
    pub(crate) fn emitters_of(&self, words: &[&str]) -> Result<Vec<Emitters<'_>>, TagError> {
        let mut emitters = Vec::with_capacity(words.len() + 1);
        for &word in words {
            let unknown = || TagError::UnknownWord { word: word.to_owned() };
            emitters.push(self.emitters(word).ok_or_else(unknown)?);
        }
        emitters.extend(self.hmm.emitters(WordId::EOS));
        Ok(emitters)
    }

    fn emitters(&self, word: &str) -> Option<Emitters<'_>> {
        self.known(word).and_then(|id| self.hmm.emitters(id)).or_else(|| self.unknown(word))
    }

    /// The id of a word, if it is in the vocabulary and a state emits it.
    pub(crate) fn known(&self, word: &str) -> Option<WordId> {
        let id =
            self.hmm.lexicon.vocab.get(&self.hmm.lexicon.preprocessing.normalize_word(word))?;
        (id != WordId::UNK && self.hmm.can_emit(id)).then_some(id)
    }

    /// The states of a word that is not [`HmmTagger::known`].
    pub(crate) fn unknown(&self, word: &str) -> Option<Emitters<'_>> {
        let word = self.hmm.lexicon.preprocessing.normalize_word(word);
        self.unknown_words.emitters(self.hmm, &word)
    }

    /// The states of each word, weighted by their emission probabilities.
    fn without_context<'e>(&self, emitters: &[Emitters<'e>]) -> Posterior<'e> {
        let mut weights = Vec::new();
        for (_, local) in emitters {
            let can_emit = local.iter().any(|&p| p > 0.0);
            weights.extend(local.iter().map(|&p| if can_emit { p } else { 1.0 }));
        }
        let states = emitters.iter().map(|(states, _)| *states).collect();
        Posterior::new(self.hmm.space.k, states, weights)
    }

    /// Σ_z g(y|z) p(z) for each tag y, given the posterior of a word.
    fn tag_scores(&self, posterior: &Posterior<'_>, word: usize) -> Vec<f32> {
        let (n, k) = (self.hmm.space.n_states(), self.hmm.space.k);
        let (states, p) = posterior.states(word);
        let tags = self.tags.emission.chunks_exact(n);
        match states {
            StateSet::Cluster(cluster) => latens_math::vectorized(
                #[inline(always)]
                || tags.clone().map(|g| dot::<64, _>(&g[cluster * k..][..k], p)).collect(),
            ),
            StateSet::List(states) => {
                let score = |g: &[f32]| states.iter().zip(p).map(|(&z, p)| p * g[z as usize]).sum();
                tags.map(score).collect()
            }
        }
    }

    fn best_tag(&self, posterior: &Posterior<'_>, word: usize) -> u32 {
        let scores = self.tag_scores(posterior, word);
        let best =
            scores.into_iter().enumerate().fold((0, f32::NEG_INFINITY), |best, (tag, score)| {
                if score > best.1 { (tag, score) } else { best }
            });
        best.0 as u32
    }
}
