//! The neural parameterization on the device; see `crate::weights::neural`.

use crate::cuda::context::{LogitFormat, Sizes, StepContext, Weights, range};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::tables::Tables;
use crate::cuda::weights::nets::{Net, Nets};
use crate::cuda::weights::state_vectors::{KeptOnDevice, StateVectors};
use crate::params::HmmParams;
use crate::weights::state_vectors::Use;
use latens_cuda::{Array, CudaError, Device, Precision, ProductShape, Shape, Transposed};
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
    nets: Nets,
    start: Output,
    transition: Output,
    emission: Output,
}

/// The output of a residual layer and its derivatives.
struct Output {
    out: Array<f32>,
    d_out: Array<f32>,
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
        let dim = params.dim;
        let shape = Shape { rows: n, columns: dim };
        let output = || Ok(Output { out: device.zeros(n * dim)?, d_out: device.zeros(n * dim)? });
        Ok(Networks {
            dropout: params.dropout as f32,
            dim,
            start_out: range(layout, "start.out.weight"),
            words: range(layout, "words.weight"),
            bias: range(layout, "words.bias"),
            states: StateVectors::new(device, params, layout, n)?,
            nets: Nets::new(device, layout, params.parameterization, shape, precision)?,
            start: output()?,
            transition: output()?,
            emission: output()?,
        })
    }

    /// Computes the logits of starts and emissions on the side stream, and the factors of transitions. `seed` is that of
    /// the dropout; there is no dropout without it.
    pub(crate) fn forward(
        &mut self,
        context: &StepContext<'_>,
        weights: &Array<f32>,
        kept: KeptOnDevice<'_>,
        seed: Option<u64>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let StepContext { device, side, precision, .. } = *context;
        let (n, dim, rate) = (kept.plan.n(), self.dim, seed.map_or(0.0, |_| self.dropout));
        let part = |i: u64| (rate, seed.unwrap_or(0).wrapping_add(i << 32));
        self.states.forward(device, (weights, &mut self.nets), kept, part(0), precision)?;
        side.after(device)?;
        for (i, (device, net, of, output)) in [
            (side, Net::Start, Use::Start, &mut self.start),
            (device, Net::Transition, Use::From, &mut self.transition),
            (side, Net::Emission, Use::Emit, &mut self.emission),
        ]
        .into_iter()
        .enumerate()
        {
            let (values, n) = ((self.states.vectors(of), &mut output.out), kept.plan.n_of(of));
            self.nets.forward(net, device, weights, values, n, part(1 + i as u64))?;
        }
        side.multiply(
            (&mut tables.start, 0..n),
            0.0,
            (&self.start.out, 0..n * dim, Transposed::No),
            (weights, self.start_out.clone(), Transposed::Yes),
            ProductShape { n, m: 1, k: dim },
            Precision::Full,
        )?;
        context.emissions.logits(
            side,
            &mut tables.emission,
            (weights, self.words.clone(), self.bias.clone()),
            (&self.emission.out, &kept.order()),
            Shape { rows: kept.plan.k, columns: dim },
            precision,
        )
    }

    /// Computes the logits of transitions from some states to all.
    pub(crate) fn logits(
        &mut self,
        context: &StepContext<'_>,
        rows: Range<usize>,
        sizes: Sizes,
        format: LogitFormat,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, dim, n) = (context.device, self.dim, sizes.n);
        let shape = ProductShape { n: rows.len(), m: n, k: dim };
        let (from, to) = (rows.start * dim..rows.end * dim, 0..n * dim);
        if format == LogitFormat::Half {
            if rows.start == 0 {
                self.round_from(device, sizes, tables)?;
            }
            device.reserve(&mut tables.half_logits, rows.len() * n)?;
            let out = (&mut tables.half_logits, 0..rows.len() * n);
            let from = (&tables.half_from, from, Transposed::No);
            let to = (self.states.vectors(Use::To).half, to, Transposed::Yes);
            return device.multiply_within(out, from, to, shape);
        }
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let from = (&self.transition.out, from, Transposed::No);
        let to = (self.states.vectors(Use::To).single, to, Transposed::Yes);
        let out = (&mut tables.logits, 0..rows.len() * n);
        device.multiply(out, 0.0, from, to, shape, context.precision)
    }

    /// Computes minus the powers of transitions without writing the logits; see [`Device::minus_powers`].
    pub(crate) fn minus_powers(
        &mut self,
        device: &Device,
        sizes: Sizes,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        self.round_from(device, sizes, tables)?;
        let out = (tables.half_logits.as_bf16_mut(), &mut tables.row_sums);
        let vectors = (&tables.half_from, self.states.vectors(Use::To).half);
        let shape = Shape { rows: sizes.n_from, columns: sizes.n };
        device.minus_powers(out, vectors, &mut tables.power_buffers, shape)
    }

    /// The number of dimensions of the vectors.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Rounds the vectors that transitions start from to half precision.
    fn round_from(
        &self,
        device: &Device,
        Sizes { n, n_from, .. }: Sizes,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        device.reserve(&mut tables.half_from, n * self.dim)?;
        device.to_half(&mut tables.half_from, (&self.transition.out, 0..n_from * self.dim))
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
            Shape { rows: k, columns: self.dim },
            precision,
        )?;
        self.backward_transition(context, planned, sizes, format, tables)?;
        self.backward_nets(context, learned, kept)
    }

    /// Backpropagates the derivatives of the outputs of the networks: starts and emissions on the side stream, then
    /// transitions, then the state vectors.
    fn backward_nets(
        &mut self,
        context: &StepContext<'_>,
        learned: &mut Weights,
        kept: KeptOnDevice<'_>,
    ) -> Result<(), CudaError> {
        let StepContext { device, side, .. } = *context;
        let Networks { states, nets, start, transition, emission, .. } = self;
        for (net, of, output) in
            [(Net::Start, Use::Start, start), (Net::Emission, Use::Emit, emission)]
        {
            let (x, d_x) = states.vectors_and_gradients(of);
            nets.backward(net, side, learned, (x, &output.d_out), d_x, kept.plan.n_of(of))?;
        }
        // Both streams use the scratch buffers and the gradient.
        device.after(side)?;
        let (x, d_x) = states.vectors_and_gradients(Use::From);
        let values = (x, &transition.d_out);
        nets.backward(Net::Transition, device, learned, values, d_x, kept.plan.n_from)?;
        states.backward(device, learned, nets, kept)
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
        let shape = ProductShape { n: 1, m: dim, k: n };
        side.multiply(out, 1.0, d_logits(Yes), f, shape, Precision::Full)?;
        let (out, w) = ((&mut self.start.d_out, all), (&*weights, self.start_out.clone(), No));
        side.multiply(out, 0.0, d_logits(No), w, ProductShape { n, m: dim, k: 1 }, Precision::Full)
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
        let Output { out: from, d_out: d_from } = &mut self.transition;
        if format == LogitFormat::Single {
            tables.transition_gradient(device, planned, sizes)?;
            let g = |transposed| (&tables.logits, all.clone(), transposed);
            let (to, (d_to, scale)) = self.states.vectors_and_gradients(Use::To);
            let (from, to) = ((&*from, of_from.clone(), No), (to.single, of_to.clone(), No));
            let (d_from, d_to) = ((d_from, of_from), (d_to, of_to));
            let shape = ProductShape { n: n_from, m: dim, k: n };
            device.multiply(d_from, 0.0, g(No), to, shape, precision)?;
            let shape = ProductShape { n, m: dim, k: n_from };
            return device.multiply(d_to, scale, g(Yes), from, shape, precision);
        }
        // The derivatives of a row of logits are this row times a factor.
        let g = |transposed| (tables.half_logits.as_bf16(), all.clone(), transposed);
        let (to, (d_to, scale)) = self.states.vectors_and_gradients(Use::To);
        let to = (to.bf16, of_to.clone(), No);
        let shape = ProductShape { n: n_from, m: dim, k: n };
        device.multiply_as((d_from, of_from.clone()), 0.0, g(No), to, shape)?;
        device.scale_rows(d_from, &tables.row_factors, Shape { rows: n_from, columns: dim })?;
        let rounded = tables.half_from.as_bf16_mut();
        let shape = Shape { rows: n_from, columns: dim };
        device.scaled_to_bf16(rounded, from, &tables.row_factors, shape)?;
        let from = (&*rounded, of_from, No);
        let shape = ProductShape { n, m: dim, k: n_from };
        device.multiply_as((d_to, of_to), scale, g(Yes), from, shape)
    }
}
