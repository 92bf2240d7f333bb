//! A complete deterministic automaton.

use super::classes::Classes;
use super::minimize::blocks;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// The largest number of entries of a table of transitions, states × classes: 256 MiB.
pub(crate) const MAX_ENTRIES: usize = 1 << 26;

/// A complete deterministic automaton over symbols. Its edges are labeled with sets of symbols.
///
/// Symbols are the words of a vocabulary, or bytes. State 0 is the start. An automaton of this crate is minimal, and its
/// states and classes are numbered in the order of a breadth-first search, so two automata are equal if and only if they
/// accept the same texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automaton {
    classes: Classes,
    /// The target of each state and class, row-major.
    next: Vec<u32>,
    accepting: Vec<bool>,
}

impl Automaton {
    /// Creates the minimal automaton that is equivalent to given transitions. State 0 is the start.
    ///
    /// `next` has one row per state and one column per class.
    pub(crate) fn new(classes: Classes, next: Vec<u32>, accepting: Vec<bool>) -> Automaton {
        debug_assert_eq!(next.len(), classes.len() * accepting.len());
        Automaton { classes, next, accepting }.minimized()
    }

    /// The number of states.
    pub fn n_states(&self) -> usize {
        self.accepting.len()
    }

    /// The number of classes: sets of symbols that no state distinguishes.
    pub fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// The number of symbols.
    pub fn n_symbols(&self) -> usize {
        self.classes.n_symbols()
    }

    /// The class of a symbol.
    ///
    /// # Panics
    /// If there is no such symbol.
    pub fn class_of(&self, symbol: usize) -> usize {
        self.classes.of(symbol)
    }

    pub(crate) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The state after a symbol of a class.
    ///
    /// # Panics
    /// If there is no such state or class.
    pub fn next_by_class(&self, state: usize, class: usize) -> usize {
        assert!(class < self.n_classes(), "class {class} of {}", self.n_classes());
        self.next[state * self.n_classes() + class] as usize
    }

    /// The state after a symbol.
    ///
    /// # Panics
    /// If there is no such state or symbol.
    pub fn next(&self, state: usize, symbol: usize) -> usize {
        self.next_by_class(state, self.class_of(symbol))
    }

    /// Whether a text that ends in this state is accepted.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn is_accepting(&self, state: usize) -> bool {
        self.accepting[state]
    }

    /// Whether a text is accepted.
    ///
    /// # Panics
    /// If there is no such symbol.
    pub fn accepts(&self, text: impl IntoIterator<Item = usize>) -> bool {
        self.is_accepting(text.into_iter().fold(0, |state, symbol| self.next(state, symbol)))
    }

    /// Whether no text is accepted.
    pub fn is_empty(&self) -> bool {
        !self.accepting.contains(&true)
    }

    /// For each state, the smallest number of symbols after which a text can be accepted; `None` if there is none.
    pub fn distances(&self) -> Vec<Option<usize>> {
        let mut before = vec![Vec::new(); self.n_states()];
        for (at, &to) in self.next.iter().enumerate() {
            let from = (at / self.n_classes()) as u32;
            if before[to as usize].last() != Some(&from) {
                before[to as usize].push(from);
            }
        }
        let mut distances: Vec<Option<usize>> =
            self.accepting.iter().map(|&accepts| accepts.then_some(0)).collect();
        let mut queue: VecDeque<usize> =
            (0..self.n_states()).filter(|&state| self.accepting[state]).collect();
        while let Some(state) = queue.pop_front() {
            let next = distances[state].map(|distance| distance + 1);
            for &from in &before[state] {
                if distances[from as usize].is_none() {
                    distances[from as usize] = next;
                    queue.push_back(from as usize);
                }
            }
        }
        distances
    }

    /// The automaton that accepts the other texts.
    pub(crate) fn complement(&self) -> Automaton {
        let accepting = self.accepting.iter().map(|accepts| !accepts).collect();
        Automaton { classes: self.classes.clone(), next: self.next.clone(), accepting }
    }

    /// Also rejects all texts with some symbols.
    pub(crate) fn without(&self, is_forbidden: impl Fn(usize) -> bool) -> Automaton {
        let classes = self.classes.refine(|symbol| u32::from(is_forbidden(symbol)));
        let (n_states, n_classes) = (self.n_states(), classes.len());
        let dead = n_states as u32;
        let mut next = Vec::with_capacity((n_states + 1) * n_classes);
        for state in 0..n_states {
            next.extend(classes.firsts().iter().map(|&symbol| match symbol as usize {
                symbol if is_forbidden(symbol) => dead,
                symbol => self.next(state, symbol) as u32,
            }));
        }
        next.extend(std::iter::repeat_n(dead, n_classes));
        let mut accepting = self.accepting.clone();
        accepting.push(false);
        Automaton::new(classes, next, accepting)
    }

    /// The states with their distinct targets and the classes that lead to each.
    pub(crate) fn edges(&self, state: usize) -> Vec<(usize, Vec<usize>)> {
        let mut edges: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        for class in 0..self.n_classes() {
            let target = self.next_by_class(state, class);
            let place = *places.entry(target).or_insert_with(|| {
                edges.push((target, Vec::new()));
                edges.len() - 1
            });
            edges[place].1.push(class);
        }
        edges
    }

    fn minimized(self) -> Automaton {
        let reachable = self.renumbered(&(0..self.n_states() as u32).collect::<Vec<_>>());
        let block_of = blocks(reachable.n_classes(), &reachable.next, &reachable.accepting);
        let small = reachable.renumbered(&block_of);
        small.with_joined_classes()
    }

    /// One state per block of equivalent states, numbered in the order of a search from the start.
    fn renumbered(&self, block_of: &[u32]) -> Automaton {
        let n_classes = self.n_classes();
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut order = vec![0u32];
        numbers.insert(block_of[0], 0);
        let mut next = Vec::new();
        let mut at = 0;
        while at < order.len() {
            let row = &self.next[order[at] as usize * n_classes..][..n_classes];
            for &to in row {
                let number = *numbers.entry(block_of[to as usize]).or_insert_with(|| {
                    order.push(to);
                    order.len() as u32 - 1
                });
                next.push(number);
            }
            at += 1;
        }
        let accepting = order.iter().map(|&state| self.accepting[state as usize]).collect();
        Automaton { classes: self.classes.clone(), next, accepting }
    }

    /// Joins classes that lead to the same states.
    fn with_joined_classes(self) -> Automaton {
        let n = self.n_classes();
        let mut labels = vec![0u32; n];
        for row in self.next.chunks_exact(n) {
            let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
            for (label, &to) in labels.iter_mut().zip(row) {
                let number = numbers.len() as u32;
                *label = *numbers.entry((*label, to)).or_insert(number);
            }
        }
        let classes = self.classes.join(&labels);
        let (firsts, next) = (classes.firsts(), &self.next);
        let columns = firsts.iter().map(|&symbol| self.classes.of(symbol as usize));
        let columns: Vec<usize> = columns.collect();
        let rows = next.chunks_exact(n).flat_map(|row| columns.iter().map(|&column| row[column]));
        let joined = Automaton { next: rows.collect(), accepting: self.accepting.clone(), classes };
        // The order of classes may have changed, and with it that of the search.
        joined.renumbered(&(0..joined.n_states() as u32).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the number of symbols is a multiple of three, with every state twice and an unreachable one.
    fn threefold() -> Automaton {
        let classes = Classes::one(4).refine(|symbol| symbol as u32 % 2);
        let next = vec![1, 4, 2, 5, 0, 3, 1, 1, 2, 2, 3, 0, 6, 0];
        let accepting = vec![true, false, false, true, false, false, true];
        Automaton::new(classes, next, accepting)
    }

    #[test]
    fn equivalent_states_and_classes_are_joined() {
        let automaton = threefold();
        assert_eq!((automaton.n_states(), automaton.n_classes()), (3, 1));
        for n in 0..10 {
            assert_eq!(automaton.accepts(vec![3; n]), n % 3 == 0);
        }
        assert_eq!(automaton.distances(), [Some(0), Some(2), Some(1)]);
        assert_eq!(automaton.edges(1), [(2, vec![0])]);
    }

    #[test]
    fn a_forbidden_symbol_leads_to_a_dead_state() {
        let automaton = threefold().without(|symbol| symbol == 2);
        assert_eq!((automaton.n_states(), automaton.n_classes()), (4, 2));
        assert!(automaton.accepts([0, 1, 3]) && !automaton.accepts([0, 1, 2]));
        assert!(automaton.distances().contains(&None));
        assert_eq!(automaton.complement().complement(), automaton);
    }
}
