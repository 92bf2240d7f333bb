//! The states of a text.

use crate::model::Hmm;
use latens_corpus::WordId;
use latens_model::Matrix;
use thiserror::Error;

/// The model gives a text a probability of 0.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImpossibleText {
    /// No state emits a word.
    #[error("no state can emit the word `{word}`")]
    Word {
        /// The word, after preprocessing.
        word: String,
    },
    /// No path of states emits all words.
    #[error("no path of states can emit the text")]
    Path,
}

impl Hmm {
    /// The posterior of the states, given the whole text: one row per token, one column per state.
    ///
    /// The text is one sentence. Words outside the vocabulary count as `<unk>`.
    pub fn posterior(&self, text: &str) -> Result<Matrix<f32>, ImpossibleText> {
        let sentence = self.sentence(text)?;
        let posterior = self.posterior_of(&sentence).ok_or(ImpossibleText::Path)?;
        let (n_tokens, n_states) = (posterior.n_rows() - 1, posterior.n_columns());
        let mut values = posterior.into_vec();
        values.truncate(n_tokens * n_states);
        Ok(Matrix::from_vec(n_tokens, n_states, values))
    }

    /// The most likely state of every token under [`Hmm::posterior`].
    pub fn states(&self, text: &str) -> Result<Vec<u32>, ImpossibleText> {
        let sentence = self.sentence(text)?;
        let posterior = self.sentence_posterior(&sentence).ok_or(ImpossibleText::Path)?;
        let best = |at: usize| {
            let first = (0, f32::NEG_INFINITY);
            posterior.row(at).fold(first, |best, next| if next.1 > best.1 { next } else { best }).0
        };
        Ok((0..sentence.len() - 1).map(best).collect())
    }

    /// The most likely path of states through the text (Viterbi), one state per token.
    ///
    /// The text is one sentence. Words outside the vocabulary count as `<unk>`.
    pub fn viterbi(&self, text: &str) -> Result<Vec<u32>, ImpossibleText> {
        let mut path = self.viterbi_of(&self.sentence(text)?).ok_or(ImpossibleText::Path)?;
        path.pop();
        Ok(path)
    }

    /// The words of a text and `<eos>`.
    fn sentence(&self, text: &str) -> Result<Vec<WordId>, ImpossibleText> {
        let (mut ids, mut impossible) = (Vec::new(), None);
        self.lexicon.preprocessing.words(text, |word| {
            let id = self.lexicon.vocab.id(word);
            if impossible.is_none() && !self.can_emit(id) {
                impossible = Some(word.to_owned());
            }
            ids.push(id);
        });
        match impossible {
            Some(word) => Err(ImpossibleText::Word { word }),
            None => {
                ids.push(WordId::EOS);
                Ok(ids)
            }
        }
    }
}
