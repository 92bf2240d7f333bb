//! The exam of a topic model.

use latens_corpus::{Sentences, WordId};
use latens_model::TopicModel;
use std::collections::HashSet;

/// How far the sum of a mixture in `f32` may be from one.
const TOLERANCE: f64 = 1e-5;
const N_TOP_WORDS: usize = 10;

/// Whether a topic model keeps its promises on some documents (here the sentences of a text) and on
/// an empty one: mixtures have an entry a topic, none negative, and sum to one; top words are
/// different words, best first, and asking for fewer gives the first of them.
///
/// # Panics
/// If it does not.
pub fn check_topic_model(model: &dyn TopicModel, documents: &Sentences) {
    assert!(!documents.is_empty(), "a model cannot be checked on no text");
    let others: [&[WordId]; 2] = [&[], &[WordId::UNK]];
    for document in documents.iter().chain(others) {
        check_mixture(&model.mixture(document), model.n_topics());
    }
    for topic in 0..model.n_topics() {
        check_top_words(model, topic);
    }
}

fn check_mixture(mixture: &[f32], n_topics: usize) {
    let length = mixture.len();
    assert_eq!(length, n_topics, "a mixture of {length} entries for {n_topics} topics");
    assert!(mixture.iter().all(|&share| share >= 0.0), "a share is negative or NaN: {mixture:?}");
    let sum: f64 = mixture.iter().map(|&share| f64::from(share)).sum();
    assert!((sum - 1.0).abs() <= TOLERANCE, "a mixture sums to {sum}");
}

fn check_top_words(model: &dyn TopicModel, topic: usize) {
    let top = model.top_words(topic, N_TOP_WORDS);
    let n = top.len();
    // A topic without tokens may have no words.
    assert!(n <= N_TOP_WORDS, "{n} top words of topic {topic}, of {N_TOP_WORDS}");
    let sorted = top.is_sorted_by(|a, b| a.1 >= b.1) && top.iter().all(|(_, p)| !p.is_nan());
    assert!(sorted, "the top words of topic {topic} are not sorted: {top:?}");
    let different = top.iter().map(|&(word, _)| word).collect::<HashSet<_>>().len();
    assert_eq!(different, n, "a top word of topic {topic} occurs twice: {top:?}");
    let fewer = model.top_words(topic, n / 2);
    assert_eq!(fewer, top[..n / 2], "fewer top words of topic {topic} are other words");
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
    }

    /// The topic of a document is whether its length is even.
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

        fn top_words(&self, topic: usize, n: usize) -> Vec<(WordId, f32)> {
            let word = |i: usize| (WordId::from(2 * i + topic), 0.5f32.powi(i as i32));
            let n = if self.0 == Fault::TooMany { n + 1 } else { n };
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
    fn every_fault_is_found() {
        let faults = [
            (Fault::ShortMixture, "1 entries for 2 topics"),
            (Fault::Negative, "negative"),
            (Fault::SumsToMore, "sums to 1.0"),
            (Fault::NanForEmpty, "NaN"),
            (Fault::NotSorted, "not sorted"),
            (Fault::Twice, "twice"),
            (Fault::TooMany, "11 top words"),
            (Fault::OtherWhenFewer, "other words"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }
}
