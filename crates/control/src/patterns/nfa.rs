//! Nondeterministic automata of regular expressions, and their determinization.

use crate::automaton::{Automaton, Classes, MAX_ENTRIES};
use foldhash::{HashMap, HashMapExt};

/// A regular expression over sets of symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ast {
    /// A symbol of the set with this index.
    Set(usize),
    /// One after the other.
    Sequence(Vec<Ast>),
    /// One of several.
    Choice(Vec<Ast>),
    /// At least `min` and at most `max` times.
    Repeat { of: Box<Ast>, min: u32, max: Option<u32> },
}

/// The largest number of states before determinization.
const MAX_NFA_STATES: usize = 1 << 20;

/// Thompson's construction: every state has one labeled edge or any number of empty edges.
#[derive(Default)]
struct Nfa {
    /// The set and the target of the labeled edge.
    labeled: Vec<Option<(usize, usize)>>,
    empty: Vec<Vec<usize>>,
}

impl Nfa {
    fn state(&mut self) -> usize {
        self.labeled.push(None);
        self.empty.push(Vec::new());
        self.labeled.len() - 1
    }

    /// Adds an expression that begins in `from`, and returns its end. `None` if there are too many states.
    fn add(&mut self, ast: &Ast, from: usize) -> Option<usize> {
        if self.labeled.len() > MAX_NFA_STATES {
            return None;
        }
        match ast {
            Ast::Set(set) => {
                let (begin, end) = (self.state(), self.state());
                self.empty[from].push(begin);
                self.labeled[begin] = Some((*set, end));
                Some(end)
            }
            Ast::Sequence(parts) => parts.iter().try_fold(from, |from, part| self.add(part, from)),
            Ast::Choice(parts) => {
                let end = self.state();
                for part in parts {
                    let part_end = self.add(part, from)?;
                    self.empty[part_end].push(end);
                }
                Some(end)
            }
            Ast::Repeat { of, min, max } => {
                let mut at = (0..*min).try_fold(from, |from, _| self.add(of, from))?;
                if max.is_none() {
                    // A state of its own: the loop must not pass through what precedes the expression.
                    let loops = self.state();
                    self.empty[at].push(loops);
                    let end = self.add(of, loops)?;
                    self.empty[end].push(loops);
                    return Some(loops);
                }
                let end = self.state();
                self.empty[at].push(end);
                for _ in *min..max.unwrap_or(*min) {
                    at = self.add(of, at)?;
                    self.empty[at].push(end);
                }
                Some(end)
            }
        }
    }

    /// All states that can be reached without a symbol, in ascending order.
    fn closure(&self, mut states: Vec<usize>) -> Vec<usize> {
        let mut stack = states.clone();
        let mut seen: HashMap<usize, ()> = states.iter().map(|&state| (state, ())).collect();
        while let Some(state) = stack.pop() {
            for &to in &self.empty[state] {
                if seen.insert(to, ()).is_none() {
                    states.push(to);
                    stack.push(to);
                }
            }
        }
        states.sort_unstable();
        states.dedup();
        states
    }
}

/// The automaton of an expression whose sets are unions of classes. `None` if there are more than `max_states` states.
pub(super) fn determinize(
    ast: &Ast,
    classes: Classes,
    contains: impl Fn(usize, usize) -> bool,
    max_states: usize,
) -> Option<Automaton> {
    let mut nfa = Nfa::default();
    let begin = nfa.state();
    let end = nfa.add(ast, begin)?;
    let start = nfa.closure(vec![begin]);
    let mut numbers: HashMap<Vec<usize>, u32> = HashMap::new();
    numbers.insert(start.clone(), 0);
    let (mut order, mut next, mut at) = (vec![start], Vec::new(), 0);
    while at < order.len() {
        let from = order[at].clone();
        for class in 0..classes.len() {
            let labeled = from.iter().filter_map(|&state| nfa.labeled[state]);
            let to = labeled.filter(|&(set, _)| contains(set, class)).map(|(_, to)| to);
            let to = nfa.closure(to.collect());
            next.push(*numbers.entry(to).or_insert_with_key(|to| {
                order.push(to.clone());
                order.len() as u32 - 1
            }));
        }
        if order.len() > max_states || next.len() > MAX_ENTRIES {
            return None;
        }
        at += 1;
    }
    let accepting = order.iter().map(|states| states.binary_search(&end).is_ok()).collect();
    Some(Automaton::new(classes, next, accepting))
}
