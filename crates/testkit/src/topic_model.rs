//! Checks of topic models.

use latens_corpus::{Sentences, WordId};
use latens_model::TopicModel;
use std::collections::HashSet;

/// Tolerance for the sum of a mixture in `f32`.
const TOLERANCE: f64 = 1e-5;
const N_TOP_WORDS: usize = 10;

/// Checks the contract of a topic model on some documents (here the sentences of a text), on an empty
/// one and on one of an unknown word:
///
/// - A mixture has one non-negative entry per topic and sums to one.
/// - The mixtures of many documents are those of each document.
/// - Top words are different words, best first. Asking for fewer gives the first of them; asking for
///   more gives more, unless the topic has no more.
/// - A topic that makes up more than half of a document has top words, and so has at least one topic.
///
/// # Panics
/// If the check fails.
pub fn check_topic_model(model: &dyn TopicModel, documents: &Sentences) {
    assert!(!documents.is_empty(), "the check needs at least one document");
    let others: [&[WordId]; 2] = [&[], &[WordId::UNK]];
    let mut dominates = vec![false; model.n_topics()];
    let documents: Vec<&[WordId]> = documents.iter().chain(others).collect();
    let mixtures: Vec<Vec<f32>> =
        documents.iter().map(|document| model.mixture(document)).collect();
    mixtures.iter().for_each(|mixture| check_mixture(mixture, model.n_topics()));
    let together = model.mixtures(&documents);
    assert_eq!(together.n_rows(), documents.len(), "`mixtures` returns one row per document");
    for (mixture, row) in mixtures.iter().zip(together.rows()) {
        assert_eq!(mixture, row, "`mixtures` gives another mixture than `mixture`");
        dominates.iter_mut().zip(mixture).for_each(|(any, &share)| *any |= share > 0.5);
    }
    let n_top_words = (0..model.n_topics()).map(|topic| check_top_words(model, topic));
    let n_top_words: Vec<usize> = n_top_words.collect();
    assert!(n_top_words.iter().any(|&n| n > 0), "no topic has any top words");
    // A topic without tokens may have no words, but it cannot be the main topic of a document.
    for (topic, (&n, dominates)) in n_top_words.iter().zip(dominates).enumerate() {
        assert!(n > 0 || !dominates, "topic {topic} dominates a document but has no top words");
    }
}

fn check_mixture(mixture: &[f32], n_topics: usize) {
    let length = mixture.len();
    assert_eq!(length, n_topics, "a mixture has {length} entries for {n_topics} topics");
    assert!(mixture.iter().all(|&share| share >= 0.0), "a share is negative or NaN: {mixture:?}");
    let sum: f64 = mixture.iter().map(|&share| f64::from(share)).sum();
    assert!((sum - 1.0).abs() <= TOLERANCE, "a mixture sums to {sum}");
}

/// Returns the number of top words, at most [`N_TOP_WORDS`].
fn check_top_words(model: &dyn TopicModel, topic: usize) -> usize {
    let top = model.top_word_ids(topic, N_TOP_WORDS);
    let n = top.len();
    assert!(n <= N_TOP_WORDS, "asked for {N_TOP_WORDS}, got {n} top words of topic {topic}");
    let sorted = top.is_sorted_by(|a, b| a.1 >= b.1) && top.iter().all(|(_, p)| !p.is_nan());
    assert!(sorted, "the top words of topic {topic} are not sorted: {top:?}");
    let different = top.iter().map(|&(word, _)| word).collect::<HashSet<_>>().len();
    assert_eq!(different, n, "a top word of topic {topic} occurs twice: {top:?}");
    if n < N_TOP_WORDS {
        let more = model.top_word_ids(topic, 2 * N_TOP_WORDS).len();
        assert_eq!(more, n, "topic {topic} has {more} top words, but gave only {n}");
    }
    let fewer = model.top_word_ids(topic, n / 2);
    assert_eq!(fewer, top[..n / 2], "the first top words of topic {topic} depend on their number");
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{complaint, zipfian_corpus};

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        ShortMixture,
        Negative,
        SumsToMore,
        NanForEmpty,
        NotSorted,
        Twice,
        TooMany,
        OtherWhenFewer,
        TooFew,
        NoTopWords,
        MainTopicWithoutWords,
    }

    /// The main topic of a document is 0 if its length is even, else 1.
    struct Parity(Fault);

    impl TopicModel for Parity {
        fn n_topics(&self) -> usize {
            2
        }

        fn mixture(&self, document: &[WordId]) -> Vec<f32> {
            let even = if document.len().is_multiple_of(2) { 0.75 } else { 0.25 };
            match self.0 {
                Fault::ShortMixture => vec![1.0],
                Fault::Negative => vec![-0.5, 1.5],
                Fault::SumsToMore => vec![even, 1.01 - even],
                Fault::NanForEmpty if document.is_empty() => vec![f32::NAN; 2],
                _ => vec![even, 1.0 - even],
            }
        }

        fn top_word_ids(&self, topic: usize, n: usize) -> Vec<(WordId, f32)> {
            let word = |i: usize| (WordId::from(2 * i + topic), 0.5f32.powi(i as i32));
            let n = match self.0 {
                Fault::TooMany => n + 1,
                Fault::TooFew => n / 2,
                Fault::NoTopWords => 0,
                Fault::MainTopicWithoutWords if topic == 1 => 0,
                _ => n,
            };
            let mut words: Vec<_> = (0..n).map(word).collect();
            match self.0 {
                Fault::NotSorted => words.reverse(),
                Fault::Twice if n > 1 => words[1].0 = words[0].0,
                Fault::OtherWhenFewer if n > 0 && n < N_TOP_WORDS => words[0].0 = WordId(99),
                _ => {}
            }
            words
        }
    }

    fn check(fault: Fault) {
        check_topic_model(&Parity(fault), &zipfian_corpus(20, 30, 1).sentences);
    }

    #[test]
    fn a_correct_model_passes() {
        check(Fault::None);
    }

    #[test]
    fn every_fault_is_detected() {
        let faults = [
            (Fault::ShortMixture, "1 entries for 2 topics"),
            (Fault::Negative, "negative"),
            (Fault::SumsToMore, "sums to 1.0"),
            (Fault::NanForEmpty, "NaN"),
            (Fault::NotSorted, "not sorted"),
            (Fault::Twice, "twice"),
            (Fault::TooMany, "got 11 top words"),
            (Fault::OtherWhenFewer, "depend on their number"),
            (Fault::TooFew, "has 10 top words, but gave only 5"),
            (Fault::NoTopWords, "no topic has any top words"),
            (Fault::MainTopicWithoutWords, "topic 1 dominates a document"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }
}
