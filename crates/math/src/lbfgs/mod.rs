//! Minimising a function of many numbers from its value and gradient: L-BFGS (Liu and Nocedal 1989), and
//! OWL-QN (Andrew and Gao 2007) where a multiple of Σ|x| is added to it.
//!
//! The function is asked for value and gradient in one call. [`Lbfgs`] makes one step at a time and shows its
//! whole state, so that a trainer can report, stop, and go on from a checkpoint with the same numbers.
//! All sums are over fixed blocks, whatever the number of threads.
//!
//! ```
//! use latens_math::lbfgs::{Lbfgs, LbfgsParams, Outcome};
//!
//! // (x − 3)² + 10 (y + 1)²
//! let mut bowl = |x: &[f64], gradient: &mut [f64]| {
//!     gradient.copy_from_slice(&[2.0 * (x[0] - 3.0), 20.0 * (x[1] + 1.0)]);
//!     (x[0] - 3.0).powi(2) + 10.0 * (x[1] + 1.0).powi(2)
//! };
//! let mut search = Lbfgs::start(LbfgsParams::default(), vec![0.0; 2], &mut bowl);
//! while search.step(&mut bowl) == Outcome::Went {}
//! assert!((search.x()[0] - 3.0).abs() < 1e-4 && (search.x()[1] + 1.0).abs() < 1e-4);
//! ```

mod line_search;
mod orthant;
#[cfg(test)]
mod tests;
mod vectors;

use line_search::{Point, strong_wolfe};
use orthant::{pseudo_gradient, search_orthant};
use std::collections::VecDeque;
use vectors::{add_scaled, dot, linear, norm, norm_1, scale};

/// A function to minimise: writes its gradient at a point, and returns its value there.
pub type Function<'f> = dyn FnMut(&[f64], &mut [f64]) -> f64 + 'f;

/// When to stop, and how much to remember.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbfgsParams {
    /// How many of the last steps the curvature is learned from.
    pub memory: usize,
    /// What Σ|x| is multiplied with before it is added to the function: zero for plain L-BFGS.
    pub l1: f64,
    /// Converged if |gradient| is below this times max(1, |x|).
    pub gradient_tolerance: f64,
    /// Converged if the value fell by less than this share of it in the last [`LbfgsParams::period`] steps.
    pub value_tolerance: f64,
    /// See [`LbfgsParams::value_tolerance`].
    pub period: usize,
}

impl Default for LbfgsParams {
    /// The memory and the tolerances of CRFsuite.
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

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value fell.
    Went,
    /// The value fell, and there is little left to gain.
    Converged,
    /// No point with a smaller value was found: the minimum is as near as the function's precision lets
    /// one come. Nothing changed.
    Stuck,
}

/// A search for a minimum, between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Lbfgs {
    params: LbfgsParams,
    state: LbfgsState,
}

/// All that a search knows; what a checkpoint must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct LbfgsState {
    /// Where the search is.
    pub x: Vec<f64>,
    /// The gradient there, without that of Σ|x|.
    pub gradient: Vec<f64>,
    /// The last steps, the newest last.
    pub pairs: VecDeque<Pair>,
    /// The values of the last [`LbfgsParams::period`] + 1 points, the newest last, Σ|x| included.
    pub values: VecDeque<f64>,
    /// How many steps were made.
    pub n_steps: u64,
}

/// A step and what it did to the gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// s = x_{k+1} − x_k.
    pub step: Vec<f64>,
    /// y = ∇f(x_{k+1}) − ∇f(x_k).
    pub change: Vec<f64>,
}

impl Lbfgs {
    /// Begins a search at a point.
    pub fn start(params: LbfgsParams, x: Vec<f64>, function: &mut Function) -> Lbfgs {
        let mut gradient = vec![0.0; x.len()];
        let value = function(&x, &mut gradient) + params.l1 * norm_1(&x);
        let values = VecDeque::from([value]);
        let state = LbfgsState { x, gradient, pairs: VecDeque::new(), values, n_steps: 0 };
        Lbfgs { params, state }
    }

    /// Goes on with a search.
    ///
    /// # Panics
    /// If there is no value, or vectors differ in length.
    pub fn resume(params: LbfgsParams, state: LbfgsState) -> Lbfgs {
        let n = state.x.len();
        let fits = |pair: &Pair| pair.step.len() == n && pair.change.len() == n;
        assert!(state.gradient.len() == n && state.pairs.iter().all(fits), "one length for all");
        assert!(!state.values.is_empty(), "the value of the point is known");
        Lbfgs { params, state }
    }

    /// Where the search is.
    pub fn x(&self) -> &[f64] {
        &self.state.x
    }

    /// The value there, Σ|x| included.
    pub fn value(&self) -> f64 {
        *self.state.values.back().expect("the value of the point is known")
    }

    /// The length of the gradient there, that of Σ|x| included as far as it can be gone down.
    pub fn gradient_norm(&self) -> f64 {
        norm(&self.descent())
    }

    /// All that the search knows.
    pub fn state(&self) -> &LbfgsState {
        &self.state
    }

    /// The point, without the rest.
    pub fn into_x(self) -> Vec<f64> {
        self.state.x
    }

    /// Whether the gradient is as good as zero, before any step.
    fn is_flat(&self, gradient_norm: f64) -> bool {
        gradient_norm <= self.params.gradient_tolerance * norm(&self.state.x).max(1.0)
    }

    /// Makes a step.
    pub fn step(&mut self, function: &mut Function) -> Outcome {
        let gradient = self.descent();
        let length = norm(&gradient);
        if self.is_flat(length) {
            return Outcome::Converged;
        }
        let direction = self.direction(&gradient);
        // Without any curvature known, a step of length one.
        let first = if self.state.pairs.is_empty() { 1.0 / length } else { 1.0 };
        let found = self.search(&direction, &gradient, first, function).or_else(|| {
            // The curvature misleads: once more, straight down.
            if self.state.pairs.is_empty() {
                return None;
            }
            self.state.pairs.clear();
            let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
            self.search(&down, &gradient, 1.0 / length, function)
        });
        let Some(point) = found else { return Outcome::Stuck };
        self.accept(point);
        if self.is_flat(self.gradient_norm()) || self.is_slow() {
            return Outcome::Converged;
        }
        Outcome::Went
    }

    fn search(
        &self,
        direction: &[f64],
        gradient: &[f64],
        first: f64,
        function: &mut Function,
    ) -> Option<Point> {
        let LbfgsState { x, .. } = &self.state;
        if self.params.l1 > 0.0 {
            let l1 = self.params.l1;
            return search_orthant(function, l1, x, self.value(), gradient, direction, first);
        }
        strong_wolfe(function, x, self.value(), gradient, direction, first)
    }

    /// The gradient, or with Σ|x| the slope in the direction of steepest descent.
    fn descent(&self) -> Vec<f64> {
        if self.params.l1 > 0.0 {
            return pseudo_gradient(&self.state.x, &self.state.gradient, self.params.l1);
        }
        self.state.gradient.clone()
    }

    /// −H g by the two-loop recursion (Nocedal and Wright, algorithm 7.4), H ≈ the inverse Hessian.
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
            // What would go up is left alone (Andrew and Gao 2007, §3.2).
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
        self.state.n_steps += 1;
    }

    /// Whether the value fell by too little lately.
    fn is_slow(&self) -> bool {
        let values = &self.state.values;
        values.len() > self.params.period
            && values[0] - self.value() < self.params.value_tolerance * self.value().abs()
    }
}
