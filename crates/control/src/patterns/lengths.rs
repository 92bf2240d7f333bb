//! Automata that count.

use crate::automaton::{Automaton, Classes, MAX_ENTRIES};

/// Accepts texts of `min` to `max` symbols. `None` if there are more than `max_states` states.
pub(crate) fn symbols(
    n_symbols: usize,
    min: usize,
    max: Option<usize>,
    max_states: usize,
) -> Option<Automaton> {
    let last = max.map_or(min, |max| max.saturating_add(1));
    if last >= max_states {
        return None;
    }
    let next = (0..=last).map(|count| (count + 1).min(last) as u32).collect();
    Some(Automaton::new(Classes::one(n_symbols), next, accepting(last, min, max).collect()))
}

/// Accepts bytes that contain `min` to `max` words, which are separated by whitespace. `None` if there are more than
/// `max_states` states.
pub(crate) fn words_of_bytes(
    min: usize,
    max: Option<usize>,
    max_states: usize,
) -> Option<Automaton> {
    let last = max.map_or(min, |max| max.saturating_add(1));
    if last >= max_states / 2 || last >= MAX_ENTRIES / 8 {
        return None;
    }
    // Class 0 are letters. States are pairs of a count and of whether a word has begun.
    let classes = Classes::one(256).refine(|byte| u32::from((byte as u8).is_ascii_whitespace()));
    let mut next = Vec::with_capacity(4 * (last + 1));
    for count in 0..=last {
        let (begun, more) = (2 * count as u32 + 1, 2 * (count + 1).min(last) as u32 + 1);
        next.extend([more, 2 * count as u32, begun, 2 * count as u32]);
    }
    let accepting = accepting(last, min, max).flat_map(|accepts| [accepts, accepts]);
    Some(Automaton::new(classes, next, accepting.collect()))
}

fn accepting(last: usize, min: usize, max: Option<usize>) -> impl Iterator<Item = bool> {
    (0..=last).map(move |count| count >= min && max.is_none_or(|max| count <= max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_words_are_counted() {
        for (min, max) in [(0, Some(0)), (2, Some(3)), (3, None), (0, None)] {
            let is_in = |n: usize| n >= min && max.is_none_or(|max| n <= max);
            let automaton = symbols(4, min, max, 100).unwrap();
            (0..8).for_each(|n| assert_eq!(automaton.accepts(vec![3; n]), is_in(n)));
            let automaton = words_of_bytes(min, max, 100).unwrap();
            for text in ["", " ", "a", " a b", "ab  cd e", "a b c d ", "\ta\nb c"] {
                let n = text.split_ascii_whitespace().count();
                let bytes = text.bytes().map(usize::from);
                assert_eq!(automaton.accepts(bytes), is_in(n), "{text:?} {min} {max:?}");
            }
        }
        assert!(symbols(4, 0, Some(99), 100).is_none());
        assert!(words_of_bytes(60, None, 100).is_none());
    }
}
