//! A step length that meets the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6).

use super::Function;
use super::vectors::{dot, linear};

/// The value must fall by this share of what the slope promises.
pub(super) const SUFFICIENT: f64 = 1e-4;
/// The slope must fall to this share.
const CURVATURE: f64 = 0.9;
/// How often the function is asked before the search gives up.
const MAX_TRIALS: usize = 25;

/// A point, and the function there.
pub(super) struct Point {
    pub(super) x: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    pub(super) value: f64,
}

/// One place on the line: φ(a) = f(x + a d).
struct Trial {
    length: f64,
    value: f64,
    slope: f64,
    point: Option<Point>,
}

/// Looks along `direction` for a point with a smaller value and slope, at `first` times its length first.
/// `None` if there is none within the function's precision.
pub(super) fn strong_wolfe(
    function: &mut Function,
    x: &[f64],
    value: f64,
    gradient: &[f64],
    direction: &[f64],
    first: f64,
) -> Option<Point> {
    let slope = dot(gradient, direction);
    if slope >= 0.0 || slope.is_nan() {
        return None;
    }
    let mut line = Line { function, x, direction, value, slope, n_trials: 0 };
    let mut before = Trial { length: 0.0, value, slope, point: None };
    let mut length = first;
    while line.n_trials < MAX_TRIALS {
        let trial = line.try_length(length);
        // A value that is not a number is as bad as a large one.
        let is_worse = before.point.is_some() && trial.value >= before.value;
        if !line.is_lower(&trial) || is_worse {
            return line.zoom(before, trial);
        }
        if line.is_flat(&trial) {
            return trial.point;
        }
        if trial.slope >= 0.0 {
            return line.zoom(trial, before);
        }
        length = 2.0 * trial.length;
        before = trial;
    }
    before.point
}

struct Line<'a, 'f> {
    function: &'a mut Function<'f>,
    x: &'a [f64],
    direction: &'a [f64],
    value: f64,
    slope: f64,
    n_trials: usize,
}

impl Line<'_, '_> {
    fn try_length(&mut self, length: f64) -> Trial {
        self.n_trials += 1;
        let x = linear(self.x, length, self.direction);
        let mut gradient = vec![0.0; x.len()];
        let value = (self.function)(&x, &mut gradient);
        let slope = dot(&gradient, self.direction);
        Trial { length, value, slope, point: Some(Point { x, gradient, value }) }
    }

    /// The first condition: f(x + a d) ≤ f(x) + c₁ a slope.
    fn is_lower(&self, trial: &Trial) -> bool {
        trial.value <= self.value + SUFFICIENT * trial.length * self.slope
    }

    /// The second one: |slope there| ≤ c₂ |slope here|.
    fn is_flat(&self, trial: &Trial) -> bool {
        trial.slope.abs() <= -CURVATURE * self.slope
    }

    /// Between a good length and one on the other side of a minimum there is a better one.
    fn zoom(&mut self, mut low: Trial, mut high: Trial) -> Option<Point> {
        while self.n_trials < MAX_TRIALS {
            let trial = self.try_length(between(&low, &high));
            if !self.is_lower(&trial) || trial.value >= low.value {
                high = trial;
                continue;
            }
            if self.is_flat(&trial) {
                return trial.point;
            }
            if trial.slope * (high.length - low.length) >= 0.0 {
                high = low;
            }
            low = trial;
        }
        // Lower, if not flat enough, is better than nothing.
        low.point
    }
}

/// The minimum of the cubic through both values and slopes, or the middle if that is too near to an end.
fn between(a: &Trial, b: &Trial) -> f64 {
    let middle = 0.5 * (a.length + b.length);
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.length - b.length);
    let root = d1 * d1 - a.slope * b.slope;
    if root < 0.0 || !root.is_finite() {
        return middle;
    }
    let d2 = (b.length - a.length).signum() * root.sqrt();
    let share = (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    let length = b.length - (b.length - a.length) * share;
    let margin = 0.1 * (b.length - a.length).abs();
    let (from, to) = (a.length.min(b.length) + margin, a.length.max(b.length) - margin);
    if length >= from && length <= to { length } else { middle }
}
