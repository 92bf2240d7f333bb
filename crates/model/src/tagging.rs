//! What taggers compute for many sentences.

use latens_math::Matrix;

/// A sentence to tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagInput<'a> {
    /// Words before preprocessing.
    pub words: &'a [&'a str],
    /// The sentence's values of [`Tagger::pos_column`](crate::Tagger::pos_column).
    pub pos: Option<&'a [&'a str]>,
}

impl<'a> TagInput<'a> {
    /// Sentences without parts of speech.
    pub fn of_words(sentences: &'a [Vec<&'a str>]) -> Vec<TagInput<'a>> {
        sentences.iter().map(|words| TagInput { words, pos: None }).collect()
    }

    /// Splits sentences into parts of at least one sentence and at most `max_tokens` tokens, in which ends of sentences count.
    pub fn parts<'s>(
        sentences: &'s [TagInput<'a>],
        max_tokens: usize,
    ) -> impl Iterator<Item = &'s [TagInput<'a>]> {
        let mut rest = sentences;
        std::iter::from_fn(move || {
            let mut n_tokens = 0;
            let fits = |sentence: &&TagInput<'_>| {
                n_tokens += sentence.words.len() + 1;
                n_tokens <= max_tokens
            };
            let n = rest.iter().take_while(fits).count().max(1);
            let (part, others) = rest.split_at_checked(n)?;
            rest = others;
            Some(part)
        })
    }
}

/// What to compute in addition to the tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagOutputs {
    /// Whether to compute the posterior probabilities of tags.
    pub marginals: bool,
    /// Number of most probable sequences; 0 for none.
    pub n_best: usize,
}

impl TagOutputs {
    /// Sets [`marginals`](field@Self::marginals).
    #[must_use]
    pub fn marginals(mut self, marginals: bool) -> TagOutputs {
        self.marginals = marginals;
        self
    }

    /// Sets [`n_best`](field@Self::n_best).
    #[must_use]
    pub fn n_best(mut self, n_best: usize) -> TagOutputs {
        self.n_best = n_best;
        self
    }
}

/// What a tagger computes for a sentence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tagged {
    /// The tag of each word; with most probable sequences, those of the first one.
    pub tags: Vec<u32>,
    /// Posterior probability of each tag: one row per word. `None` unless [`TagOutputs::marginals`] is set.
    pub marginals: Option<Matrix<f32>>,
    /// The most probable sequences with their log probabilities, best first.
    pub n_best: Vec<(Vec<u32>, f64)>,
}

impl Tagged {
    /// The outputs for a sentence.
    pub fn new(
        tags: Vec<u32>,
        marginals: Option<Matrix<f32>>,
        n_best: Vec<(Vec<u32>, f64)>,
    ) -> Tagged {
        Tagged { tags, marginals, n_best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_long_as_allowed_and_cover_all_sentences() {
        let sentences = [2, 0, 1, 5, 0, 3, 1].map(|n| vec!["a"; n]);
        let sentences = TagInput::of_words(&sentences);
        let lengths = |max_tokens: usize| -> Vec<Vec<usize>> {
            let parts = TagInput::parts(&sentences, max_tokens);
            parts.map(|part| part.iter().map(|sentence| sentence.words.len()).collect()).collect()
        };
        assert_eq!(lengths(5), [vec![2, 0], vec![1], vec![5], vec![0, 3], vec![1]]);
        assert_eq!(lengths(100), [vec![2, 0, 1, 5, 0, 3, 1]]);
        assert_eq!(TagInput::parts(&[], 3).count(), 0);
    }
}
