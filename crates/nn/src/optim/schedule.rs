//! Learning-rate schedules.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A learning rate that depends only on the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// A constant learning rate.
    Constant {
        /// Learning rate.
        rate: f64,
    },
    /// Linear warmup to `rate`, then cosine decay to zero.
    Cosine {
        /// Peak learning rate.
        rate: f64,
        /// Number of steps until zero, including the warmup.
        n_steps: u64,
        /// Number of warmup steps.
        n_warmup: u64,
    },
    /// A constant rate for the first `n_flat` steps, then linear decay to zero.
    Linear {
        /// Initial learning rate.
        rate: f64,
        /// Number of steps until zero.
        n_steps: u64,
        /// Number of steps at the initial rate.
        n_flat: u64,
    },
}

impl Schedule {
    /// Returns the learning rate of step `step`, counted from 0.
    ///
    /// The warmup is η (step + 1)/`n_warmup`, so that the first step is not zero. Afterwards the rate is
    /// η (1 + cos πt)/2, where t is the fraction of the remaining steps that has passed.
    pub fn rate(self, step: u64) -> f64 {
        match self {
            Schedule::Constant { rate } => rate,
            Schedule::Linear { rate, n_flat, .. } if step < n_flat => rate,
            Schedule::Linear { n_steps, .. } if step >= n_steps => 0.0,
            Schedule::Linear { rate, n_steps, n_flat } => {
                rate * (n_steps - step) as f64 / (n_steps - n_flat) as f64
            }
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

/// A learning rate that falls when the validation loss stops improving.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    rate: f64,
    factor: f64,
    patience: u32,
    best: Option<f64>,
    n_worse: u32,
}

impl Plateau {
    /// Creates a schedule that divides the rate by `factor` after `patience` consecutive losses without improvement.
    ///
    /// # Panics
    /// If `factor` is not greater than 1, or `patience` is 0.
    pub fn new(rate: f64, factor: f64, patience: u32) -> Plateau {
        assert!(
            factor > 1.0 && patience > 0,
            "`factor` must be greater than 1 and `patience` positive"
        );
        Plateau { rate, factor, patience, best: None, n_worse: 0 }
    }

    /// Whether this is a state that training from `first` can reach, for schedules read from files: its constants are
    /// the same, and its rate is positive and not larger.
    pub fn follows(&self, first: &Plateau) -> bool {
        let is_counted = self.n_worse < self.patience;
        let constants = |plateau: &Plateau| (plateau.factor, plateau.patience);
        let is_rate = self.rate >= 0.0 && self.rate <= first.rate;
        constants(self) == constants(first) && is_rate && is_counted
    }

    /// Current learning rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Records a validation loss and returns the new learning rate. A NaN loss is not an improvement.
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

/// The schedule of the RNNLM toolkit (Mikolov et al. 2010): constant until the validation loss stops improving, then
/// halved every epoch until that no longer helps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Halving {
    rate: f64,
    min_improvement: f64,
    last: Option<f64>,
    halving: bool,
}

/// Whether to train another epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Train another epoch.
    GoOn,
    /// Stop training.
    Stop,
}

impl Halving {
    /// Creates a schedule. A loss has improved if the previous one was at least `min_improvement` times as large; RNNLM
    /// uses 1.003.
    pub fn new(rate: f64, min_improvement: f64) -> Halving {
        Halving { rate, min_improvement, last: None, halving: false }
    }

    /// Whether this is a state that training from `first` can reach, for schedules read from files.
    pub fn follows(&self, first: &Halving) -> bool {
        let is_rate = self.rate >= 0.0 && self.rate <= first.rate;
        is_rate && self.min_improvement == first.min_improvement
    }

    /// Current learning rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Records the validation loss after an epoch.
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
    fn the_linear_schedule_is_flat_and_then_falls_to_zero() {
        let linear = Schedule::Linear { rate: 2.0, n_steps: 10, n_flat: 4 };
        let rates: Vec<f64> = [0, 3, 4, 7, 9, 10, 99].map(|step| linear.rate(step)).to_vec();
        let expected = [2.0, 2.0, 2.0, 1.0, 1.0 / 3.0, 0.0, 0.0];
        assert!(rates.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{rates:?}");
    }

    #[test]
    fn the_cosine_schedule_warms_up_and_decays_to_zero() {
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
    fn the_plateau_schedule_lowers_the_rate_after_its_patience() {
        let mut plateau = Plateau::new(1.0, 4.0, 2);
        let rates = [5.0, 4.0, 4.0, f64::NAN, 4.0, 3.9, 3.9, 4.0].map(|loss| plateau.observe(loss));
        assert_eq!(rates, [1.0, 1.0, 1.0, 0.25, 0.25, 0.25, 0.25, 0.0625]);
    }

    #[test]
    fn a_stored_schedule_with_other_constants_does_not_follow() {
        let first = Plateau::new(1.0, 4.0, 2);
        let mut later = first;
        for loss in [5.0, 6.0, 7.0, 8.0] {
            later.observe(loss);
        }
        assert!(first.follows(&first) && later.follows(&first) && !first.follows(&later));
        for wrong in [
            Plateau { factor: 0.0, ..first },
            Plateau { patience: 0, ..first },
            Plateau { rate: -1.0, ..first },
            Plateau { rate: f64::NAN, ..first },
            Plateau { rate: 1e300, ..first },
            Plateau { n_worse: 2, ..first },
        ] {
            assert!(!wrong.follows(&first), "{wrong:?}");
        }
        let first = Halving::new(1.0, 1.003);
        assert!(Halving { rate: 0.5, ..first }.follows(&first));
        assert!(!Halving { rate: 2.0, ..first }.follows(&first));
        assert!(!Halving { min_improvement: 0.0, ..first }.follows(&first));
    }

    #[test]
    fn halving_stops_when_it_no_longer_helps() {
        let mut halving = Halving::new(0.1, 1.003);
        let verdicts = [6.0, 5.5, 5.49, 5.3, 5.2, 5.199].map(|loss| halving.observe(loss));
        assert_eq!(verdicts[..5], [Verdict::GoOn; 5]);
        assert_eq!(verdicts[5], Verdict::Stop);
        assert!((halving.rate() - 0.1 / 8.0).abs() < 1e-15);
    }

    #[test]
    fn schedules_round_trip_through_json() {
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
