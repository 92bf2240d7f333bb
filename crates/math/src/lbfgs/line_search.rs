//! A step length that meets the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6).

use super::vectors::{dot, linear};
use super::{PartialFunction, Unknown};

/// c₁: the value must fall by at least this fraction of what the slope predicts.
pub(super) const SUFFICIENT: f64 = 1e-4;
/// c₂: the slope must fall to at most this fraction.
const CURVATURE: f64 = 0.9;
/// Maximum number of function evaluations.
const MAX_TRIALS: usize = 25;

/// A point with the value and gradient of the function.
pub(super) struct Point {
    pub(super) x: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    pub(super) value: f64,
}

/// A point on the line, φ(a) = f(x + a d).
struct Trial {
    length: f64,
    value: f64,
    slope: f64,
    point: Option<Point>,
}

/// Searches along `direction` for a point that meets the strong Wolfe conditions, starting with the step length `first`.
///
/// Returns `None` if no smaller value is found within the precision of the function.
pub(super) fn strong_wolfe(
    function: &mut PartialFunction,
    x: &[f64],
    value: f64,
    gradient: &[f64],
    direction: &[f64],
    first: f64,
) -> Result<Option<Point>, Unknown> {
    let slope = dot(gradient, direction);
    if slope >= 0.0 || slope.is_nan() {
        return Ok(None);
    }
    let mut line = Line { function, x, direction, value, slope, n_trials: 0 };
    let mut before = Trial { length: 0.0, value, slope, point: None };
    let mut length = first;
    while line.n_trials < MAX_TRIALS {
        let trial = line.try_length(length)?;
        // NaN fails `is_lower`, so it counts as a large value.
        let is_worse = before.point.is_some() && trial.value >= before.value;
        if !line.is_lower(&trial) || is_worse {
            return line.zoom(before, trial);
        }
        if line.is_flat(&trial) {
            return Ok(trial.point);
        }
        if trial.slope >= 0.0 {
            return line.zoom(trial, before);
        }
        length = 2.0 * trial.length;
        before = trial;
    }
    Ok(before.point)
}

struct Line<'a, 'f> {
    function: &'a mut PartialFunction<'f>,
    x: &'a [f64],
    direction: &'a [f64],
    value: f64,
    slope: f64,
    n_trials: usize,
}

impl Line<'_, '_> {
    fn try_length(&mut self, length: f64) -> Result<Trial, Unknown> {
        self.n_trials += 1;
        let x = linear(self.x, length, self.direction);
        let mut gradient = vec![0.0; x.len()];
        let value = (self.function)(&x, &mut gradient)?;
        let slope = dot(&gradient, self.direction);
        Ok(Trial { length, value, slope, point: Some(Point { x, gradient, value }) })
    }

    /// Sufficient decrease: f(x + a d) ≤ f(x) + c₁ a slope.
    fn is_lower(&self, trial: &Trial) -> bool {
        trial.value <= self.value + SUFFICIENT * trial.length * self.slope
    }

    /// Curvature: |slope at x + a d| ≤ c₂ |slope at x|.
    fn is_flat(&self, trial: &Trial) -> bool {
        trial.slope.abs() <= -CURVATURE * self.slope
    }

    /// Narrows the interval between a good step length and one on the other side of a minimum.
    fn zoom(&mut self, mut low: Trial, mut high: Trial) -> Result<Option<Point>, Unknown> {
        while self.n_trials < MAX_TRIALS {
            let trial = self.try_length(between(&low, &high))?;
            if !self.is_lower(&trial) || trial.value >= low.value {
                high = trial;
                continue;
            }
            if self.is_flat(&trial) {
                return Ok(trial.point);
            }
            if trial.slope * (high.length - low.length) >= 0.0 {
                high = low;
            }
            low = trial;
        }
        // A smaller value that misses the curvature condition is better than none.
        Ok(low.point)
    }
}

/// Returns the minimum of the cubic through both values and slopes, or the midpoint if that is too close to an end.
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
