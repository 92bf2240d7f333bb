//! The model as a tagger (Chiu and Rush 2020, §5.2 of the draft on tagging).

use crate::fitted::posterior::SparsePosterior;
use crate::fitted::unknown_words::UnknownWords;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use crate::tables::tag_table::TagTable;
use latens_corpus::WordId;
use latens_model::{Matrix, TagError, Tagger};
use std::borrow::Cow;

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
        let rows = self.states_of(words)?;
        Ok(rows[..words.len()].iter().map(|row| self.best_tag(row)).collect())
    }

    /// Σ_z g(y|z) p̂(z_t | w): the posterior of the tags given the words alone.
    fn tag_marginals(&self, words: &[&str], _: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        let rows = self.states_of(words)?;
        let mut marginals = Matrix::zeros(words.len(), self.tags.len());
        for (row, states) in rows[..words.len()].iter().enumerate() {
            let scores: Vec<f32> = self.tag_scores(states).collect();
            let sum: f32 = scores.iter().sum();
            for (tag, score) in scores.into_iter().enumerate() {
                marginals[(row, tag)] = score / sum;
            }
        }
        Ok(marginals)
    }

    fn n_seen(&self, word: &str) -> u64 {
        let word = self.hmm.lexicon.preprocessing.normalize(word);
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
    /// The posterior of the states of each word, and of the end of the sentence.
    fn states_of(&self, words: &[&str]) -> Result<SparsePosterior, TagError> {
        let mut emitters = Vec::with_capacity(words.len() + 1);
        for &word in words {
            let unknown = || TagError::UnknownWord { word: word.to_owned() };
            emitters.push(self.emitters(word).ok_or_else(unknown)?);
        }
        emitters.extend(self.hmm.emitters(WordId::EOS));
        let chain = self.hmm.chain_of(emitters.iter().cloned());
        Ok(self.hmm.chain_posterior(&chain).unwrap_or_else(|| {
            emitters.iter().map(|(states, local)| self.without_context(*states, local)).collect()
        }))
    }

    fn emitters(&self, word: &str) -> Option<(StateSet<'_>, Cow<'_, [f32]>)> {
        let word = self.hmm.lexicon.preprocessing.normalize(word);
        let id = self.hmm.lexicon.vocab.get(&word).filter(|&id| id != WordId::UNK);
        id.and_then(|id| self.hmm.emitters(id))
            .or_else(|| self.unknown_words.emitters(self.hmm, &word))
    }

    /// The states of a word, weighted by their emission probabilities.
    fn without_context(&self, states: StateSet<'_>, local: &[f32]) -> Vec<(u32, f32)> {
        let states = states.list(self.hmm.space.k).into_owned();
        let can_emit = local.iter().any(|&p| p > 0.0);
        let weight = |&p: &f32| if can_emit { p } else { 1.0 };
        states.into_iter().zip(local.iter().map(weight)).collect()
    }

    /// Σ_z g(y|z) p(z) for each tag y.
    fn tag_scores<'p>(&'p self, posterior: &'p [(u32, f32)]) -> impl Iterator<Item = f32> + 'p {
        let n = self.hmm.space.n_states();
        let score = move |tag: usize| -> f32 {
            let g = &self.tags.emission[tag * n..(tag + 1) * n];
            posterior.iter().map(|&(state, p)| p * g[state as usize]).sum()
        };
        (0..self.tags.len()).map(score)
    }

    fn best_tag(&self, posterior: &[(u32, f32)]) -> u32 {
        let scores = self.tag_scores(posterior);
        let best = scores.enumerate().fold((0, f32::NEG_INFINITY), |best, (tag, score)| {
            if score > best.1 { (tag, score) } else { best }
        });
        best.0 as u32
    }
}
