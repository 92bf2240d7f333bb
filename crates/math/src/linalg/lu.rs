//! Linear equations in small matrices, in double precision.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::{factor, solve};
use faer::perm::PermRef;
use faer::{Mat, MatMut, MatRef, Par};

/// The triangular factors of a square matrix, with partial pivoting.
#[derive(Clone, Debug)]
pub struct Lu {
    factors: Mat<f64>,
    forward: Vec<usize>,
    backward: Vec<usize>,
}

impl Lu {
    /// Factorizes X. A singular X makes the solutions infinite or NaN.
    #[inline(never)]
    pub fn new(x: MatRef<'_, f64>) -> Lu {
        let (n, mut factors) = (x.nrows(), x.to_owned());
        let (mut forward, mut backward) = (vec![0usize; n], vec![0usize; n]);
        let scratch = factor::lu_in_place_scratch::<usize, f64>(n, n, Par::Seq, Default::default());
        factor::lu_in_place(
            factors.as_mut(),
            &mut forward,
            &mut backward,
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        );
        Lu { factors, forward, backward }
    }

    /// Replaces Y by X⁻¹ Y.
    #[inline(never)]
    pub fn solve(&self, y: MatMut<'_, f64>) {
        let n = self.factors.nrows();
        let scratch = solve::solve_in_place_scratch::<usize, f64>(n, y.ncols(), Par::Seq);
        solve::solve_in_place(
            self.factors.as_ref(),
            self.factors.as_ref(),
            PermRef::new_checked(&self.forward, &self.backward, n),
            y,
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn solutions_solve_the_equation() {
        let mut rng = Rng::new(1);
        let x = Mat::from_fn(5, 5, |_, _| rng.normal());
        let y = Mat::from_fn(5, 2, |_, _| rng.normal());
        let mut solution = &x * &y;
        Lu::new(x.as_ref()).solve(solution.as_mut());
        assert!((solution - y).norm_max() < 1e-12);
    }
}
