//! Automata that search for phrases: Aho and Corasick, Efficient string matching, 1975.

use crate::automaton::{Automaton, Classes, MAX_ENTRIES};
use foldhash::HashSet;
use std::collections::VecDeque;

/// Accepts texts that contain one phrase of every group, in the order of the groups and without overlap. `None` if there
/// are more than `max_states` states.
///
/// # Panics
/// If a group or a phrase is empty.
pub(crate) fn in_order(
    n_symbols: usize,
    groups: &[Vec<Vec<usize>>],
    max_states: usize,
) -> Option<Automaton> {
    let classes = classes(n_symbols, groups.iter().flatten());
    let (mut next, mut n_states) = (Vec::new(), 0usize);
    for group in groups {
        let trie = Trie::new(&classes, group);
        let after = n_states + trie.n_nodes();
        if after > max_states || after * classes.len() > MAX_ENTRIES {
            return None;
        }
        // The leftmost occurrence leaves most room for the groups that follow.
        let target = |&node: &u32| match trie.is_end[node as usize] {
            true => after as u32,
            false => n_states as u32 + node,
        };
        next.extend(trie.next.iter().map(target));
        n_states = after;
    }
    next.extend(std::iter::repeat_n(n_states as u32, classes.len()));
    let accepting = (0..=n_states).map(|state| state == n_states).collect();
    Some(Automaton::new(classes, next, accepting))
}

/// Accepts texts that end with one of the phrases. `None` if there are more than `max_states` states.
///
/// # Panics
/// If there is no phrase, or a phrase is empty.
pub(crate) fn ends_with(
    n_symbols: usize,
    phrases: &[Vec<usize>],
    max_states: usize,
) -> Option<Automaton> {
    let classes = classes(n_symbols, phrases);
    let trie = Trie::new(&classes, phrases);
    let fits = trie.n_nodes() <= max_states && trie.next.len() <= MAX_ENTRIES;
    fits.then(|| Automaton::new(classes, trie.next, trie.is_end))
}

/// Accepts texts that begin with a phrase. `None` if there are more than `max_states` states.
pub(crate) fn starts_with(
    n_symbols: usize,
    phrase: &[usize],
    max_states: usize,
) -> Option<Automaton> {
    let classes = classes(n_symbols, [phrase]);
    let (n, n_classes) = (phrase.len(), classes.len());
    if n + 2 > max_states || (n + 2) * n_classes > MAX_ENTRIES {
        return None;
    }
    let mut next = vec![n as u32 + 1; (n + 2) * n_classes];
    for (state, &symbol) in phrase.iter().enumerate() {
        next[state * n_classes + classes.of(symbol)] = state as u32 + 1;
    }
    next[n * n_classes..(n + 1) * n_classes].fill(n as u32);
    Some(Automaton::new(classes, next, (0..n + 2).map(|state| state == n).collect()))
}

/// One class per symbol of a phrase, and one for all others.
fn classes<P: AsRef<[usize]>>(n_symbols: usize, phrases: impl IntoIterator<Item = P>) -> Classes {
    let mut used: HashSet<usize> = HashSet::default();
    phrases.into_iter().for_each(|phrase| used.extend(phrase.as_ref()));
    let label = |symbol: usize| if used.contains(&symbol) { symbol as u32 + 1 } else { 0 };
    Classes::one(n_symbols).refine(label)
}

/// The prefixes of phrases. A node is the longest suffix of the text that is a prefix of a phrase.
struct Trie {
    next: Vec<u32>,
    /// Whether the text ends with a phrase.
    is_end: Vec<bool>,
}

impl Trie {
    fn new(classes: &Classes, phrases: &[Vec<usize>]) -> Trie {
        /// The target of a node that has no child yet.
        const NONE: u32 = u32::MAX;
        assert!(!phrases.is_empty(), "a search for no phrase");
        let n = classes.len();
        let mut trie = Trie { next: vec![NONE; n], is_end: vec![false] };
        for phrase in phrases {
            assert!(!phrase.is_empty(), "an empty phrase");
            let mut node = 0;
            for &symbol in phrase {
                let at = node * n + classes.of(symbol);
                if trie.next[at] == NONE {
                    trie.next[at] = trie.n_nodes() as u32;
                    trie.next.extend(std::iter::repeat_n(NONE, n));
                    trie.is_end.push(false);
                }
                node = trie.next[at] as usize;
            }
            trie.is_end[node] = true;
        }
        let mut fallback = vec![0usize; trie.n_nodes()];
        let mut queue = VecDeque::from([0usize]);
        while let Some(node) = queue.pop_front() {
            for class in 0..n {
                let at = node * n + class;
                // The node after this symbol, if the text were shorter.
                let shorter = if node == 0 { 0 } else { trie.next[fallback[node] * n + class] };
                match trie.next[at] {
                    NONE => trie.next[at] = shorter,
                    child => {
                        fallback[child as usize] = shorter as usize;
                        trie.is_end[child as usize] |= trie.is_end[shorter as usize];
                        queue.push_back(child as usize);
                    }
                }
            }
        }
        trie
    }

    fn n_nodes(&self) -> usize {
        self.is_end.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of up to `n` symbols.
    fn texts(n_symbols: usize, n: u32) -> impl Iterator<Item = Vec<usize>> {
        (0..=n).flat_map(move |len| {
            (0..n_symbols.pow(len))
                .map(move |code| (0..len).map(|at| code / n_symbols.pow(at) % n_symbols).collect())
        })
    }

    fn occurs(text: &[usize], phrase: &[usize]) -> bool {
        text.windows(phrase.len()).any(|window| window == phrase)
    }

    #[test]
    fn searches_agree_with_the_definition() {
        let phrases = [vec![1, 1, 2], vec![1, 2], vec![2, 0, 2], vec![1, 1]];
        let some = &phrases[2..];
        let found = in_order(3, &[phrases.to_vec()], 100).unwrap();
        let rare = in_order(3, &[some.to_vec()], 100).unwrap();
        let at_end = ends_with(3, &phrases, 100).unwrap();
        let at_start = starts_with(3, &phrases[0], 100).unwrap();
        let ordered = in_order(3, &[vec![vec![1, 1]], vec![vec![1, 2], vec![0]]], 100).unwrap();
        for text in texts(3, 7) {
            let is = |automaton: &Automaton| automaton.accepts(text.iter().copied());
            assert_eq!(is(&found), phrases.iter().any(|p| occurs(&text, p)), "{text:?}");
            assert_eq!(is(&rare), some.iter().any(|p| occurs(&text, p)), "{text:?}");
            assert_eq!(is(&at_end), phrases.iter().any(|p| text.ends_with(p)), "{text:?}");
            assert_eq!(is(&at_start), text.starts_with(&phrases[0]), "{text:?}");
            let in_order = (0..=text.len()).any(|cut| {
                let (left, right) = text.split_at(cut);
                occurs(left, &[1, 1]) && (occurs(right, &[1, 2]) || occurs(right, &[0]))
            });
            assert_eq!(is(&ordered), in_order, "{text:?}");
        }
        assert!(in_order(3, &[phrases.to_vec()], 3).is_none());
        assert!(ends_with(3, &phrases, 3).is_none() && starts_with(3, &[1, 1], 3).is_none());
    }
}
