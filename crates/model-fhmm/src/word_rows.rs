//! Words that the model distinguishes: frequent words individually, rare ones by their signature.

use crate::params::Unknown;
use latens_corpus::{Vocab, WordId};

/// Row of a word that no state emits. Its tokens carry no information about their states.
pub(crate) const MISSING: u32 = u32::MAX;

/// Row of scores of each word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WordRows {
    /// Row of each word of the vocabulary, or [`MISSING`].
    pub(crate) of_word: Vec<u32>,
    /// Sorted signatures that have a row. Their rows come last.
    pub(crate) signatures: Vec<String>,
    pub(crate) n_rows: usize,
}

impl WordRows {
    /// Assigns a row to every word with at least `min_count` occurrences, and rows for rarer words as `unknown` says.
    pub(crate) fn new(vocab: &Vocab, counts: &[u64], min_count: u64, unknown: Unknown) -> WordRows {
        let is_unk = |word: usize| word == WordId::UNK.index();
        let is_own = |word: usize| match word {
            word if word == WordId::EOS.index() => counts[word] > 0,
            word if is_unk(word) => counts[word] > 0 && unknown != Unknown::Missing,
            word => counts[word] >= min_count,
        };
        let mut of_word = vec![MISSING; vocab.len()];
        let mut n_rows = 0;
        for word in (0..vocab.len()).filter(|&word| is_own(word)) {
            of_word[word] = n_rows;
            n_rows += 1;
        }
        let mut rows = WordRows { of_word, signatures: vec![], n_rows: n_rows as usize };
        let rare: Vec<usize> =
            (0..vocab.len()).filter(|&word| !is_own(word) && !is_unk(word)).collect();
        match unknown {
            Unknown::Missing => {}
            Unknown::Unk => rows.share_one(&rare, counts),
            Unknown::Signature => rows.share_signatures(vocab, &rare, counts),
        }
        rows
    }

    /// Gives all rare words the row of `<unk>`.
    fn share_one(&mut self, rare: &[usize], counts: &[u64]) {
        let unk = WordId::UNK.index();
        if self.of_word[unk] == MISSING && rare.iter().any(|&word| counts[word] > 0) {
            self.of_word[unk] = self.n_rows as u32;
            self.n_rows += 1;
        }
        rare.iter().for_each(|&word| self.of_word[word] = self.of_word[unk]);
    }

    /// Gives rare words with the same signature a common row.
    fn share_signatures(&mut self, vocab: &Vocab, rare: &[usize], counts: &[u64]) {
        let signature_of = |word: usize| signature(vocab.word(WordId::from(word)));
        let seen = rare.iter().filter(|&&word| counts[word] > 0);
        let mut signatures: Vec<String> = seen.map(|&word| signature_of(word)).collect();
        signatures.sort();
        signatures.dedup();
        let first = self.n_rows;
        self.n_rows += signatures.len();
        self.signatures = signatures;
        for &word in rare {
            let found = self.signatures.binary_search(&signature_of(word));
            self.of_word[word] =
                found.map_or(self.of_word[WordId::UNK.index()], |i| (first + i) as u32);
        }
    }

    /// Row of a word, including ids beyond the vocabulary from [`WordRows::id_of_unseen`].
    pub(crate) fn row(&self, word: WordId) -> u32 {
        let first = self.n_rows - self.signatures.len();
        match self.of_word.get(word.index()) {
            Some(&row) => row,
            None => (first + word.index() - self.of_word.len()) as u32,
        }
    }

    /// Words of the vocabulary with a row of their own, and their rows.
    pub(crate) fn own_words(&self) -> impl Iterator<Item = (WordId, usize)> {
        let n_own = (self.n_rows - self.signatures.len()) as u32;
        let unknown = WordId::UNK.index();
        let is_own = move |&(word, row): &(usize, u32)| {
            row < n_own && (word == unknown || row != self.of_word[unknown])
        };
        let rows = self.of_word.iter().copied().enumerate().filter(is_own);
        rows.map(|(word, row)| (WordId::from(word), row as usize))
    }

    /// The word of each row; `<unk>` for rows that several words share.
    pub(crate) fn words_of_rows(&self) -> Vec<WordId> {
        let mut words = vec![WordId::UNK; self.n_rows];
        self.own_words().for_each(|(word, row)| words[row] = word);
        words
    }

    /// Id of a word that is not in the vocabulary: an id beyond the vocabulary that stands for its signature, or `<unk>`
    /// if no rare word of the training text has that signature.
    pub(crate) fn id_of_unseen(&self, word: &str) -> WordId {
        match self.signatures.binary_search(&signature(word)) {
            Ok(i) => WordId::from(self.of_word.len() + i),
            Err(_) => WordId::UNK,
        }
    }
}

/// Suffixes that indicate the part of speech.
const ENDINGS: [&str; 12] =
    ["ology", "tion", "ness", "ment", "able", "ing", "ion", "ity", "ed", "ly", "al", "s"];

/// Signature of a word: capitalization, digits, hyphens, and suffix.
pub(crate) fn signature(word: &str) -> String {
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    let case = match word.chars().next() {
        Some(c)
            if c.is_uppercase() && letters().count() > 1 && letters().all(char::is_uppercase) =>
        {
            "capitals"
        }
        Some(c) if c.is_uppercase() => "Capital",
        _ if letters().any(char::is_uppercase) => "mixed",
        _ if letters().next().is_none() => "none",
        _ => "small",
    };
    let digit = if word.chars().any(|c| c.is_ascii_digit()) { " digit" } else { "" };
    let hyphen = if word.contains('-') { " hyphen" } else { "" };
    let ending =
        ENDINGS.iter().find(|ending| word.len() > ending.len() + 2 && word.ends_with(*ending));
    format!("{case}{digit}{hyphen} -{}", ending.unwrap_or(&""))
}
