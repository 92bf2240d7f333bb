//! The L1 term of OWL-QN, which is not differentiable where a component is zero.

use super::line_search::{Point, SUFFICIENT};
use super::vectors::{dot, linear, norm_1};
use super::{PartialFunction, Unknown};

/// Maximum number of step lengths tried.
const MAX_TRIALS: usize = 40;

/// Computes the pseudo-gradient of f + c Σ|x| (Andrew and Gao 2007, eq. 4): a component at zero moves only if the
/// gradient of f is steeper than c.
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

/// Searches along `direction` within one orthant: components that would change their sign become zero. The step length
/// is halved until the value falls by a fraction of what the slope predicts.
pub(super) fn search_orthant(
    function: &mut PartialFunction,
    l1: f64,
    x: &[f64],
    value: f64,
    slope: &[f64],
    direction: &[f64],
    first: f64,
) -> Result<Option<Point>, Unknown> {
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
        let next_value = function(&next, &mut gradient)? + l1 * norm_1(&next);
        let predicted = dot(&linear(&next, -1.0, x), slope);
        if next_value <= value + SUFFICIENT * predicted && predicted < 0.0 {
            return Ok(Some(Point { x: next, gradient, value: next_value }));
        }
        length *= 0.5;
    }
    Ok(None)
}
