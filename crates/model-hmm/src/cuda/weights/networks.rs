//! The neural parameterization on the device; see `crate::weights::neural`.

use crate::cuda::context::{LogitFormat, Sizes, StepContext, Weights, range};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::tables::Tables;
use crate::cuda::weights::residual::{Residual, Scratch};
use crate::cuda::weights::state_vectors::{KeptOnDevice, StateVectors};
use crate::params::HmmParams;
use crate::weights::state_vectors::Use;
use latens_cuda::{CudaError, Derivative, Device, Precision, Transposed, bf16};
use latens_nn::Layout;
use std::ops::Range;

/// The networks, with the activations of the last forward pass.
pub(crate) struct Networks {
    dropout: f32,
    dim: usize,
    start_out: Range<usize>,
    words: Range<usize>,
    bias: Range<usize>,
    states: StateVectors,
    start: Residual,
    transition: Residual,
    emission: Residual,
    scratch: AnyScratch,
}

/// Buffers of backward passes, in full or fast precision.
enum AnyScratch {
    Full(Scratch<f32>),
    Fast(Scratch<bf16>),
}

impl AnyScratch {
    fn new(
        device: &Device,
        n: usize,
        dim: usize,
        precision: Precision,
    ) -> Result<AnyScratch, CudaError> {
        Ok(match precision {
            Precision::Full => AnyScratch::Full(Scratch::new(device, n, dim)?),
            Precision::Fast => AnyScratch::Fast(Scratch::new(device, n, dim)?),
        })
    }
}

impl Networks {
    /// The networks of n states, for weights with this layout.
    pub(crate) fn new(
        device: &Device,
        params: &HmmParams,
        layout: &Layout,
        n: usize,
        precision: Precision,
    ) -> Result<Networks, CudaError> {
        let net = |name: &str| Residual::new(device, layout, name, n);
        Ok(Networks {
            dropout: params.dropout as f32,
            dim: params.dim,
            start_out: range(layout, "start.out.weight"),
            words: range(layout, "words.weight"),
            bias: range(layout, "words.bias"),
            states: StateVectors::new(device, params, layout, n)?,
            start: net("start")?,
            transition: net("transition")?,
            emission: net("emission")?,
            scratch: AnyScratch::new(device, n, params.dim, precision)?,
        })
    }

    /// Computes the logits of starts and emissions on the side stream, and the factors of transitions. `seed` is that of
    /// the dropout; there is no dropout without it.
    pub(crate) fn forward(
        &mut self,
        context: &StepContext<'_>,
        weights: &latens_cuda::Array<f32>,
        kept: KeptOnDevice<'_>,
        seed: Option<u64>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let StepContext { device, side, precision, .. } = *context;
        let (n, dim, rate) = (kept.plan.n(), self.dim, seed.map_or(0.0, |_| self.dropout));
        let part = |i: u64| (rate, seed.unwrap_or(0).wrapping_add(i << 32));
        self.states.forward(device, weights, kept, part(0), precision)?;
        side.after(device)?;
        for (i, (device, net, of)) in [
            (side, &mut self.start, Use::Start),
            (device, &mut self.transition, Use::From),
            (side, &mut self.emission, Use::Emit),
        ]
        .into_iter()
        .enumerate()
        {
            let x = self.states.vectors(of);
            let n = kept.plan.n_of(of);
            net.forward(device, weights, x, n, part(1 + i as u64), precision)?;
        }
        side.multiply(
            (&mut tables.start, 0..n),
            0.0,
            (&self.start.out, 0..n * dim, Transposed::No),
            (weights, self.start_out.clone(), Transposed::Yes),
            (n, 1, dim),
            Precision::Full,
        )?;
        context.emissions.logits(
            side,
            &mut tables.emission,
            (weights, self.words.clone(), self.bias.clone()),
            (&self.emission.out, &kept.order()),
            (kept.plan.k, dim),
            precision,
        )
    }

    /// Computes the logits of transitions from some states to all.
    pub(crate) fn logits(
        &mut self,
        context: &StepContext<'_>,
        rows: Range<usize>,
        Sizes { n, n_from, .. }: Sizes,
        format: LogitFormat,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, dim) = (context.device, self.dim);
        let sizes = (rows.len(), n, dim);
        let (from, to) = (rows.start * dim..rows.end * dim, 0..n * dim);
        if format == LogitFormat::Half {
            if rows.start == 0 {
                for (half, factor, n) in [
                    (&mut tables.half_from, &self.transition.out, n_from),
                    (&mut tables.half_to, self.states.vectors(Use::To), n),
                ] {
                    device.reserve(half, n * dim)?;
                    device.to_half(half, factor, n * dim)?;
                }
            }
            device.reserve(&mut tables.half_logits, rows.len() * n)?;
            let out = (&mut tables.half_logits, 0..rows.len() * n);
            let from = (&tables.half_from, from, Transposed::No);
            let to = (&tables.half_to, to, Transposed::Yes);
            return device.multiply_half(out, from, to, sizes);
        }
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let from = (&self.transition.out, from, Transposed::No);
        let to = (self.states.vectors(Use::To), to, Transposed::Yes);
        let out = (&mut tables.logits, 0..rows.len() * n);
        device.multiply(out, 0.0, from, to, sizes, context.precision)
    }

    /// Backpropagates the derivatives of the logits to the gradient, those of starts and emissions on the side stream.
    pub(crate) fn backward(
        &mut self,
        context: &StepContext<'_>,
        learned: &mut Weights,
        planned: &DevicePlan<'_>,
        kept: KeptOnDevice<'_>,
        format: LogitFormat,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let StepContext { side, precision, .. } = *context;
        let KeptPlan { k, n_from, .. } = *kept.plan;
        let sizes = Sizes { k, n: kept.plan.n(), n_from };
        self.backward_start(side, learned, sizes.n, tables)?;
        let Weights { weights, gradient } = &mut *learned;
        context.emissions.backward(
            side,
            (&tables.emission, &kept.order()),
            (weights, &self.emission.out),
            (gradient, self.words.clone(), self.bias.clone()),
            &mut self.emission.d_out,
            (k, self.dim),
            precision,
        )?;
        self.backward_transition(context, planned, sizes, format, tables)?;
        let Networks { states, start, transition, emission, scratch, .. } = self;
        let nets = [start, emission, transition];
        match scratch {
            AnyScratch::Full(scratch) => {
                backward_nets(context, learned, states, nets, kept, scratch)
            }
            AnyScratch::Fast(scratch) => {
                backward_nets(context, learned, states, nets, kept, scratch)
            }
        }
    }

    fn backward_start(
        &mut self,
        side: &Device,
        learned: &mut Weights,
        n: usize,
        tables: &Tables,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (Weights { weights, gradient }, dim) = (learned, self.dim);
        let d_logits = |transposed| (&tables.start, 0..n, transposed);
        let all = 0..n * dim;
        let (out, f) = ((gradient, self.start_out.clone()), (&self.start.out, all.clone(), No));
        side.multiply(out, 1.0, d_logits(Yes), f, (1, dim, n), Precision::Full)?;
        let (out, w) = ((&mut self.start.d_out, all), (&*weights, self.start_out.clone(), No));
        side.multiply(out, 0.0, d_logits(No), w, (n, dim, 1), Precision::Full)
    }

    fn backward_transition(
        &mut self,
        context: &StepContext<'_>,
        planned: &DevicePlan<'_>,
        sizes: Sizes,
        format: LogitFormat,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let StepContext { device, precision, .. } = *context;
        let (Sizes { n, n_from, .. }, dim) = (sizes, self.dim);
        let (all, of_from, of_to) = (0..n_from * n, 0..n_from * dim, 0..n * dim);
        let Residual { out: from, d_out: d_from, .. } = &mut self.transition;
        if format == LogitFormat::Single {
            tables.transition_gradient(device, planned, sizes)?;
            let g = |transposed| (&tables.logits, all.clone(), transposed);
            let (to, (d_to, scale)) = self.states.vectors_and_gradients::<f32>(Use::To);
            let (from, to) = ((&*from, of_from.clone(), No), (to, of_to.clone(), No));
            let (d_from, d_to) = ((d_from, of_from), (d_to, of_to));
            device.multiply(d_from, 0.0, g(No), to, (n_from, dim, n), precision)?;
            return device.multiply(d_to, scale, g(Yes), from, (n, dim, n_from), precision);
        }
        // The derivatives of a row of logits are this row times the expected departures from its state.
        let g = |transposed| (tables.half_logits.as_bf16(), all.clone(), transposed);
        let (to, (d_to, scale)) = self.states.vectors_and_gradients::<bf16>(Use::To);
        let to = (to, of_to.clone(), No);
        device.multiply_as((d_from, of_from.clone()), 0.0, g(No), to, (n_from, dim, n))?;
        device.scale_rows(d_from, &tables.departures, (n_from, dim))?;
        let rounded = tables.half_from.as_bf16_mut();
        device.scaled_to_bf16(rounded, from, &tables.departures, (n_from, dim))?;
        let from = (&*rounded, of_from, No);
        device.multiply_as((d_to, of_to), scale, g(Yes), from, (n, dim, n_from))
    }
}

/// Backpropagates the derivatives of the outputs of the networks: starts and emissions on the side stream, then
/// transitions, then the state vectors.
fn backward_nets<T: Derivative>(
    context: &StepContext<'_>,
    learned: &mut Weights,
    states: &mut StateVectors,
    [start, emission, transition]: [&mut Residual; 3],
    kept: KeptOnDevice<'_>,
    scratch: &mut Scratch<T>,
) -> Result<(), CudaError> {
    let StepContext { device, side, .. } = *context;
    for (net, of) in [(start, Use::Start), (emission, Use::Emit)] {
        let (x, d_x) = states.vectors_and_gradients(of);
        net.backward(side, learned, x, d_x, kept.plan.n_of(of), scratch)?;
    }
    // Both streams use the scratch buffers and the gradient.
    device.after(side)?;
    let (x, d_x) = states.vectors_and_gradients(Use::From);
    transition.backward(device, learned, x, d_x, kept.plan.n_from, scratch)?;
    states.backward(device, learned, kept, scratch)
}
