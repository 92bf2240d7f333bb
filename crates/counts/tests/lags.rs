//! Compares lag counts with their definition.

mod common;

use common::{
    BUDGETS, Files, N_WORDS, budget, bytes_of, check_damage_is_detected,
    check_invalid_content_never_panics, corpus, count_lags, files, with_threads,
};
use latens_corpus::{Digits, Vocab, WordId};
use latens_counts::{Boundary, Budget, CountError, LagCounts, LagMatrix};
use proptest::prelude::*;
use std::ops::ControlFlow;

type Dense = Vec<Vec<u64>>;

fn dense(matrix: &LagMatrix) -> Dense {
    let mut rows = vec![vec![0; N_WORDS]; N_WORDS];
    for (a, row) in rows.iter_mut().enumerate() {
        matrix.row(a.into()).for_each(|(b, count)| row[b.index()] = count);
    }
    rows
}

/// N_k[a, b] = #{t : word a at t+k, word b at t}, for each stretch that pairs must not leave.
fn by_definition(files: &Files, lag: usize, boundary: Boundary) -> Dense {
    let sentences = |file: &Vec<Vec<u32>>| -> Vec<Vec<u32>> {
        file.iter().map(|sentence| [&sentence[..], &[WordId::EOS.0]].concat()).collect()
    };
    let stretches: Vec<Vec<u32>> = match boundary {
        Boundary::Stream => files.iter().map(|file| sentences(file).concat()).collect(),
        Boundary::Sentence => files.iter().flat_map(sentences).collect(),
    };
    let mut counts = vec![vec![0; N_WORDS]; N_WORDS];
    for stretch in stretches {
        for t in 0..stretch.len().saturating_sub(lag) {
            counts[stretch[t + lag] as usize][stretch[t] as usize] += 1;
        }
    }
    counts
}

fn boundaries() -> impl Strategy<Value = Boundary> {
    prop::sample::select(vec![Boundary::Stream, Boundary::Sentence])
}

proptest! {
    #[test]
    fn counts_agree_with_the_definition(files in files(), boundary in boundaries()) {
        for bytes in BUDGETS {
            let counts = count_lags(&files, 4, boundary, bytes);
            for lag in 1..=4 {
                let expected = by_definition(&files, lag, boundary);
                prop_assert_eq!(dense(counts.lag(lag)), expected);
            }
            let tokens = corpus(&files).sentences.tokens().to_vec();
            prop_assert_eq!(counts.n_tokens(), tokens.len() as u64);
            for (id, &count) in counts.unigrams().iter().enumerate() {
                prop_assert_eq!(count, tokens.iter().filter(|w| w.index() == id).count() as u64);
            }
        }
    }

    #[test]
    fn sums_agree_with_rows_and_columns(files in files(), boundary in boundaries()) {
        let counts = count_lags(&files, 2, boundary, 1 << 30);
        for matrix in counts.lags() {
            let dense = dense(matrix);
            let rows: Vec<u64> = dense.iter().map(|row| row.iter().sum()).collect();
            let columns: Vec<u64> =
                (0..N_WORDS).map(|b| dense.iter().map(|row| row[b]).sum()).collect();
            prop_assert_eq!(matrix.total(), rows.iter().sum::<u64>());
            prop_assert_eq!(matrix.row_sums(), rows);
            prop_assert_eq!(matrix.column_sums(), columns);
        }
    }

}

proptest! {
    // Saving syncs every file to disk, which is slow.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn threads_budget_and_parts_do_not_change_a_byte(
        files in files(),
        boundary in boundaries(),
    ) {
        let whole = count_lags(&files, 3, boundary, 1 << 30);
        let whole = bytes_of(|path| whole.save(path));
        for (n_threads, bytes) in [(1, 0), (2, 1 << 30), (3, 600)] {
            let counts = with_threads(n_threads, || count_lags(&files, 3, boundary, bytes));
            prop_assert_eq!(&bytes_of(|path| counts.save(path)), &whole);
            let count = |file: &Vec<_>| count_lags(std::slice::from_ref(file), 3, boundary, bytes);
            let parts: Vec<_> = files.iter().rev().map(count).collect();
            let merged = LagCounts::merge(&parts, &budget(bytes)).unwrap();
            prop_assert_eq!(&bytes_of(|path| merged.save(path)), &whole);
        }
    }
}

/// The sentences "a b" and "a c" in one file.
#[test]
fn rows_are_later_words() {
    let (a, b, c) = (WordId(2), WordId(3), WordId(4));
    let files = vec![vec![vec![2, 3], vec![2, 4]]];
    let stream = count_lags(&files, 3, Boundary::Stream, 1 << 30);
    assert_eq!(stream.lag(1).get(b, a), 1);
    assert_eq!(stream.lag(1).get(a, b), 0);
    assert_eq!(stream.lag(1).get(a, WordId::EOS), 1);
    assert_eq!(stream.lag(1).get(WordId::EOS, c), 1);
    assert_eq!(stream.lag(2).get(a, b), 1);
    assert_eq!(stream.lag(3).get(c, b), 1);
    let sentence = count_lags(&files, 3, Boundary::Sentence, 1 << 30);
    assert_eq!(sentence.lag(1).get(b, a), 1);
    assert_eq!(sentence.lag(1).get(WordId::EOS, c), 1);
    assert_eq!(sentence.lag(2).get(WordId::EOS, a), 2);
    assert_eq!(sentence.lag(2).get(a, b), 0);
    assert_eq!(sentence.lag(3).total(), 0);
}

#[test]
fn to_csr_keeps_the_counts() {
    let counts = count_lags(&[vec![vec![2, 3, 2], vec![4]]], 1, Boundary::Stream, 1 << 30);
    let csr = counts.lag(1).to_csr(|count| count as f32);
    assert_eq!((csr.n_rows(), csr.n_cols(), csr.nnz()), (N_WORDS, N_WORDS, counts.lag(1).nnz()));
    for (a, row) in dense(counts.lag(1)).iter().enumerate() {
        let (columns, values) = csr.row(a);
        assert!(columns.iter().zip(values).all(|(&b, &value)| row[b as usize] as f32 == value));
    }
}

#[test]
fn an_opened_file_has_the_counts_that_were_saved() {
    let files = vec![vec![vec![2, 3, 2], vec![2, 2]], vec![vec![5]]];
    let counts = count_lags(&files, 3, Boundary::Sentence, 1 << 30);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    counts.save(&path).unwrap();
    let opened = LagCounts::open(&path).unwrap();
    for lag in 1..=3 {
        assert_eq!(dense(opened.lag(lag)), dense(counts.lag(lag)));
    }
    assert_eq!(opened.n_lags(), 3);
    assert_eq!(opened.boundary(), Boundary::Sentence);
    assert_eq!(opened.unigrams(), counts.unigrams());
    assert!(opened.vocab().words().eq(counts.vocab().words()));
    assert_eq!(opened.vocab().counts(), counts.vocab().counts());
    assert_eq!(opened.lexicon().preprocessing, counts.lexicon().preprocessing);
}

#[test]
fn damaged_files_are_refused() {
    let counts = count_lags(&[vec![vec![2, 3, 2]]], 2, Boundary::Stream, 1 << 30);
    check_damage_is_detected(&bytes_of(|path| counts.save(path)), |path| LagCounts::open(path));
}

#[test]
fn invalid_content_of_a_file_never_panics() {
    let counts = count_lags(&[vec![vec![2, 3, 2]]], 2, Boundary::Stream, 1 << 30);
    check_invalid_content_never_panics(
        &bytes_of(|path| counts.save(path)),
        |path| LagCounts::open(path),
        |counts| {
            for matrix in counts.lags() {
                matrix.total();
                matrix.row_sums();
                matrix.column_sums();
                matrix.to_csr(|count| count);
            }
            let _ = LagCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
        },
    );
}

#[test]
fn the_error_for_a_file_of_other_counts_names_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    common::count_ngrams(&[vec![vec![2, 3]]], 2, 1 << 30).save(&path).unwrap();
    let message = LagCounts::open(&path).unwrap_err().to_string();
    assert!(message.contains("n-gram counts"), "{message}");
    assert!(LagCounts::open(folder.path().join("absent")).is_err());
}

/// Doubling a count 33 times exceeds 32 bits.
#[test]
fn counts_may_need_more_than_32_bits() {
    let once = count_lags(&[vec![vec![2, 3], vec![4]]], 2, Boundary::Sentence, 1 << 30);
    let mut counts = once.clone();
    for _ in 0..33 {
        counts = LagCounts::merge(&[counts.clone(), counts], &Budget::default()).unwrap();
    }
    let large = 1 << 33;
    assert_eq!(counts.lag(1).get(WordId(3), WordId(2)), large);
    assert_eq!(counts.lag(1).total(), 3 * large);
    assert_eq!(counts.lag(2).get(WordId(1), WordId(2)), large);
    assert_eq!(counts.n_tokens(), 5 * large);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    counts.save(&path).unwrap();
    let parts = [LagCounts::open(&path).unwrap(), once];
    let merged = LagCounts::merge(&parts, &budget(0)).unwrap();
    assert_eq!(merged.lag(1).get(WordId(3), WordId(2)), large + 1);
    for _ in 0..28 {
        counts = LagCounts::merge(&[counts.clone(), counts], &Budget::default()).unwrap();
    }
    let parts = vec![counts; 2];
    assert!(matches!(LagCounts::merge(&parts, &Budget::default()), Err(CountError::Overflow)));
}

#[test]
fn counts_with_different_settings_are_not_merged() {
    let files = vec![vec![vec![2, 3]]];
    let count = |corpus, n_lags, boundary| {
        let mut watch = |_| ControlFlow::Continue(());
        LagCounts::of(&corpus, n_lags, boundary, &Budget::default(), &mut watch).unwrap()
    };
    let merge = |other| {
        let parts = [count(corpus(&files), 2, Boundary::Stream), other];
        LagCounts::merge(&parts, &Budget::default()).unwrap_err().to_string()
    };
    assert!(merge(count(corpus(&files), 3, Boundary::Stream)).contains("number of lags"));
    assert!(merge(count(corpus(&files), 2, Boundary::Sentence)).contains("different boundary"));

    let mut zeros = corpus(&files);
    zeros.lexicon.preprocessing.digits = Digits::Zero;
    assert!(merge(count(zeros, 2, Boundary::Stream)).contains("preprocessed"));

    let with_vocab = |words: [&str; 6], count| {
        let mut other = corpus(&files);
        other.lexicon.vocab = Vocab::from_parts(words, vec![count; 6]).unwrap();
        other
    };
    let words = with_vocab(["<unk>", "<eos>", "w2", "w3", "w5", "w4"], 9);
    assert!(merge(count(words, 2, Boundary::Stream)).contains("part 2 has a different vocabulary"));
    let seen = with_vocab(["<unk>", "<eos>", "w2", "w3", "w4", "w5"], 8);
    assert!(merge(count(seen, 2, Boundary::Stream)).contains("another text"));
    assert!(LagCounts::merge(&[], &Budget::default()).is_err());
}

#[test]
fn invalid_numbers_of_lags_are_refused() {
    for n_lags in [0, 256] {
        let mut watch = |_| ControlFlow::Continue(());
        let counts = LagCounts::of(
            &corpus(&[vec![vec![2, 3]]]),
            n_lags,
            Boundary::Stream,
            &Budget::default(),
            &mut watch,
        );
        assert!(matches!(counts, Err(CountError::Lags { .. })));
    }
}

#[test]
fn a_watch_receives_progress_and_can_stop_the_count() {
    let corpus = corpus(&[vec![vec![2; 100]]]);
    let mut reported = Vec::new();
    let mut watch = |done| {
        reported.push(done);
        if done < 60 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let counts = LagCounts::of(&corpus, 2, Boundary::Stream, &budget(0), &mut watch);
    assert!(matches!(counts, Err(CountError::Interrupted)));
    assert_eq!(reported, [0, 16, 32, 48, 64]);
}
