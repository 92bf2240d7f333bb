//! The losses of all mergers, and the smallest one of each row.

/// A symmetric table of losses, +∞ on the diagonal and where a slot is free, which remembers the smallest loss of
/// each row to the right of the diagonal.
pub(crate) struct MergerLosses {
    n_slots: usize,
    values: Vec<f64>,
    smallest: Vec<Smallest>,
}

/// The smallest loss of a row, and the first slot that has it.
#[derive(Clone, Copy)]
struct Smallest {
    loss: f64,
    slot: usize,
}

impl Smallest {
    /// Marks a row whose smallest loss has risen, so that it must be searched again. No real entry compares as smaller
    /// or has this slot, so the mark stays until then.
    const UNKNOWN: Smallest = Smallest { loss: f64::NEG_INFINITY, slot: usize::MAX };
}

impl MergerLosses {
    /// The table of free slots.
    pub(crate) fn new(n_slots: usize) -> MergerLosses {
        MergerLosses::from_values(n_slots, vec![f64::INFINITY; n_slots * n_slots])
    }

    /// The table with these losses, row-major.
    pub(crate) fn from_values(n_slots: usize, values: Vec<f64>) -> MergerLosses {
        assert_eq!(values.len(), n_slots * n_slots, "the table must be square");
        MergerLosses { n_slots, values, smallest: vec![Smallest::UNKNOWN; n_slots] }
    }

    /// All losses, row-major.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    #[inline]
    pub(crate) fn get(&self, v: usize, w: usize) -> f64 {
        self.values[v * self.n_slots + w]
    }

    #[inline]
    pub(crate) fn set(&mut self, v: usize, w: usize, loss: f64) {
        self.values[v * self.n_slots + w] = loss;
        self.values[w * self.n_slots + v] = loss;
        let (row, slot) = (v.min(w), v.max(w));
        let smallest = self.smallest[row];
        // Almost always false.
        if loss <= smallest.loss || slot == smallest.slot {
            let is_first = loss == smallest.loss && slot <= smallest.slot;
            self.smallest[row] = if loss < smallest.loss || is_first {
                Smallest { loss, slot }
            } else if slot == smallest.slot {
                Smallest::UNKNOWN
            } else {
                smallest
            };
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, v: usize, w: usize, more: f64) {
        self.set(v, w, self.get(v, w) + more);
    }

    /// The pair of slots with the smallest loss; the lowest slots in case of a tie, `None` if all losses are infinite.
    pub(crate) fn best_merger(&mut self) -> Option<(usize, usize)> {
        let mut best = (f64::INFINITY, None);
        for v in 0..self.n_slots {
            if self.smallest[v].slot == Smallest::UNKNOWN.slot {
                self.smallest[v] = self.search_row(v);
            }
            let Smallest { loss, slot: w } = self.smallest[v];
            if loss < best.0 {
                best = (loss, Some((v, w)));
            }
        }
        best.1
    }

    fn search_row(&self, v: usize) -> Smallest {
        let row = &self.values[v * self.n_slots + v + 1..(v + 1) * self.n_slots];
        let loss = row.iter().copied().fold(f64::INFINITY, f64::min);
        let at = row.iter().position(|&other| other == loss).unwrap_or(0);
        Smallest { loss, slot: v + 1 + at }
    }
}
