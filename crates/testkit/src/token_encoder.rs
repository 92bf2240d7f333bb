//! Checks of token encoders.

use latens_corpus::{Sentences, WordId};
use latens_model::{FeatureRows, TokenEncoder};

/// Checks the contract of a token encoder on a text and on unseen sentences.
///
/// There must be one row per token, with columns below [`TokenEncoder::n_features`] and finite values.
/// Encoding a sentence again must give the same rows and leave earlier rows unchanged. Encoding all sentences together
/// must give the same rows up to rounding.
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
    let sentences: Vec<&[WordId]> = sentences.iter().chain(unseen).collect();
    check_together(encoder, &sentences);
}

/// Tolerance for values of sentences that are encoded together.
const TOLERANCE: f32 = 1e-4;

fn check_together(encoder: &dyn TokenEncoder, sentences: &[&[WordId]]) {
    let together = encoder.encode_all(sentences);
    let n = together.len();
    assert_eq!(n, sentences.len(), "`encode_all` returns {n} of {} sentences", sentences.len());
    for (sentence, rows) in sentences.iter().zip(&together) {
        check_rows(encoder, sentence, rows);
        let mut alone = FeatureRows::new();
        encoder.encode(sentence, &mut alone);
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
        let is_same = rows.offsets() == alone.offsets()
            && rows.columns() == alone.columns()
            && rows.values().iter().zip(alone.values()).all(is_near);
        assert!(is_same, "`encode_all` gives other features than `encode` in {sentence:?}");
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
        LosesSentences,
        MixesSentences,
        Shifts,
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

        fn encode_all(&self, sentences: &[&[WordId]]) -> Vec<FeatureRows> {
            let mut sentences = sentences.to_vec();
            match self.fault {
                Fault::LosesSentences => sentences.truncate(3),
                Fault::MixesSentences => sentences.sort_by_key(|sentence| sentence.len()),
                _ => {}
            }
            let encode = |sentence: &&[WordId]| {
                let mut rows = FeatureRows::new();
                let shift = u32::from(self.fault == Fault::Shifts);
                let words: Vec<WordId> = sentence.iter().map(|w| WordId(w.0 + shift)).collect();
                self.encode(&words, &mut rows);
                rows
            };
            sentences.iter().map(encode).collect()
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
            (Fault::LosesSentences, "returns 3 of"),
            (Fault::MixesSentences, "rows for the"),
            (Fault::Shifts, "other features than `encode`"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }
}
