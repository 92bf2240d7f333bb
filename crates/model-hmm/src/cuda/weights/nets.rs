//! All residual layers of a model on the device.

use crate::cuda::context::Weights;
use crate::cuda::weights::residual::{Formats, Residual, Scaled, Scratch};
use crate::params::Parameterization;
use crate::weights::state_vectors::{USES, Use};
use latens_cuda::{Array, CudaError, Derivative, Device, Precision, Shape, bf16};
use latens_nn::Layout;

/// A residual layer of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Net {
    Start,
    Transition,
    Emission,
    /// The layer of factored state vectors for a use.
    States(Use),
}

impl Net {
    fn index(self) -> usize {
        match self {
            Net::Start => 0,
            Net::Transition => 1,
            Net::Emission => 2,
            Net::States(of) => 3 + of as usize,
        }
    }
}

/// The residual layers of a model, in full or fast precision.
#[derive(Debug)]
pub(crate) enum Nets {
    Full(Layers<f32>),
    Fast(Layers<bf16>),
}

#[derive(Debug)]
pub(crate) struct Layers<T: Derivative> {
    all: Vec<Residual<T>>,
    scratch: Scratch<T>,
}

impl<T: Derivative> Layers<T> {
    fn new(
        device: &Device,
        layout: &Layout,
        names: &[String],
        n: usize,
        dim: usize,
    ) -> Result<Layers<T>, CudaError> {
        let layer = |name: &String| Residual::new(device, layout, name, n);
        let all = names.iter().map(layer).collect::<Result<_, _>>()?;
        Ok(Layers { all, scratch: Scratch::new(device, n, dim)? })
    }
}

impl Nets {
    /// The layers for at most n rows of `dim` numbers.
    pub(crate) fn new(
        device: &Device,
        layout: &Layout,
        parameterization: Parameterization,
        Shape { rows: n, columns: dim }: Shape,
        precision: Precision,
    ) -> Result<Nets, CudaError> {
        let mut names = ["start", "transition", "emission"].map(str::to_owned).to_vec();
        if parameterization == Parameterization::Factored {
            names.extend(USES.map(|(_, name)| format!("states.{name}")));
        }
        Ok(match precision {
            Precision::Full => Nets::Full(Layers::new(device, layout, &names, n, dim)?),
            Precision::Fast => Nets::Fast(Layers::new(device, layout, &names, n, dim)?),
        })
    }

    /// Computes the output of a layer; see [`Residual::forward`].
    pub(crate) fn forward(
        &mut self,
        net: Net,
        device: &Device,
        weights: &Array<f32>,
        values: (Formats<'_>, &mut Array<f32>),
        n: usize,
        dropout: (f32, u64),
    ) -> Result<(), CudaError> {
        let at = net.index();
        match self {
            Nets::Full(nets) => nets.all[at].forward(device, weights, values, n, dropout),
            Nets::Fast(nets) => nets.all[at].forward(device, weights, values, n, dropout),
        }
    }

    /// Backpropagates through a layer; see [`Residual::backward`]. All layers use the same buffers.
    pub(crate) fn backward(
        &mut self,
        net: Net,
        device: &Device,
        learned: &mut Weights,
        values: (Formats<'_>, &Array<f32>),
        d_x: Scaled<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let at = net.index();
        match self {
            Nets::Full(Layers { all, scratch }) => {
                all[at].backward(device, learned, values, d_x, n, scratch)
            }
            Nets::Fast(Layers { all, scratch }) => {
                all[at].backward(device, learned, values, d_x, n, scratch)
            }
        }
    }
}
