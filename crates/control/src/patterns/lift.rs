//! From automata over bytes to automata over the words that the bytes spell.

use crate::automaton::{Automaton, Classes, MAX_ENTRIES};

/// How the text of a sequence of words is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joining {
    /// A space between words.
    Spaces,
    /// Nothing between words, which are pieces of text.
    Nothing,
}

/// Runs the bytes of every word through an automaton over bytes.
///
/// `spelling` is `None` for symbols that are not text; no accepted text contains them. Takes S·V steps of a word for S
/// states and V words. Returns `None` if the table of transitions is too large.
pub(crate) fn lift<'a>(
    bytes: &Automaton,
    n_symbols: usize,
    joining: Joining,
    spelling: impl Fn(usize) -> Option<&'a [u8]>,
) -> Option<Automaton> {
    let n = bytes.n_states();
    let dead = n as u32;
    let run = |state: usize, word: &[u8]| {
        word.iter().fold(state, |state, &byte| bytes.next(state, usize::from(byte)))
    };
    let target = |state: usize, symbol: usize| match (spelling(symbol), joining) {
        (None, _) => dead,
        (Some(word), Joining::Nothing) => run(state, word) as u32,
        (Some(word), Joining::Spaces) => run(bytes.next(state, usize::from(b' ')), word) as u32,
    };
    // With spaces, no space precedes the first word: it leads from a state of its own.
    let first = |symbol: usize| spelling(symbol).map_or(dead, |word| run(0, word) as u32);
    let mut classes = Classes::one(n_symbols).refine(first);
    for state in 0..n {
        classes = classes.refine(|symbol| target(state, symbol));
        if classes.len() * (n + 2) > MAX_ENTRIES {
            return None;
        }
    }
    let shift = |state: u32| state + 1;
    let firsts = classes.firsts().iter().map(|&symbol| symbol as usize);
    let mut next: Vec<u32> = match joining {
        Joining::Spaces => firsts.clone().map(|symbol| shift(first(symbol))).collect(),
        Joining::Nothing => firsts.clone().map(|symbol| shift(target(0, symbol))).collect(),
    };
    for state in 0..n {
        next.extend(firsts.clone().map(|symbol| shift(target(state, symbol))));
    }
    next.extend(std::iter::repeat_n(shift(dead), classes.len()));
    let accepting = std::iter::once(0).chain(0..n).map(|state| bytes.is_accepting(state));
    Some(Automaton::new(classes, next, accepting.chain([false]).collect()))
}
