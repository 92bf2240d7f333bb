//! Checks of token encoders.

use latens_corpus::{Sentences, WordId};
use latens_model::{FeatureRows, TokenEncoder};

/// Checks the contract of a token encoder on a text and on unseen sentences.
///
/// There must be one row per token, with columns below [`TokenEncoder::n_features`] and finite values.
/// Encoding a sentence again must give the same rows and leave earlier rows unchanged.
///
/// # Panics
/// If the check fails.
pub fn check_token_encoder(encoder: &dyn TokenEncoder, sentences: &Sentences) {
    assert!(!sentences.is_empty(), "the check needs at least one sentence");
    let unseen: [&[WordId]; 4] =
        [&[], &[WordId::UNK], &[WordId::EOS], &[WordId::UNK, WordId::UNK, WordId::EOS]];
    let mut all = FeatureRows::new();
    for sentence in sentences.iter().chain(unseen) {
        let mut alone = FeatureRows::new();
        encoder.encode(sentence, &mut alone);
        check_rows(encoder, sentence, &alone);
        let before = all.clone();
        encoder.encode(sentence, &mut all);
        check_appended(&before, &alone, &all);
    }
}

fn check_rows(encoder: &dyn TokenEncoder, sentence: &[WordId], rows: &FeatureRows) {
    let (n_rows, n_tokens, n_features) = (rows.len(), sentence.len(), encoder.n_features());
    assert_eq!(n_rows, n_tokens, "{n_rows} rows for the {n_tokens} tokens {sentence:?}");
    for (columns, values) in rows.iter() {
        for (&column, &value) in columns.iter().zip(values) {
            assert!((column as usize) < n_features, "column {column} of {n_features} features");
            assert!(value.is_finite(), "the value of column {column} is {value} in {sentence:?}");
        }
    }
}

fn check_appended(before: &FeatureRows, alone: &FeatureRows, all: &FeatureRows) {
    let kept = all.len() >= before.len() && before.iter().eq(all.iter().take(before.len()));
    assert!(kept, "`encode` changed earlier rows");
    let same = alone.iter().eq(all.iter().skip(before.len()));
    assert!(same, "encoding the same sentence again gives different features");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{complaint, zipfian_corpus};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        SkipsEnds,
        ColumnTooLarge,
        NotFinite,
        Clears,
        Drifts,
    }

    /// Two columns: the word id and zero.
    struct Ids {
        fault: Fault,
        n_calls: AtomicU32,
    }

    impl TokenEncoder for Ids {
        fn n_features(&self) -> usize {
            2
        }

        fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
            let n_calls = self.n_calls.fetch_add(1, Ordering::Relaxed);
            if self.fault == Fault::Clears {
                out.clear();
            }
            for &word in sentence {
                match self.fault {
                    Fault::SkipsEnds if word == WordId::EOS => {}
                    Fault::ColumnTooLarge => out.push_sparse([(2, 1.0)]),
                    Fault::NotFinite if word == WordId::UNK => out.push_sparse([(0, f32::NAN)]),
                    Fault::Drifts => out.push_sparse([(0, n_calls as f32)]),
                    _ => out.push_dense(&[word.0 as f32, 0.0]),
                }
            }
        }
    }

    fn check(fault: Fault) {
        let corpus = zipfian_corpus(20, 30, 1);
        check_token_encoder(&Ids { fault, n_calls: AtomicU32::new(0) }, &corpus.sentences);
    }

    #[test]
    fn a_correct_encoder_passes() {
        check(Fault::None);
    }

    #[test]
    fn every_fault_is_detected() {
        let faults = [
            (Fault::SkipsEnds, "rows for the"),
            (Fault::ColumnTooLarge, "column 2 of 2 features"),
            (Fault::NotFinite, "is NaN"),
            (Fault::Clears, "changed earlier rows"),
            (Fault::Drifts, "different features"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }
}
