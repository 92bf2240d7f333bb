//! The optimizer, one step at a time.

use super::line_search::{Point, strong_wolfe};
use super::orthant::{pseudo_gradient, search_orthant};
use super::vectors::{add_scaled, dot, linear, norm, norm_1, scale};
use super::{Function, PartialFunction, Unknown};
use std::collections::VecDeque;

/// Memory, regularization and stopping criteria of [`Lbfgs`].
///
/// Exhaustive, as this crate is internal: the parameters of models are the stable interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbfgsParams {
    /// Number of recent steps that approximate the curvature.
    pub memory: usize,
    /// Coefficient of Σ|x|; 0 for plain L-BFGS.
    pub l1: f64,
    /// The search has converged if |gradient| is at most this times max(1, |x|).
    pub gradient_tolerance: f64,
    /// The search has converged if the value fell by less than this fraction in the last [`LbfgsParams::period`] steps.
    pub value_tolerance: f64,
    /// Number of steps that [`LbfgsParams::value_tolerance`] refers to.
    pub period: usize,
}

impl Default for LbfgsParams {
    /// The defaults of CRFsuite.
    fn default() -> LbfgsParams {
        LbfgsParams {
            memory: 6,
            l1: 0.0,
            gradient_tolerance: 1e-5,
            value_tolerance: 1e-5,
            period: 10,
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value fell.
    Improved,
    /// The value fell, and a stopping criterion is met.
    Converged,
    /// The line search found no smaller value within the precision of the function. The state is unchanged.
    Stuck,
}

/// A search for a minimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Lbfgs {
    params: LbfgsParams,
    state: LbfgsState,
}

/// The state of a search, as stored in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct LbfgsState {
    /// Current point.
    pub x: Vec<f64>,
    /// Gradient at `x`, without that of Σ|x|.
    pub gradient: Vec<f64>,
    /// Recent steps, newest last.
    pub pairs: VecDeque<Pair>,
    /// Values of the last [`LbfgsParams::period`] + 1 points including Σ|x|, newest last.
    pub values: VecDeque<f64>,
    /// Number of steps made.
    pub n_steps: u64,
}

/// A step and the change of the gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// s = x_{k+1} − x_k.
    pub step: Vec<f64>,
    /// y = ∇f(x_{k+1}) − ∇f(x_k).
    pub change: Vec<f64>,
}

impl Lbfgs {
    /// Starts a search at a point.
    pub fn start(params: LbfgsParams, x: Vec<f64>, function: &mut Function) -> Lbfgs {
        let mut gradient = vec![0.0; x.len()];
        let value = function(&x, &mut gradient) + params.l1 * norm_1(&x);
        let values = VecDeque::from([value]);
        let state = LbfgsState { x, gradient, pairs: VecDeque::new(), values, n_steps: 0 };
        Lbfgs { params, state }
    }

    /// Resumes a search.
    ///
    /// # Panics
    /// If `state.values` is empty, or vectors differ in length.
    pub fn resume(params: LbfgsParams, state: LbfgsState) -> Lbfgs {
        let n = state.x.len();
        let fits = |pair: &Pair| pair.step.len() == n && pair.change.len() == n;
        assert!(
            state.gradient.len() == n && state.pairs.iter().all(fits),
            "all vectors must have the same length"
        );
        assert!(!state.values.is_empty(), "the state must hold the current value");
        Lbfgs { params, state }
    }

    /// Current point.
    pub fn x(&self) -> &[f64] {
        &self.state.x
    }

    /// Value at the current point, including Σ|x|.
    pub fn value(&self) -> f64 {
        *self.state.values.back().expect("the state must hold the current value")
    }

    /// Norm of the gradient at the current point; with Σ|x|, of the pseudo-gradient.
    pub fn gradient_norm(&self) -> f64 {
        norm(&self.descent())
    }

    /// State for a checkpoint.
    pub fn state(&self) -> &LbfgsState {
        &self.state
    }

    /// Consumes the search and returns the current point.
    pub fn into_x(self) -> Vec<f64> {
        self.state.x
    }

    /// Returns whether the gradient is zero up to the tolerance.
    fn is_flat(&self, gradient_norm: f64) -> bool {
        gradient_norm <= self.params.gradient_tolerance * norm(&self.state.x).max(1.0)
    }

    /// Makes one step.
    pub fn step(&mut self, function: &mut Function) -> Outcome {
        let step = self.try_step(&mut |x: &[f64], gradient: &mut [f64]| Ok(function(x, gradient)));
        step.expect("the value is known everywhere")
    }

    /// Makes one step with a function that is evaluated elsewhere.
    ///
    /// If the value at a point is unknown, the state does not change. A step that is made again asks for the same points
    /// in the same order, so that values can arrive one by one.
    pub fn try_step(&mut self, function: &mut PartialFunction) -> Result<Outcome, Unknown> {
        let gradient = self.descent();
        let length = norm(&gradient);
        if self.is_flat(length) {
            return Ok(Outcome::Converged);
        }
        let direction = self.direction(&gradient);
        // Without any curvature, try a step of length one.
        let first = if self.state.pairs.is_empty() { 1.0 / length } else { 1.0 };
        let mut found = self.search(&direction, &gradient, first, function)?;
        if found.is_none() && !self.state.pairs.is_empty() {
            // The approximated curvature is misleading; retry along the negative gradient.
            let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
            found = self.search(&down, &gradient, 1.0 / length, function)?;
            self.state.pairs.clear();
        }
        let Some(point) = found else { return Ok(Outcome::Stuck) };
        self.accept(point);
        if self.is_flat(self.gradient_norm()) || self.is_stalled() {
            return Ok(Outcome::Converged);
        }
        Ok(Outcome::Improved)
    }

    fn search(
        &self,
        direction: &[f64],
        gradient: &[f64],
        first: f64,
        function: &mut PartialFunction,
    ) -> Result<Option<Point>, Unknown> {
        let LbfgsState { x, .. } = &self.state;
        if self.params.l1 > 0.0 {
            let l1 = self.params.l1;
            return search_orthant(function, l1, x, self.value(), gradient, direction, first);
        }
        strong_wolfe(function, x, self.value(), gradient, direction, first)
    }

    /// Returns the gradient, or with Σ|x| the pseudo-gradient.
    fn descent(&self) -> Vec<f64> {
        if self.params.l1 > 0.0 {
            return pseudo_gradient(&self.state.x, &self.state.gradient, self.params.l1);
        }
        self.state.gradient.clone()
    }

    /// Computes −H g by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4), where H approximates the
    /// inverse Hessian.
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.to_vec();
        scale(&mut direction, -1.0);
        let mut alphas = Vec::with_capacity(self.state.pairs.len());
        for Pair { step, change } in self.state.pairs.iter().rev() {
            let alpha = dot(step, &direction) / dot(step, change);
            add_scaled(&mut direction, -alpha, change);
            alphas.push(alpha);
        }
        if let Some(Pair { step, change }) = self.state.pairs.back() {
            scale(&mut direction, dot(step, change) / dot(change, change));
        }
        for (Pair { step, change }, alpha) in self.state.pairs.iter().zip(alphas.iter().rev()) {
            let beta = dot(change, &direction) / dot(step, change);
            add_scaled(&mut direction, alpha - beta, step);
        }
        if self.params.l1 > 0.0 {
            // Components that are not descent directions are zeroed (Andrew and Gao 2007, §3.2).
            let pairs = direction.iter_mut().zip(gradient);
            pairs.filter(|(d, g)| **d * **g >= 0.0).for_each(|(d, _)| *d = 0.0);
        }
        direction
    }

    fn accept(&mut self, point: Point) {
        let step = linear(&point.x, -1.0, &self.state.x);
        let change = linear(&point.gradient, -1.0, &self.state.gradient);
        // A pair without positive curvature would make H indefinite.
        if dot(&step, &change) > f64::EPSILON * norm(&step) * norm(&change) {
            self.state.pairs.push_back(Pair { step, change });
            if self.state.pairs.len() > self.params.memory {
                self.state.pairs.pop_front();
            }
        }
        (self.state.x, self.state.gradient) = (point.x, point.gradient);
        self.state.values.push_back(point.value);
        if self.state.values.len() > self.params.period + 1 {
            self.state.values.pop_front();
        }
        self.state.n_steps = self.state.n_steps.saturating_add(1);
    }

    /// Returns whether the value fell by less than the tolerance in the last period.
    fn is_stalled(&self) -> bool {
        let values = &self.state.values;
        values.len() > self.params.period
            && values[0] - self.value() < self.params.value_tolerance * self.value().abs()
    }
}
