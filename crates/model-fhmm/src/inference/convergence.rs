//! The loop of mean-field sweeps over a block of sentences, until each has converged.

use crate::emission::coupling::Coupling;
use crate::inference::mean_field::MeanField;
use latens_math::Real;

/// Convergence criterion of a sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// Maximum number of sweeps.
    pub(crate) sweeps: usize,
    /// Minimum gain of the bound per sweep, in nats per token.
    pub(crate) gain: f64,
    /// Minimum change of a posterior per sweep.
    pub(crate) change: f64,
}

impl Stop {
    /// Criterion for training.
    pub(crate) fn after(sweeps: usize) -> Stop {
        Stop { sweeps, gain: 1e-4, change: 1e-3 }
    }

    /// Criterion for validation and for use of the fitted model.
    pub(crate) fn accurate() -> Stop {
        Stop::after(50)
    }
}

/// Result for one sentence.
pub(crate) struct SentenceResult<'f, T> {
    /// Index of the sentence in the block.
    pub(crate) sentence: usize,
    pub(crate) words: &'f [u32],
    pub(crate) fields: &'f [T],
    pub(crate) tilted: &'f [T],
    pub(crate) bound: f64,
    pub(crate) sweeps: usize,
}

impl<T: Real, C: Coupling<T>> MeanField<'_, T, C> {
    /// Sweeps until every sentence has converged, and reports each as soon as it has.
    pub(crate) fn run(mut self, stop: Stop, report: &mut dyn FnMut(SentenceResult<'_, T>)) {
        let mut sentences: Vec<usize> = (0..self.offsets.len() - 1).collect();
        let mut last = vec![f64::NEG_INFINITY; sentences.len()];
        let (row, mut before) = (self.distribution.shape.row(), vec![]);
        for sweeps in 1.. {
            before.clone_from(&self.gamma);
            self.sweep();
            let bounds = self.bounds();
            let is_done: Vec<bool> = (0..sentences.len())
                .map(|i| {
                    let (begin, end) = (self.offsets[i], self.offsets[i + 1]);
                    let gain = (bounds[i] - last[i]) / (end - begin) as f64;
                    sweeps >= stop.sweeps
                        || gain < stop.gain
                        || self.change(&before, begin * row..end * row) < stop.change
                })
                .collect();
            for i in (0..sentences.len()).filter(|&i| is_done[i]) {
                let (begin, end) = (self.offsets[i], self.offsets[i + 1]);
                report(SentenceResult {
                    sentence: sentences[i],
                    words: &self.words[begin..end],
                    fields: &self.fields[begin * row..end * row],
                    tilted: &self.tilted[begin * row..end * row],
                    bound: bounds[i],
                    sweeps,
                });
            }
            let mut keep = is_done.iter().map(|done| !done);
            last = bounds;
            last.retain(|_| keep.next().expect("one flag per sentence"));
            let mut keep = is_done.iter().map(|done| !done);
            sentences.retain(|_| keep.next().expect("one flag per sentence"));
            if sentences.is_empty() {
                return;
            }
            if is_done.contains(&true) {
                self.remove_converged(&is_done);
            }
        }
    }

    /// Largest change of a posterior since `before`.
    fn change(&self, before: &[T], range: std::ops::Range<usize>) -> f64 {
        let pairs = self.gamma[range.clone()].iter().zip(&before[range]);
        let mut largest = T::zero();
        for (&now, &before) in pairs {
            let change = if now > before { now - before } else { before - now };
            largest = if change > largest { change } else { largest };
        }
        largest.wide()
    }

    /// Removes the sentences that have converged.
    fn remove_converged(&mut self, is_done: &[bool]) {
        let (row, n_layers) = (self.distribution.shape.row(), self.distribution.shape.n_layers);
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let (mut to, mut kept) = (0, 0);
        for (i, _) in is_done.iter().enumerate().filter(|(_, done)| !**done) {
            let (begin, end) = (offsets[i], offsets[i + 1]);
            self.words.copy_within(begin..end, to);
            for values in [&mut self.fields, &mut self.gamma, &mut self.tilted] {
                values.copy_within(begin * row..end * row, to * row);
            }
            self.log_sums.copy_within(i * n_layers..(i + 1) * n_layers, kept * n_layers);
            to += end - begin;
            kept += 1;
            self.offsets.push(to);
        }
        self.words.truncate(to);
        self.partition.truncate(to);
        self.log_sums.truncate(kept * n_layers);
        for values in [&mut self.fields, &mut self.gamma, &mut self.tilted] {
            values.truncate(to * row);
        }
    }
}
