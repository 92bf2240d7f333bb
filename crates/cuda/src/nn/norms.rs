//! The layer norm at the end of a residual layer.

use crate::device::{grid, launch};
use crate::layers::{ROWS_OF_PART, warps};
use crate::{Array, Columns, CudaError, Derivative, Device};
use cudarc::driver::PushKernelArg;
use std::ops::Range;

/// Where the bias before a norm, its gain and its offset lie among the weights: side by side.
#[derive(Clone, Debug)]
pub struct NormWeights {
    all: Range<usize>,
}

impl NormWeights {
    /// Where all three lie.
    ///
    /// # Panics
    /// If they are not of the same length.
    pub fn new(all: Range<usize>) -> NormWeights {
        assert!(all.len().is_multiple_of(3), "a bias, a gain and an offset for each column");
        NormWeights { all }
    }

    fn dim(&self) -> usize {
        self.all.len() / 3
    }

    /// Bias, gain or offset.
    fn part(&self, i: usize) -> Range<usize> {
        let begin = self.all.start + i * self.dim();
        begin..begin + self.dim()
    }
}

impl Device {
    /// The layer norm of a + y of n rows, where y = D(ReLU(b + bias)) takes the place of b, and D drops numbers with
    /// probability `rate`, by the seed. Keeps what the backward pass needs.
    pub fn norm_of_sum(
        &self,
        out: &mut Array<f32>,
        (normalised, inverse_deviation): (&mut Array<f32>, &mut Array<f32>),
        (a, b): (&Array<f32>, &mut Array<f32>),
        (weights, of): (&Array<f32>, &NormWeights),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        let dim = of.dim();
        for array in [&*out, normalised, a, b] {
            assert!(n * dim <= array.len(), "whole rows");
        }
        assert!(n <= inverse_deviation.len(), "a deviation for each row");
        let [bias, gain, offset] = [0, 1, 2].map(|i| weights.at(of.part(i)));
        let config = warps(n);
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            "norm_of_sum",
            config,
            &mut out.0,
            &mut normalised.0,
            &mut inverse_deviation.0,
            &a.0,
            &mut b.0,
            &bias,
            &gain,
            &offset,
            &n,
            &dim,
            &rate,
            &seed
        )
    }

    /// The derivatives by a + y and by what was before the ReLU of y, of n rows, by those of the norm; `scale` is what
    /// dropout multiplied by. Those of bias, gain and offset are added to the gradient. `partial` is scratch.
    pub fn norm_backward<T: Derivative>(
        &self,
        (d_sum, d_z): (&mut Array<f32>, &mut Array<T>),
        d_out: &Array<f32>,
        (normalised, inverse_deviation, y): (&Array<f32>, &Array<f32>, &Array<f32>),
        (weights, gradient, of): (&Array<f32>, &mut Array<f32>, &NormWeights),
        (n, scale): (usize, f32),
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let (dim, n_parts) = (of.dim(), n.div_ceil(ROWS_OF_PART));
        for array in [&*d_sum, d_out, normalised, y] {
            assert!(n * dim <= array.len(), "whole rows");
        }
        assert!(n * dim <= d_z.len(), "whole rows");
        assert!(n <= inverse_deviation.len(), "a deviation for each row");
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * 3 * dim)?;
        let gain = weights.at(of.part(1));
        let config = grid((n_parts, 1, 1), (64, 4));
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            T::NORM_BACKWARD,
            config,
            &mut d_sum.0,
            &mut d_z.0,
            &mut partial.0,
            &d_out.0,
            &normalised.0,
            &inverse_deviation.0,
            &y.0,
            &gain,
            &n,
            &dim,
            &scale
        )?;
        self.add_column_sums(
            (gradient, of.all.clone()),
            partial,
            n_parts,
            Columns::all(of.all.len()),
        )
    }
}
