//! Tables of the probability that a constraint will be met.

use super::edges::{Allowed, Edge, end_probabilities, weighted_edges};
use super::layers::{Combine, Layer, Recursion, edges_of};
use super::options::{Lengths, LookaheadOptions, Precision};
use crate::automaton::Automaton;
use crate::error::ControlError;
use latens_math::Real;
use latens_model::DeviceError;
use latens_model_hmm::{Expectations, Hmm};

/// Tables of P(the text is accepted and ends after at most n more words | hidden state, automaton state), for every n up to
/// a maximum length.
///
/// ```text
/// β_n(s, z) = Σ_z' a(z'|z) ([s accepts] b(<eos>|z') + Σ_s' B_{s,s'}(z') β_{n−1}(s', z'))
/// ```
///
/// B_{s,s'}(z') is the probability that z' emits a word that leads from s to s'. The events are disjoint, so no value is
/// above 1. Every row of a table is scaled to a maximum of 1, and the logarithm of the scale is kept. Values are in double
/// precision for models with at most 1,024 states. In larger models, values below 10⁻³⁸ of the largest value in the same row
/// count as zero.
pub struct Lookahead {
    pub(super) automaton: Automaton,
    pub(super) options: LookaheadOptions,
    pub(super) distances: Vec<Option<usize>>,
    /// The row of each automaton state from which texts can be accepted.
    pub(super) row_of: Vec<Option<usize>>,
    /// The state of each row.
    pub(super) states: Vec<usize>,
    tables: Tables,
}

enum Tables {
    Single(TablesOf<f32>),
    Double(TablesOf<f64>),
}

struct TablesOf<T> {
    accepting: Vec<bool>,
    edges: Vec<Edge<T>>,
    ends: Vec<T>,
    /// β_0, β_1, …
    layers: Vec<Layer<T>>,
}

impl Lookahead {
    /// Computes the tables on the CPU, with max·S·Z² multiplications for S automaton states and Z hidden states.
    ///
    /// # Panics
    /// If the symbols of the automaton are not the words of the model.
    pub fn new(
        hmm: &Hmm,
        automaton: Automaton,
        options: LookaheadOptions,
    ) -> Result<Lookahead, ControlError> {
        Lookahead::with(&Expectations::new(hmm), automaton, options)
    }

    /// Computes the tables of a model on a device. Tables in double precision are always computed on the CPU.
    ///
    /// # Panics
    /// If the symbols of the automaton are not the words of the model.
    pub fn with(
        expectations: &Expectations<'_>,
        automaton: Automaton,
        options: LookaheadOptions,
    ) -> Result<Lookahead, ControlError> {
        let hmm = expectations.hmm();
        assert_eq!(automaton.n_symbols(), hmm.n_words(), "one symbol per word");
        let Lengths { min, max } = options.lengths;
        if min > max {
            return Err(ControlError::Lengths { part: "the length".into(), min, max });
        }
        let precision = Precision::of_tables(hmm.n_states());
        Lookahead::check_memory(hmm, &automaton, &options, precision)?;
        let distances = automaton.distances();
        let states: Vec<usize> =
            (0..automaton.n_states()).filter(|&state| distances[state].is_some()).collect();
        let mut row_of = vec![None; automaton.n_states()];
        states.iter().enumerate().for_each(|(row, &state)| row_of[state] = Some(row));
        let empty = Tables::Double(TablesOf::empty());
        let mut found = Lookahead { automaton, options, distances, row_of, states, tables: empty };
        found.tables = match precision {
            Precision::Double => {
                let step = |vectors: &[f64], out: &mut [f64]| {
                    hmm.expectations(vectors, out);
                    Ok(())
                };
                Tables::Double(TablesOf::new(hmm, &found, step)?)
            }
            Precision::Single => {
                let step = |vectors: &[f32], out: &mut [f32]| expectations.of(vectors, out);
                Tables::Single(TablesOf::new(hmm, &found, step)?)
            }
        };
        Ok(found)
    }

    /// The automaton of the constraint.
    pub fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// What else is required of a text.
    pub fn options(&self) -> &LookaheadOptions {
        &self.options
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed { unk: self.options.keep_unk }
    }

    /// Edges between rows instead of states.
    pub(super) fn row_edges(&self, hmm: &Hmm, add: impl Fn(&mut f64, f64)) -> Vec<Edge<f64>> {
        let is_live: Vec<bool> = self.row_of.iter().map(Option::is_some).collect();
        let mut edges = weighted_edges(hmm, &self.automaton, &is_live, self.allowed(), add);
        for edge in &mut edges {
            let row = |state: usize| self.row_of[state].expect("edges connect live states");
            (edge.from, edge.to) = (row(edge.from), row(edge.to));
        }
        edges
    }

    pub(super) fn accepting_rows(&self) -> Vec<bool> {
        self.states.iter().map(|&state| self.automaton.is_accepting(state)).collect()
    }

    /// Whether a text that is in this automaton state may end when `n_left` more words are allowed.
    pub(super) fn may_end(&self, state: usize, n_left: usize) -> bool {
        let Lengths { min, max } = self.options.lengths;
        self.automaton.is_accepting(state) && max - n_left >= min
    }

    /// β_n(s, ·) up to a factor, and the logarithm of that factor; `None` if it is zero everywhere.
    pub(super) fn row(&self, n: usize, state: usize) -> Option<(Vec<f64>, f64)> {
        let row = self.row_of[state]?;
        match &self.tables {
            Tables::Single(tables) => tables.row(n, row),
            Tables::Double(tables) => tables.row(n, row),
        }
    }

    /// u_n(s, ·), which leaves out the transition to the next hidden state, up to a factor, and the logarithm of that
    /// factor.
    pub(super) fn next_word(&self, n: usize, state: usize) -> Option<(Vec<f64>, f64)> {
        let row = self.row_of[state]?;
        match &self.tables {
            Tables::Single(tables) => tables.next_word(n, row, self.options.lengths),
            Tables::Double(tables) => tables.next_word(n, row, self.options.lengths),
        }
    }
}

impl<T: Real> TablesOf<T> {
    fn empty() -> TablesOf<T> {
        TablesOf { accepting: vec![], edges: vec![], ends: vec![], layers: vec![] }
    }

    /// `step` computes Σ_z' a(z'|z) u(z') for all rows.
    fn new(
        hmm: &Hmm,
        lookahead: &Lookahead,
        step: impl Fn(&[T], &mut [T]) -> Result<(), DeviceError>,
    ) -> Result<TablesOf<T>, DeviceError> {
        let narrow = |values: &[f64]| -> Vec<T> { values.iter().map(|&v| T::of(v)).collect() };
        let edges = lookahead.row_edges(hmm, |sum, p| *sum += p);
        let edges = edges.into_iter().map(|Edge { from, to, classes, weights }| Edge {
            from,
            to,
            classes,
            weights: narrow(&weights),
        });
        let mut tables = TablesOf {
            accepting: lookahead.accepting_rows(),
            edges: edges.collect(),
            ends: narrow(&end_probabilities(hmm)),
            layers: Vec::new(),
        };
        for n in 0..lookahead.options.lengths.max {
            let recursion = tables.recursion(lookahead.options.lengths);
            let before = tables.layers.last();
            let layer = recursion.layer(n, before, Combine::Sum, &step)?;
            tables.layers.push(layer);
        }
        Ok(tables)
    }

    fn recursion(&self, lengths: Lengths) -> Recursion<'_, T> {
        Recursion { edges: &self.edges, accepting: &self.accepting, ends: &self.ends, lengths }
    }

    fn row(&self, n: usize, row: usize) -> Option<(Vec<f64>, f64)> {
        let (layer, n_hidden) = (&self.layers[n], self.ends.len());
        let log_scale = layer.log_scales[row];
        let values = &layer.rows[row * n_hidden..(row + 1) * n_hidden];
        (log_scale > f64::NEG_INFINITY)
            .then(|| (values.iter().map(|value| value.wide()).collect(), log_scale))
    }

    fn next_word(&self, n: usize, row: usize, lengths: Lengths) -> Option<(Vec<f64>, f64)> {
        let mut out = vec![T::zero(); self.ends.len()];
        let before = n.checked_sub(1).map(|n| &self.layers[n]);
        let edges = edges_of(&self.edges, row);
        let log_scale =
            self.recursion(lengths).next_word(edges, row, n, before, Combine::Sum, &mut out);
        (log_scale > f64::NEG_INFINITY)
            .then(|| (out.iter().map(|value| value.wide()).collect(), log_scale))
    }
}
