//! Counts of words in topics, as the samplers use them.

use super::rows::Rows;
use crate::documents::TypedDocuments;
use latens_math::prefetch;
use std::ops::Range;

/// Number of topics that are added up side by side. The order of additions is fixed, so that results agree on all
/// machines.
pub(super) const LANES: usize = 8;

/// Padded length of a row of `n` numbers.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// n_wk and N_k of all tokens.
#[derive(Clone, Default)]
pub(super) struct Table {
    stride: usize,
    /// n_wk, padded.
    rows: Rows,
    /// N_k, padded. `f64` represents integers up to 2⁵³ exactly, and converts to `f32` in vectors.
    totals: Vec<f64>,
}

impl Table {
    pub(super) fn new(
        documents: &TypedDocuments,
        topics: &[u16],
        n_rows: usize,
        stride: usize,
    ) -> Table {
        let mut table =
            Table { stride, rows: Rows::new(n_rows * stride), totals: vec![0.0; stride] };
        for (&t, &k) in documents.types.iter().zip(topics) {
            table.add(t, usize::from(k));
        }
        table
    }

    /// The table of given counts: one row of `n_topics` counts per type.
    pub(super) fn from_counts(counts: &[u32], n_topics: usize) -> Table {
        let stride = padded(n_topics);
        let n_rows = counts.len() / n_topics;
        let mut table =
            Table { stride, rows: Rows::new(n_rows * stride), totals: vec![0.0; stride] };
        for (row, counts) in counts.chunks_exact(n_topics).enumerate() {
            for (topic, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                table.rows.set(row * stride + topic, count);
                table.totals[topic] += f64::from(count);
            }
        }
        table
    }

    /// The counts of a type, rounded to `f32`.
    #[inline(always)]
    pub(super) fn row(&self, token_type: u32) -> &[f32] {
        &self.rows.values()[token_type as usize * self.stride..][..self.stride]
    }

    /// Loads the counts of a type into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, token_type: u32) {
        prefetch(self.row(token_type));
    }

    #[inline(always)]
    pub(super) fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Exact counts of all types in the first `n_topics` topics.
    pub(super) fn counts(&self, n_topics: usize) -> Vec<u32> {
        let starts = (0..self.rows.values().len()).step_by(self.stride);
        starts.flat_map(|start| start..start + n_topics).map(|at| self.rows.count(at)).collect()
    }

    /// Adds a token to a topic. Returns the new size of the topic.
    #[inline(always)]
    pub(super) fn add(&mut self, token_type: u32, topic: usize) -> f64 {
        self.rows.add(token_type as usize * self.stride + topic);
        self.totals[topic] += 1.0;
        self.totals[topic]
    }

    /// Removes a token from a topic. Returns the new size of the topic.
    #[inline(always)]
    pub(super) fn remove(&mut self, token_type: u32, topic: usize) -> f64 {
        self.rows.remove(token_type as usize * self.stride + topic);
        self.totals[topic] -= 1.0;
        self.totals[topic]
    }

    /// Moves tokens from one topic to another: token `i` from `from[i]` to `to[i]`, if its type is one of `part`.
    pub(super) fn move_tokens(
        &mut self,
        part: &Range<u32>,
        types: &[u32],
        from: &[u16],
        to: &[u16],
    ) {
        /// Number of tokens that are looked at together, and between the prefetch of a count and its use.
        const BLOCK: usize = 256;
        const AHEAD: usize = 8;
        let mut moved = [0u32; BLOCK];
        let blocks = types.chunks(BLOCK).zip(from.chunks(BLOCK)).zip(to.chunks(BLOCK));
        for ((types, from), to) in blocks {
            // Whether a token moves is random. Without branches, nothing depends on guessing it.
            let mut n_moved = 0;
            for (i, ((t, from), to)) in (0..).zip(types.iter().zip(from).zip(to)) {
                moved[n_moved] = i;
                n_moved += usize::from((from != to) & part.contains(t));
            }
            let moved = &moved[..n_moved];
            let token = |i: u32| {
                let i = i as usize;
                (types[i], usize::from(from[i]), usize::from(to[i]))
            };
            for (i, &at) in moved.iter().enumerate() {
                if let Some(&next) = moved.get(i + AHEAD) {
                    let (t, from, to) = token(next);
                    let row = self.row(t);
                    prefetch(&row[from..=from]);
                    prefetch(&row[to..=to]);
                }
                let (t, from, to) = token(at);
                self.remove(t, from);
                self.add(t, to);
            }
        }
    }

    /// Makes all tables equal. Table `i` has the final counts of the types in `parts[i]`; `totals` are the final sizes of
    /// all topics.
    pub(super) fn share(tables: &mut [Table], parts: &[Range<u32>], totals: &[f64]) {
        let stride = tables.first().map_or(0, |table| table.stride);
        let places = |part: &Range<u32>| part.start as usize * stride..part.end as usize * stride;
        let parts: Vec<_> = parts.iter().map(places).collect();
        tables.iter_mut().for_each(|table| table.totals.copy_from_slice(totals));
        Rows::share(tables.iter_mut().map(|table| &mut table.rows).collect(), &parts);
    }
}
