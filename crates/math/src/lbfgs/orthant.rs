//! What Σ|x| changes: it has no derivative where a number is zero, and there most of them shall be.

use super::Function;
use super::line_search::{Point, SUFFICIENT};
use super::vectors::{dot, linear, norm_1};

/// How often a step is made shorter before the search gives up.
const MAX_TRIALS: usize = 40;

/// The slope of f + c Σ|x| in the direction of steepest descent (Andrew and Gao 2007, eq. 4): at zero the
/// number moves only if the gradient of f is steeper than c.
pub(super) fn pseudo_gradient(x: &[f64], gradient: &[f64], l1: f64) -> Vec<f64> {
    let slope = |(&x, &g): (&f64, &f64)| match x {
        x if x > 0.0 => g + l1,
        x if x < 0.0 => g - l1,
        _ if g < -l1 => g + l1,
        _ if g > l1 => g - l1,
        _ => 0.0,
    };
    x.iter().zip(gradient).map(slope).collect()
}

/// A step that stays in one orthant: numbers that would change their sign become zero. It is halved until the
/// value falls by a share of what the slope promises.
pub(super) fn search_orthant(
    function: &mut Function,
    l1: f64,
    x: &[f64],
    value: f64,
    slope: &[f64],
    direction: &[f64],
    first: f64,
) -> Option<Point> {
    let side = |(&x, &slope): (&f64, &f64)| if x == 0.0 { -slope } else { x };
    let orthant: Vec<f64> = x.iter().zip(slope).map(side).collect();
    let mut length = first;
    let mut gradient = vec![0.0; x.len()];
    for _ in 0..MAX_TRIALS {
        let mut next = linear(x, length, direction);
        next.iter_mut().zip(&orthant).for_each(|(x, side)| {
            if *x * side <= 0.0 {
                *x = 0.0;
            }
        });
        let next_value = function(&next, &mut gradient) + l1 * norm_1(&next);
        let promised = dot(&linear(&next, -1.0, x), slope);
        if next_value <= value + SUFFICIENT * promised && promised < 0.0 {
            return Some(Point { x: next, gradient, value: next_value });
        }
        length *= 0.5;
    }
    None
}
