//! The contributions of features to the scores of the tags of a word.

use super::tagger::FeatureTagger;
use crate::tagging::features::template::attributes;
use latens_model::TagError;

/// The weights of one feature of a word, or of all features of one encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The attribute, e.g., `w0=Monday`, or the name of the encoder.
    pub name: String,
    /// What it adds to the score of each tag of [`FeatureTagger::internal_tags`].
    pub scores: Vec<f32>,
}

impl FeatureTagger {
    /// The parts whose sum is the score of each tag of the word `at` of a sentence, before neighboring tags are
    /// considered: one per known attribute and one per encoder. Empty for taggers with hidden units, whose scores are not
    /// such sums.
    ///
    /// # Panics
    /// If `at` is out of range.
    pub fn contributions(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        at: usize,
    ) -> Result<Vec<Contribution>, TagError> {
        assert!(at < words.len(), "word {at} is out of range: there are {}", words.len());
        self.check_pos(pos)?;
        if self.params.has_network() {
            return Ok(Vec::new());
        }
        let normal = self.normalized(words);
        let words: Vec<&str> = normal.iter().map(|word| &**word).collect();
        let n_tags = self.tags.internal.len();
        let mut found = Vec::new();
        if self.params.has_lexical() {
            let pos = pos.filter(|_| self.params.pos_column.is_some());
            for name in attributes(&words, pos).swap_remove(at) {
                let mut scores = vec![0.0; n_tags];
                self.weights.add(&name, &mut scores);
                found.push(Contribution { name, scores });
            }
        }
        for encoder in &self.encoders {
            let mut scores = vec![0.0; words.len() * n_tags];
            encoder.add(&encoder.rows(&words), self.params.window, n_tags, &mut scores);
            let scores = scores[at * n_tags..][..n_tags].to_vec();
            found.push(Contribution { name: encoder.info.name.clone(), scores });
        }
        found.retain(|contribution| contribution.scores.iter().any(|&score| score != 0.0));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::TaggedSentences;
    use latens_model::Fit;

    #[test]
    fn contributions_add_up_to_the_scores_of_the_tags() {
        let text = TaggedSentences::from_rows([
            [("the", "D"), ("dog", "N"), ("barks", "V")],
            [("a", "D"), ("cat", "N"), ("sleeps", "V")],
        ])
        .unwrap();
        let tagger = FeatureTagger::params().n_iterations(20).fit(&text).unwrap();
        let words = ["the", "cat", "runs"];
        let scores = tagger.scores(&words, None).unwrap();
        for (at, scores) in scores.chunks_exact(3).enumerate() {
            let parts = tagger.contributions(&words, None, at).unwrap();
            assert!(parts.iter().any(|part| part.name.starts_with("w0=")) || at == 2);
            for (tag, &score) in scores.iter().enumerate() {
                let sum: f32 = parts.iter().map(|part| part.scores[tag]).sum();
                assert!((sum - score).abs() < 1e-4, "{sum} {score}");
            }
        }
    }
}
