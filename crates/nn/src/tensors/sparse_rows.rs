//! Gradients that are zero in most rows of a table.

use super::WeightId;
use latens_math::Real;
use std::ops::Range;

/// The rows of a table in a flat gradient that may differ from zero; all others are zero. Without a table, any derivative
/// may differ from zero.
///
/// A mini-batch has a few hundred distinct words, but the table may have 10,000 rows or more. Memory bandwidth limits how
/// fast all of them can be cleared and read.
#[derive(Clone, Debug, Default)]
pub struct SparseRows {
    table: Range<usize>,
    width: usize,
    /// Ascending.
    rows: Vec<u32>,
}

impl SparseRows {
    /// A table whose rows are all zero.
    pub fn new(table: WeightId) -> SparseRows {
        SparseRows { table: table.range(), width: table.n_cols(), rows: vec![] }
    }

    /// Sets the rows of the last mini-batch to zero, and replaces them by `rows`, in any order.
    pub fn restart<T: Real>(&mut self, gradient: &mut [T], rows: &[u32]) {
        for &row in &self.rows {
            let begin = self.table.start + row as usize * self.width;
            gradient[begin..begin + self.width].fill(T::zero());
        }
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.rows.sort_unstable();
        self.rows.dedup();
    }

    /// Divides a range of a flat gradient into parts, each with whether all of it is zero.
    pub(crate) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, bool)> {
        let mut begin = range.start;
        std::iter::from_fn(move || {
            let (end, is_zero) = self.part(begin);
            let part = begin..end.min(range.end);
            begin = part.end;
            (!part.is_empty()).then_some((part, is_zero))
        })
    }

    /// Returns the end of the part that begins at `begin`, and whether all of it is zero.
    fn part(&self, begin: usize) -> (usize, bool) {
        let Range { start, end } = self.table;
        if begin >= end {
            return (usize::MAX, false);
        }
        if begin < start {
            return (start, false);
        }
        let row = (begin - start) / self.width;
        let next = self.rows.partition_point(|&other| (other as usize) < row);
        match self.rows.get(next) {
            Some(&next) if next as usize == row => (start + (row + 1) * self.width, false),
            Some(&next) => (start + next as usize * self.width, true),
            None => (end, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn parts_are_zero_except_in_some_rows() {
        let mut layout = Layout::new();
        layout.add("before", &[5]);
        let table = layout.add("table", &[7, 3]);
        layout.add("after", &[4]);
        let mut sparse = SparseRows::new(table);
        let mut gradient = vec![0.0; layout.len()];
        for rows in [&[][..], &[2, 6, 2, 5], &[0], &[3, 0, 6]] {
            sparse.restart(&mut gradient, rows);
            assert!(gradient[table.range()].iter().all(|&x| x == 0.0));
            for &row in rows {
                gradient[5 + 3 * row as usize..][..3].fill(1.0);
            }
            let is_zero = |i: usize| {
                table.range().contains(&i)
                    && !rows.contains(&((i - table.range().start) as u32 / 3))
            };
            for range in [0..layout.len(), 3..9, 7..8, 12..26, 26..30, 4..4] {
                let parts: Vec<_> = sparse.parts(range.clone()).collect();
                let places = parts.iter().flat_map(|(part, zero)| part.clone().map(|i| (i, *zero)));
                assert!(places.eq(range.map(|i| (i, is_zero(i)))), "{parts:?}");
            }
        }
        assert!(SparseRows::default().parts(2..9).eq([(2..9, false)]));
    }
}
