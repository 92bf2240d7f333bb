//! Learning rates that change while training.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A learning rate that depends on the number of steps alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Always the same.
    Constant {
        /// The learning rate.
        rate: f64,
    },
    /// From zero up to `rate` along a line, then down to zero along half a wave of the cosine.
    Cosine {
        /// The highest learning rate.
        rate: f64,
        /// The number of steps until zero, those of the rise among them.
        n_steps: u64,
        /// The number of steps of the rise.
        n_warmup: u64,
    },
}

impl Schedule {
    /// The learning rate of step `step`, counted from 0.
    ///
    /// The rise is η (step + 1)/`n_warmup`, so that no step is lost; with t the share of the other
    /// steps that has passed, what follows is η (1 + cos πt)/2.
    pub fn rate(self, step: u64) -> f64 {
        match self {
            Schedule::Constant { rate } => rate,
            Schedule::Cosine { rate, n_warmup, .. } if step < n_warmup => {
                rate * (step + 1) as f64 / n_warmup as f64
            }
            Schedule::Cosine { n_steps, .. } if step >= n_steps => 0.0,
            Schedule::Cosine { rate, n_steps, n_warmup } => {
                let t = (step - n_warmup) as f64 / (n_steps - n_warmup) as f64;
                rate * 0.5 * (1.0 + (PI * t).cos())
            }
        }
    }
}

/// A learning rate that falls when the held-out loss stops falling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    rate: f64,
    factor: f64,
    patience: u32,
    best: Option<f64>,
    n_worse: u32,
}

impl Plateau {
    /// Divides by `factor` whenever `patience` observations in a row were no better than the best.
    ///
    /// # Panics
    /// If `factor` is not above 1, or `patience` is 0.
    pub fn new(rate: f64, factor: f64, patience: u32) -> Plateau {
        assert!(factor > 1.0 && patience > 0, "a learning rate that never falls, or always");
        Plateau { rate, factor, patience, best: None, n_worse: 0 }
    }

    /// The learning rate now.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes note of a held-out loss, and returns the learning rate from here on.
    ///
    /// A loss that is not a number is no improvement.
    pub fn observe(&mut self, loss: f64) -> f64 {
        let improved = self.best.is_none_or(|best| loss < best) && !loss.is_nan();
        if improved {
            (self.best, self.n_worse) = (Some(loss), 0);
        } else {
            self.n_worse += 1;
        }
        if self.n_worse == self.patience {
            self.rate /= self.factor;
            self.n_worse = 0;
        }
        self.rate
    }
}

/// The learning rate of the toolkit RNNLM (Mikolov et al. 2010): constant until the held-out loss
/// stops falling, then halved every epoch, until that does not help any more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Halving {
    rate: f64,
    min_improvement: f64,
    last: Option<f64>,
    halving: bool,
}

/// What to do after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Train another epoch.
    GoOn,
    /// Training has ended.
    Stop,
}

impl Halving {
    /// A loss has improved if the one before was more than `min_improvement` times as large; RNNLM
    /// has 1.003.
    pub fn new(rate: f64, min_improvement: f64) -> Halving {
        Halving { rate, min_improvement, last: None, halving: false }
    }

    /// The learning rate now.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes note of the held-out loss after an epoch.
    pub fn observe(&mut self, loss: f64) -> Verdict {
        let improved = self.last.is_none_or(|last| last >= loss * self.min_improvement);
        self.last = Some(loss);
        if !improved && self.halving {
            return Verdict::Stop;
        }
        self.halving |= !improved;
        if self.halving {
            self.rate /= 2.0;
        }
        Verdict::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_rises_falls_and_ends_at_zero() {
        let schedule = Schedule::Cosine { rate: 2.0, n_steps: 14, n_warmup: 4 };
        let rates: Vec<f64> = (0..16).map(|step| schedule.rate(step)).collect();
        assert_eq!(rates[..5], [0.5, 1.0, 1.5, 2.0, 2.0]);
        assert!((rates[9] - 1.0).abs() < 1e-15);
        assert!(rates[4..15].is_sorted_by(|a, b| a > b));
        assert_eq!(rates[14..], [0.0, 0.0]);
        let without = Schedule::Cosine { rate: 1.0, n_steps: 2, n_warmup: 0 };
        assert_eq!(without.rate(0), 1.0);
    }

    #[test]
    fn a_plateau_lowers_the_rate_after_its_patience() {
        let mut plateau = Plateau::new(1.0, 4.0, 2);
        let rates = [5.0, 4.0, 4.0, f64::NAN, 4.0, 3.9, 3.9, 4.0].map(|loss| plateau.observe(loss));
        assert_eq!(rates, [1.0, 1.0, 1.0, 0.25, 0.25, 0.25, 0.25, 0.0625]);
    }

    #[test]
    fn halving_goes_on_until_it_does_not_help() {
        let mut halving = Halving::new(0.1, 1.003);
        let verdicts = [6.0, 5.5, 5.49, 5.3, 5.2, 5.199].map(|loss| halving.observe(loss));
        assert_eq!(verdicts[..5], [Verdict::GoOn; 5]);
        assert_eq!(verdicts[5], Verdict::Stop);
        assert!((halving.rate() - 0.1 / 8.0).abs() < 1e-15);
    }

    #[test]
    fn state_is_stored_and_read_again() {
        let mut plateau = Plateau::new(1.0, 4.0, 2);
        let mut halving = Halving::new(0.1, 1.003);
        for _ in 0..2 {
            let stored = serde_json::to_string(&(plateau, halving)).unwrap();
            assert_eq!(
                serde_json::from_str::<(Plateau, Halving)>(&stored).unwrap(),
                (plateau, halving)
            );
            plateau.observe(3.0);
            halving.observe(3.0);
        }
    }
}
