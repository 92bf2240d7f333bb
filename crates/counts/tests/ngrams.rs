//! Compares n-gram counts with their definition.

mod common;

use common::{
    BUDGETS, Files, N_WORDS, budget, bytes_of, check_damage_is_detected,
    check_invalid_content_never_panics, count_ngrams, files, sentences, vocab, with_threads,
};
use latens_corpus::{Sentences, Vocab, WordId};
use latens_counts::{Budget, CountError, MAX_ORDER, NgramCounts};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::slice;

type Entries = Vec<(Vec<u32>, u64)>;

fn entries(counts: &NgramCounts) -> Entries {
    let mut entries = Vec::new();
    counts.for_each(|ngram, count| {
        entries.push((ngram.iter().map(|word| word.0).collect(), count));
    });
    entries
}

/// Counts by the definition, for every token of every sentence.
fn by_definition(files: &Files, order: usize) -> Entries {
    let mut counts = BTreeMap::new();
    for sentence in files.iter().flatten() {
        let mut padded = vec![N_WORDS as u32; order - 1];
        padded.extend(sentence);
        padded.push(WordId::EOS.0);
        for ngram in padded.windows(order) {
            *counts.entry(ngram.iter().rev().copied().collect()).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

proptest! {
    #[test]
    fn counts_agree_with_the_definition(files in files(), order in 1..=MAX_ORDER) {
        for bytes in BUDGETS {
            let counts = count_ngrams(&files, order, bytes);
            let expected = by_definition(&files, order);
            prop_assert_eq!(counts.len(), expected.len());
            prop_assert_eq!(counts.n_tokens(), expected.iter().map(|entry| entry.1).sum::<u64>());
            prop_assert_eq!(entries(&counts), expected);
        }
    }

}

proptest! {
    // Saving syncs every file to disk, which is slow.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn threads_budget_and_parts_do_not_change_a_byte(files in files(), order in 1..=3_usize) {
        let whole = count_ngrams(&files, order, 1 << 30);
        let whole = bytes_of(|path| whole.save(path));
        for (n_threads, bytes) in [(1, 0), (2, 1 << 30), (3, 600)] {
            let counts = with_threads(n_threads, || count_ngrams(&files, order, bytes));
            prop_assert_eq!(&bytes_of(|path| counts.save(path)), &whole);
            let count = |file: &Vec<_>| count_ngrams(slice::from_ref(file), order, bytes);
            let parts: Vec<_> = files.iter().rev().map(count).collect();
            let merged = NgramCounts::merge(&parts, &budget(bytes)).unwrap();
            prop_assert_eq!(&bytes_of(|path| merged.save(path)), &whole);
        }
    }
}

#[test]
fn ngrams_of_a_sentence_are_reversed_and_padded() {
    let counts = count_ngrams(&[vec![vec![2, 3]]], 3, 1 << 30);
    let expected = [(vec![1, 3, 2], 1), (vec![2, 6, 6], 1), (vec![3, 2, 6], 1)];
    assert_eq!(entries(&counts), expected);
    assert_eq!(counts.offsets(), [0, 0, 1, 2, 3, 3, 3]);
    let mut ending_in_2 = Vec::new();
    counts.for_each_ending_in(2..3, |ngram, _| ending_in_2.push(ngram.to_vec()));
    assert_eq!(ending_in_2, [[WordId(2), WordId(6), WordId(6)]]);
}

/// Contexts of more than 64 bits have another packing.
#[test]
fn large_vocabularies_give_the_counts_of_small_ones() {
    let files: Files = vec![vec![vec![2, 3, 2, 3, 2, 3], vec![3, 2, 3, 2]]];
    let small = entries(&count_ngrams(&files, 5, 1 << 30));
    let (n_words, vocab) = (1 << 20, vocab(1 << 20));
    for bytes in [1 << 30, 0] {
        let mut watch = |_| ControlFlow::Continue(());
        let counts = NgramCounts::of(&sentences(&files), &vocab, 5, &budget(bytes), &mut watch);
        let counts = counts.unwrap();
        let begin = |word: u32| if word == n_words as u32 { N_WORDS as u32 } else { word };
        let entries = entries(&counts).into_iter();
        let renamed: Entries =
            entries.map(|(ngram, n)| (ngram.into_iter().map(begin).collect(), n)).collect();
        assert_eq!(renamed, small);
        let whole = bytes_of(|path| counts.save(path));
        let merged = NgramCounts::merge(slice::from_ref(&counts), &budget(bytes)).unwrap();
        assert_eq!(bytes_of(|path| merged.save(path)), whole);
    }
}

#[test]
fn an_opened_file_has_the_counts_that_were_saved() {
    let counts = count_ngrams(&[vec![vec![2, 3, 2], vec![2, 2]]], 3, 1 << 30);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    counts.save(&path).unwrap();
    let opened = NgramCounts::open(&path).unwrap();
    assert_eq!(entries(&opened), entries(&counts));
    assert_eq!((opened.order(), opened.n_words(), opened.n_tokens()), (3, N_WORDS, 7));
}

#[test]
fn damaged_files_are_refused() {
    let counts = count_ngrams(&[vec![vec![2, 3, 2]]], 2, 1 << 30);
    check_damage_is_detected(&bytes_of(|path| counts.save(path)), |path| NgramCounts::open(path));
}

#[test]
fn invalid_content_of_a_file_never_panics() {
    let counts = count_ngrams(&[vec![vec![2, 3, 2]]], 3, 1 << 30);
    check_invalid_content_never_panics(
        &bytes_of(|path| counts.save(path)),
        |path| NgramCounts::open(path),
        |counts| {
            entries(counts);
            let _ = NgramCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
        },
    );
}

#[test]
fn counts_with_different_settings_are_not_merged() {
    let files = vec![vec![vec![2, 3]]];
    let merge = |other| {
        let parts = [count_ngrams(&files, 2, 1 << 30), other];
        NgramCounts::merge(&parts, &Budget::default()).unwrap_err().to_string()
    };
    let message = merge(count_ngrams(&files, 3, 1 << 30));
    assert_eq!(message, "cannot merge counts: part 2 has 3-grams, part 1 has 2-grams");
    let mut watch = |_| ControlFlow::Continue(());
    let mut count = |vocab: &Vocab| {
        NgramCounts::of(&sentences(&files), vocab, 2, &Budget::default(), &mut watch).unwrap()
    };
    let other = count(&vocab(9));
    assert!(merge(other).contains("part 2 has 9 distinct words, part 1 has 6"));
    let words = ["<unk>", "<eos>", "w2", "w3", "w5", "w4"];
    let other = Vocab::from_parts(words, vec![9; N_WORDS]).unwrap();
    assert!(merge(count(&other)).contains("part 2 has a different vocabulary"));
    assert!(!count(&vocab(N_WORDS)).fits(&other) && count(&other).fits(&other));
    assert!(NgramCounts::merge(&[], &Budget::default()).is_err());
}

#[test]
fn invalid_orders_are_refused() {
    let none = Sentences::from_words([&[] as &[WordId]; 0]);
    let vocab = vocab(5);
    let count = |order| {
        let mut watch = |_| ControlFlow::Continue(());
        NgramCounts::of(&none, &vocab, order, &Budget::default(), &mut watch)
    };
    assert!(matches!(count(0), Err(CountError::Order { order: 0 })));
    assert!(matches!(count(7), Err(CountError::Order { order: 7 })));
    assert!(count(6).unwrap().is_empty());
}

#[test]
fn a_watch_can_stop_the_count() {
    let sentences = sentences(&[vec![vec![2; 100]]]);
    for stop_at in [0, 50, 101] {
        let mut watch = |done| match done >= stop_at {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let counts = NgramCounts::of(&sentences, &vocab(N_WORDS), 2, &budget(0), &mut watch);
        assert!(matches!(counts, Err(CountError::Interrupted)));
    }
}
