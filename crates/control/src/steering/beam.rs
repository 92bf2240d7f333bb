//! Beam search.

use super::steerer::{Buffers, Generated, Steerer};
use crate::error::ControlError;
use crate::guide::Reading;
use latens_corpus::WordId;
use latens_model::Scorer;

/// The beginning of a text.
struct Hypothesis<'a> {
    words: Vec<WordId>,
    reading: Reading,
    /// The language model after the words, if it has read them already.
    scorer: Option<Box<dyn Scorer + 'a>>,
    /// ln p_LM of the words.
    log_prob: f64,
}

/// A word that may follow a hypothesis.
struct Candidate {
    hypothesis: usize,
    word: WordId,
    log_prob: f64,
    /// ln p_LM(text) + ρ ln p_HMM(α | text).
    score: f64,
}

impl<'a> Steerer<'a> {
    /// Searches for the `n` texts with the highest probability under the language model, best first. Keeps the `width` best
    /// beginnings of each length, by ln p_LM(text) + ρ ln p_HMM(α | text).
    ///
    /// Returns at least one text, and fewer than `n` if the search finds fewer.
    ///
    /// # Panics
    /// If `width` or `n` is zero.
    pub fn beam(&self, width: usize, n: usize) -> Result<Vec<Generated>, ControlError> {
        assert!(width > 0 && n > 0, "a beam without hypotheses");
        let mut live = vec![Hypothesis {
            words: vec![],
            reading: self.start.clone(),
            scorer: self.scorer(&[]),
            log_prob: 0.0,
        }];
        let (mut finished, mut buffers) = (Vec::<Generated>::new(), Buffers::default());
        let mut dead_end = None;
        while !live.is_empty() {
            let mut candidates: Vec<Candidate> = Vec::new();
            for (idx, hypothesis) in live.iter_mut().enumerate() {
                if hypothesis.scorer.is_none() {
                    hypothesis.scorer = self.scorer(&hypothesis.words);
                }
                self.next_words(&hypothesis.reading, &mut hypothesis.scorer, &mut buffers);
                let before = candidates.len();
                let steered = buffers.steered.iter().enumerate();
                for (word, &step) in steered.filter(|(_, step)| **step > f64::NEG_INFINITY) {
                    let log_prob = hypothesis.log_prob + buffers.model[word];
                    let score = hypothesis.log_prob + step;
                    let word = WordId::from(word);
                    candidates.push(Candidate { hypothesis: idx, word, log_prob, score });
                }
                if candidates.len() == before {
                    dead_end = Some(self.dead_end(&hypothesis.words, &buffers.next));
                }
            }
            let (ended, mut going): (Vec<_>, Vec<_>) =
                candidates.into_iter().partition(|candidate| candidate.word == WordId::EOS);
            finished.extend(ended.iter().map(|candidate| Generated {
                words: live[candidate.hypothesis].words.clone(),
                log_prob: candidate.log_prob,
            }));
            finished.sort_by(|a, b| b.log_prob.total_cmp(&a.log_prob));
            finished.truncate(n);
            // The probability of a text decreases with every word.
            let worst = finished.get(n - 1).map_or(f64::NEG_INFINITY, |found| found.log_prob);
            going.retain(|candidate| candidate.log_prob > worst);
            going.sort_by(|a, b| b.score.total_cmp(&a.score));
            going.truncate(width);
            live = self.extended(live, &going);
        }
        match dead_end {
            Some(error) if finished.is_empty() => Err(error),
            _ => Ok(finished),
        }
    }

    /// Appends the words of candidates. The first successor of a hypothesis takes over its scorer.
    fn extended(
        &self,
        mut live: Vec<Hypothesis<'a>>,
        candidates: &[Candidate],
    ) -> Vec<Hypothesis<'a>> {
        let extend = |candidate: &Candidate| {
            let from = &mut live[candidate.hypothesis];
            let mut scorer = from.scorer.take();
            scorer.iter_mut().for_each(|scorer| _ = scorer.read(candidate.word));
            let (mut words, mut reading) = (from.words.clone(), from.reading.clone());
            words.push(candidate.word);
            self.guide.read(&mut reading, candidate.word);
            Hypothesis { words, reading, scorer, log_prob: candidate.log_prob }
        };
        candidates.iter().map(extend).collect()
    }
}
