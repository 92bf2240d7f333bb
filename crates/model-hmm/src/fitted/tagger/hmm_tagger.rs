//! The model as a tagger (Chiu and Rush 2020, §5.2 of the draft on tagging).

use crate::fitted::posterior::{Emitters, Posterior};
use crate::fitted::unknown_words::UnknownWords;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use crate::tables::tag_table::TagTable;
use latens_corpus::WordId;
use latens_math::dot;
use latens_model::{Matrix, TagError, TagOutputs, Tagged};

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

impl HmmTagger<'_> {
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
    pub(super) fn marginals(&self, posterior: &Posterior<'_>, n_words: usize) -> Matrix<f32> {
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
    pub(super) fn states_of(&self, words: &[&str]) -> Result<Posterior<'_>, TagError> {
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

    pub(super) fn best_tag(&self, posterior: &Posterior<'_>, word: usize) -> u32 {
        let scores = self.tag_scores(posterior, word);
        let best =
            scores.into_iter().enumerate().fold((0, f32::NEG_INFINITY), |best, (tag, score)| {
                if score > best.1 { (tag, score) } else { best }
            });
        best.0 as u32
    }
}
