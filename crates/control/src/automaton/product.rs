//! Intersections and unions.

use super::classes::Classes;
use super::dfa::{Automaton, MAX_ENTRIES};
use foldhash::{HashMap, HashMapExt};

/// The automaton of all texts for which `accepts` is true of whether `a` and `b` accept them. `None` if it has more than
/// `max_states` states before minimization.
///
/// # Panics
/// If the automata have different symbols.
pub(crate) fn product(
    a: &Automaton,
    b: &Automaton,
    max_states: usize,
    accepts: impl Fn(bool, bool) -> bool,
) -> Option<Automaton> {
    assert_eq!(a.n_symbols(), b.n_symbols(), "automata over the same symbols");
    let classes: Classes = a.classes().refine(|symbol| b.class_of(symbol) as u32);
    let pairs: Vec<(usize, usize)> = classes
        .firsts()
        .iter()
        .map(|&symbol| (a.class_of(symbol as usize), b.class_of(symbol as usize)))
        .collect();
    let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
    numbers.insert((0, 0), 0);
    let (mut order, mut next, mut at) = (vec![(0u32, 0u32)], Vec::new(), 0);
    while at < order.len() {
        let (from_a, from_b) = order[at];
        for &(class_a, class_b) in &pairs {
            let to_a = a.next_by_class(from_a as usize, class_a) as u32;
            let to_b = b.next_by_class(from_b as usize, class_b) as u32;
            next.push(*numbers.entry((to_a, to_b)).or_insert_with(|| {
                order.push((to_a, to_b));
                order.len() as u32 - 1
            }));
        }
        if order.len() > max_states || next.len() > MAX_ENTRIES {
            return None;
        }
        at += 1;
    }
    let accepting = order
        .iter()
        .map(|&(in_a, in_b)| accepts(a.is_accepting(in_a as usize), b.is_accepting(in_b as usize)));
    Some(Automaton::new(classes, next, accepting.collect()))
}
