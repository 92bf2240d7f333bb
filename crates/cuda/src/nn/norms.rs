//! The layer norm at the end of a residual layer.

use super::formats::Derivative;
use super::layers::{Columns, ROWS_OF_PART};
use crate::device::{Array, CudaError, Device, at_least, grid, int, warps};
use std::ops::Range;

/// Range of the weights of a layer norm: the bias of the layer before it, its gain and its offset, one after the other.
#[derive(Clone, Debug)]
pub struct NormWeights {
    all: Range<usize>,
}

impl NormWeights {
    /// The weights in this range, a third of which each of bias, gain and offset takes.
    ///
    /// # Panics
    /// If the length of the range is not a multiple of 3.
    pub fn new(all: Range<usize>) -> NormWeights {
        assert!(
            all.len().is_multiple_of(3),
            "the number of weights must be a multiple of 3, got {}",
            all.len()
        );
        NormWeights { all }
    }

    fn dim(&self) -> usize {
        self.all.len() / 3
    }

    fn bias(&self) -> Range<usize> {
        self.all.start..self.all.start + self.dim()
    }

    fn gain(&self) -> Range<usize> {
        self.bias().end..self.bias().end + self.dim()
    }

    fn offset(&self) -> Range<usize> {
        self.gain().end..self.all.end
    }
}

/// What the backward pass of a layer norm needs, for derivatives of type `T`.
#[derive(Debug)]
pub struct NormKept<T: Derivative> {
    /// The normalized sums.
    pub normalized: Array<T::Activation>,
    /// 1/deviation of each row.
    pub inverse_deviation: Array<f32>,
    /// Bits that tell where y > 0, [`NormKept::n_words`] words per row. Bit l of word 4 g + j is that of column
    /// 128 g + 4 l + j.
    pub positive: Array<u32>,
}

impl<T: Derivative> NormKept<T> {
    /// Memory for n rows of `dim` numbers.
    pub fn new(device: &Device, n: usize, dim: usize) -> Result<NormKept<T>, CudaError> {
        Ok(NormKept {
            normalized: device.zeros(n * dim)?,
            inverse_deviation: device.zeros(n)?,
            positive: device.zeros(n * NormKept::<T>::n_words(dim))?,
        })
    }

    /// Number of words of bits for a row of `dim` numbers.
    pub fn n_words(dim: usize) -> usize {
        4 * dim.div_ceil(128)
    }

    /// Panics unless there is room for n rows of `dim` numbers.
    #[track_caller]
    fn check(&self, n: usize, dim: usize) {
        at_least("normalized", self.normalized.len(), n * dim);
        at_least("inverse_deviation", self.inverse_deviation.len(), n);
        at_least("positive", self.positive.len(), n * NormKept::<T>::n_words(dim));
    }
}

impl Device {
    /// The layer norm of a + y for n rows, where y = D(ReLU(b + bias)), and D is dropout with this rate and seed. Keeps
    /// what the backward pass needs. `T` is the type of derivatives.
    pub fn norm_of_sum<T: Derivative>(
        &self,
        out: &mut Array<f32>,
        kept: &mut NormKept<T>,
        (a, b): (&Array<T::Activation>, &Array<T::Activation>),
        (weights, of): (&Array<f32>, &NormWeights),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        let dim = of.dim();
        at_least("out", out.len(), n * dim);
        kept.check(n, dim);
        at_least("a", a.len(), n * dim);
        at_least("b", b.len(), n * dim);
        T::NORM_OF_SUM(
            self,
            warps(n),
            out.all_mut(),
            kept.normalized.all_mut(),
            kept.inverse_deviation.all_mut(),
            kept.positive.all_mut(),
            a.all(),
            b.all(),
            weights.at(of.bias()),
            weights.at(of.gain()),
            weights.at(of.offset()),
            int(n),
            int(dim),
            rate,
            seed,
        )
    }

    /// Derivatives with respect to a + y and to the input of the ReLU of y, for n rows, given the derivatives with
    /// respect to the norm; `scale` is the factor of dropout. Adds the derivatives of bias, gain and offset to the
    /// gradient. `partial` is scratch.
    pub fn norm_backward<T: Derivative>(
        &self,
        (d_sum, d_z): (&mut Array<f32>, &mut Array<T>),
        d_out: &Array<f32>,
        kept: &NormKept<T>,
        (weights, gradient, of): (&Array<f32>, &mut Array<f32>, &NormWeights),
        (n, scale): (usize, f32),
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let (dim, n_parts) = (of.dim(), n.div_ceil(ROWS_OF_PART));
        at_least("d_sum", d_sum.len(), n * dim);
        at_least("d_z", d_z.len(), n * dim);
        at_least("d_out", d_out.len(), n * dim);
        kept.check(n, dim);
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * 3 * dim)?;
        T::NORM_BACKWARD(
            self,
            grid((n_parts, 1, 1), (64, 4)),
            d_sum.all_mut(),
            d_z.all_mut(),
            partial.all_mut(),
            d_out.all(),
            kept.normalized.all(),
            kept.inverse_deviation.all(),
            kept.positive.all(),
            weights.at(of.gain()),
            int(n),
            int(dim),
            scale,
        )?;
        let out = (gradient, of.all.clone());
        self.add_column_sums(out, partial, n_parts, Columns::all(3 * dim))
    }
}
