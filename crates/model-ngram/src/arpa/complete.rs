//! From the entries of a file to a trie: adds the n-grams that others back off to.

use crate::params::MAX_ORDER;
use crate::trie::{Level, Trie};

/// One line of an n-gram section: words from last to first, and natural logarithms.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) words: [u32; MAX_ORDER],
    pub(super) log_prob: f32,
    pub(super) backoff: f32,
}

/// Builds the trie from sorted entries of all orders, and adds the entries that others need.
pub(super) fn trie_of(mut levels: Vec<Vec<Entry>>, begin: u32) -> Trie {
    for order in (2..=levels.len()).rev() {
        let (below, level) = levels.split_at_mut(order - 1);
        add_missing(&mut below[order - 2], &level[0], order);
    }
    for order in 2..=levels.len() {
        let (below, level) = levels.split_at_mut(order - 1);
        let below = &below[order - 2];
        for entry in level[0].iter_mut().filter(|entry| entry.log_prob.is_nan()) {
            let find = |words| &below[position(below, words).expect("missing entries were added")];
            let (shorter, history) = (find(without_first(entry, order)), find(without_last(entry)));
            // A back-off weight above 1 must not give a probability above 1.
            entry.log_prob = (shorter.log_prob + history.backoff).min(0.0);
        }
    }
    let order = levels.len();
    let level = |i: usize| {
        let entries = &levels[i];
        let of_all =
            |value: fn(&Entry) -> f32| entries.iter().map(value).collect::<Vec<_>>().into();
        let last = i + 1 == order;
        let words: Vec<u32> = match i {
            0 => vec![],
            _ => entries.iter().map(|entry| entry.words[i]).collect(),
        };
        Level {
            words: words.into(),
            log_probs: of_all(|entry| entry.log_prob),
            backoffs: if last { vec![].into() } else { of_all(|entry| entry.backoff) },
            children: if last { vec![] } else { children(entries, &levels[i + 1], i + 1) }.into(),
        }
    };
    debug_assert_eq!(levels[0].len(), begin as usize + 1);
    Trie { levels: (0..order).map(level).collect() }
}

/// Adds to the order below the n-grams that those of `level` back off to, and their histories.
fn add_missing(below: &mut Vec<Entry>, level: &[Entry], order: usize) {
    let needed = level.iter().flat_map(|entry| [without_first(entry, order), without_last(entry)]);
    let mut missing: Vec<[u32; MAX_ORDER]> =
        needed.filter(|&words| position(below, words).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    let entry = |words| Entry { words, log_prob: f32::NAN, backoff: 0.0 };
    below.extend(missing.into_iter().map(entry));
    below.sort_unstable_by_key(|entry| entry.words);
}

fn position(level: &[Entry], words: [u32; MAX_ORDER]) -> Option<usize> {
    level.binary_search_by_key(&words, |entry| entry.words).ok()
}

fn without_first(entry: &Entry, order: usize) -> [u32; MAX_ORDER] {
    let mut words = entry.words;
    words[order - 1] = 0;
    words
}

fn without_last(entry: &Entry) -> [u32; MAX_ORDER] {
    let mut words = entry.words;
    words.rotate_left(1);
    words[MAX_ORDER - 1] = 0;
    words
}

/// Offsets of the children of each entry in the next order, with the final end.
fn children(entries: &[Entry], next: &[Entry], order: usize) -> Vec<u64> {
    let mut begins = Vec::with_capacity(entries.len() + 1);
    let mut at = 0;
    for entry in entries {
        begins.push(at as u64);
        while next.get(at).is_some_and(|child| child.words[..order] == entry.words[..order]) {
            at += 1;
        }
    }
    begins.push(at as u64);
    begins
}
