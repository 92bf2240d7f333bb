//! The probability that a hidden state emits a word of an edge.

use crate::automaton::Automaton;
use latens_corpus::WordId;
use latens_model_hmm::Hmm;

/// An edge between two states from which texts can be accepted.
pub(super) struct Edge<T> {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) classes: Vec<usize>,
    /// One entry per hidden state.
    pub(super) weights: Vec<T>,
}

/// Which words may be generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) unk: bool,
}

impl Allowed {
    /// `<eos>` ends a text and is not one of its words.
    pub(super) fn contains(self, word: WordId) -> bool {
        word != WordId::EOS && (self.unk || word != WordId::UNK)
    }
}

/// The edges of an automaton between states with a distance, with weights that `add` accumulates over the words of an
/// edge, starting from 0.
pub(super) fn weighted_edges(
    hmm: &Hmm,
    automaton: &Automaton,
    is_live: &[bool],
    allowed: Allowed,
    add: impl Fn(&mut f64, f64),
) -> Vec<Edge<f64>> {
    let n_hidden = hmm.n_states();
    let mut edges = Vec::new();
    // For each class, the edges that contain it.
    let mut edges_of = vec![Vec::new(); automaton.n_classes()];
    for from in (0..automaton.n_states()).filter(|&state| is_live[state]) {
        for (to, classes) in automaton.edges(from) {
            if is_live[to] {
                classes.iter().for_each(|&class| edges_of[class].push(edges.len()));
                edges.push(Edge { from, to, classes, weights: vec![0.0; n_hidden] });
            }
        }
    }
    let mut words_of = vec![Vec::new(); automaton.n_classes()];
    for word in (0..hmm.n_words()).map(WordId::from).filter(|&word| allowed.contains(word)) {
        words_of[automaton.class_of(word.index())].push(word);
    }
    for (words, edges_of) in words_of.iter().zip(&edges_of).filter(|(_, edges)| !edges.is_empty()) {
        let mut sums = vec![0.0; n_hidden];
        for &word in words {
            let Some((states, probabilities)) = hmm.emitting_states(word) else { continue };
            for (state, &p) in states.iter().zip(probabilities) {
                add(&mut sums[state], f64::from(p));
            }
        }
        for &edge in edges_of {
            let weights = edges[edge].weights.iter_mut().zip(&sums);
            weights.for_each(|(weight, &sum)| add(weight, sum));
        }
    }
    edges
}

/// b(`<eos>` | z) for each hidden state z.
pub(super) fn end_probabilities(hmm: &Hmm) -> Vec<f64> {
    let mut ends = vec![0.0; hmm.n_states()];
    if let Some((states, probabilities)) = hmm.emitting_states(WordId::EOS) {
        states.iter().zip(probabilities).for_each(|(state, &p)| ends[state] = f64::from(p));
    }
    ends
}
