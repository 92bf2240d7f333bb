//! Regular expressions over characters.

use crate::automaton::{Automaton, Classes};
use foldhash::{HashMap, HashMapExt};
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::{Hir, Look};

/// The largest automaton that is built before minimization, in bytes.
const MAX_BYTES: usize = 1 << 28;

/// Why a pattern has no automaton.
#[derive(Debug)]
pub(crate) enum CharRegexError {
    /// The pattern is invalid or uses a feature that automata lack.
    Pattern(String),
    /// There are more than the allowed number of states.
    TooLarge,
}

/// The automaton over bytes of the texts that match a pattern as a whole.
pub(crate) fn byte_automaton(
    pattern: &str,
    max_states: usize,
) -> Result<Automaton, CharRegexError> {
    let pattern = regex_syntax::parse(pattern).map_err(|error| syntax_problem(&error))?;
    let whole = Hir::concat(vec![pattern, Hir::look(Look::End)]);
    let too_large = |_| CharRegexError::TooLarge;
    let config = thompson::Config::new().nfa_size_limit(Some(MAX_BYTES));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(&whole);
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Anchored)
        .dfa_size_limit(Some(MAX_BYTES))
        .determinize_size_limit(Some(MAX_BYTES));
    let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa.map_err(too_large)?);
    let dfa = dfa.map_err(|error| match error.is_size_limit_exceeded() {
        true => CharRegexError::TooLarge,
        false => CharRegexError::Pattern(error.to_string()),
    })?;
    let start = dfa.start_state(&start::Config::new().anchored(Anchored::Yes));
    let start = start.map_err(|error| CharRegexError::Pattern(error.to_string()))?;
    explored(&dfa, start, max_states).ok_or(CharRegexError::TooLarge)
}

/// The last line of the message, which is without a copy of the pattern.
fn syntax_problem(error: &regex_syntax::Error) -> CharRegexError {
    let message = error.to_string();
    let last = message.lines().last().unwrap_or_default();
    CharRegexError::Pattern(last.trim_start_matches("error: ").to_owned())
}

/// Copies the states that can be reached.
fn explored(dfa: &dense::DFA<Vec<u32>>, start: StateID, max_states: usize) -> Option<Automaton> {
    let mut numbers: HashMap<StateID, u32> = HashMap::new();
    numbers.insert(start, 0);
    let (mut order, mut next, mut accepting, mut at) = (vec![start], Vec::new(), Vec::new(), 0);
    while at < order.len() {
        let state = order[at];
        accepting.push(dfa.is_match_state(dfa.next_eoi_state(state)));
        for byte in 0..=255u8 {
            let to = dfa.next_state(state, byte);
            next.push(*numbers.entry(to).or_insert_with(|| {
                order.push(to);
                order.len() as u32 - 1
            }));
        }
        if order.len() > max_states {
            return None;
        }
        at += 1;
    }
    let classes = Classes::one(256).refine(|byte| byte as u32);
    Some(Automaton::new(classes, next, accepting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(pattern: &str, text: &str) -> bool {
        let automaton = byte_automaton(pattern, 10_000).unwrap();
        automaton.accepts(text.bytes().map(usize::from))
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, matches, others) in [
            ("a|ab", &["a", "ab"][..], &["", "b", "aba", "xa"][..]),
            ("(?i)über.*", &["Über", "über uns"], &["uber", "xüber"]),
            (r"\d{2,3}", &["12", "123"], &["1", "1234", "12 "]),
            ("", &[""], &["a"]),
            ("^the .*s$", &["the dogs"], &["the dog", "a the dogs"]),
            ("(?x) a b # comment", &["ab"], &["a b"]),
        ] {
            matches.iter().for_each(|text| assert!(accepts(pattern, text), "{pattern} {text}"));
            others.iter().for_each(|text| assert!(!accepts(pattern, text), "{pattern} {text}"));
        }
    }

    #[test]
    fn invalid_and_large_patterns_are_refused() {
        for pattern in ["a(", "a)|(b", "[", "a{2,1}"] {
            let error = byte_automaton(pattern, 1000).unwrap_err();
            assert!(matches!(error, CharRegexError::Pattern(_)), "{pattern}: {error:?}");
        }
        let large = byte_automaton("(a|b)*a(a|b){12}", 1000).unwrap_err();
        assert!(matches!(large, CharRegexError::TooLarge), "{large:?}");
    }
}
