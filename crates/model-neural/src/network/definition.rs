//! The networks: words ─▶ embeddings ─▶ hidden layers ─▶ logits of the next word.

use crate::network::batches::Batch;
use crate::network::masks::Masks;
use crate::params::{Architecture, NeuralParams, Tying};
use latens_corpus::WordId;
use latens_math::linalg::{Accum, MatRef, Par};
use latens_math::{Real, Rng};
use latens_nn::{
    Buffer, Dropout, Elman, ElmanScratch, Embedding, Layout, Linear, Lstm, LstmScratch, SparseRows,
    WeightId, bias_relu, biased_cross_entropy, fill_uniform, multiply, relu_backward,
};
use rayon::prelude::*;

/// The layout of the weights and the computations with them.
///
/// With D dropout (in training only), U the output embeddings, and e_w the input embedding of word w:
///
/// * feed-forward: x = D(concatenated e_w of the context), h¹ = D(ReLU(W¹ x + b¹)), h² = …
/// * simple recurrent: h_t = f(D(e_w) + A h_{t−1})
/// * LSTM: layers as in [`Lstm`], with input D(e_w), or D of the layer below. The last layer has as many units as an
///   embedding; the others may have more.
///
/// logits = U D(h) + b
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) layout: Layout,
    pub(crate) input: Embedding,
    pub(crate) body: Body,
    /// U; the table of `input` if embeddings are shared.
    pub(crate) output: WeightId,
    pub(crate) bias: WeightId,
    pub(crate) dim: usize,
    pub(crate) n_context: usize,
    /// Penalty on the mean square of D(h).
    pub(crate) activation_penalty: f64,
    forget_bias: f64,
    init_range: f64,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Ff(Vec<Linear>),
    Rnn(Elman),
    Lstm(Vec<Lstm>),
}

/// Reusable buffers of the forward and backward passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch<T> {
    /// Input embeddings after dropout.
    x: Buffer<T>,
    elman: ElmanScratch<T>,
    lstm: Vec<LstmScratch<T>>,
    /// Output of each layer after dropout.
    outs: Vec<Buffer<T>>,
    logits: Buffer<T>,
    /// Derivatives with respect to the output and input of a layer.
    d_out: Buffer<T>,
    d_in: Buffer<T>,
    /// Derivatives with respect to the input of a ReLU.
    d_z: Buffer<T>,
}

/// The derivatives of all weights.
#[derive(Clone, Debug)]
pub(crate) struct Gradient<T> {
    pub(crate) values: Vec<T>,
    /// The input embeddings of a batch, unless they are also the output embeddings.
    pub(crate) sparse: SparseRows,
}

impl<T: Real> Gradient<T> {
    pub(crate) fn new(network: &Network) -> Gradient<T> {
        let table = network.input.table();
        let is_shared = network.output == table;
        let sparse = if is_shared { SparseRows::default() } else { SparseRows::new(table) };
        Gradient { values: vec![T::zero(); network.layout.len()], sparse }
    }
}

impl Network {
    pub(crate) fn new(params: &NeuralParams, n_words: usize) -> Network {
        let (dim, n_context, mut layout) = (params.dim, params.n_context(), Layout::new());
        let input = Embedding::new(&mut layout, "input", n_words, dim);
        let body = match params.architecture {
            Architecture::Ff => Body::Ff(
                (0..params.n_layers)
                    .map(|i| {
                        let n_in = if i == 0 { n_context * dim } else { dim };
                        Linear::new(&mut layout, &format!("layer{i}"), n_in, dim)
                    })
                    .collect(),
            ),
            Architecture::Rnn => {
                Body::Rnn(Elman::new(&mut layout, "recurrent", dim, params.squash))
            }
            Architecture::Lstm => {
                let dims = params.layer_dims();
                let inputs = [dim].into_iter().chain(dims.iter().copied());
                let layer = |(i, (n_in, &dim)): (usize, (usize, &usize))| {
                    Lstm::new(&mut layout, &format!("layer{i}"), n_in, dim)
                };
                Body::Lstm(inputs.zip(&dims).enumerate().map(layer).collect())
            }
        };
        let output = match params.tying {
            Tying::Shared => input.table(),
            Tying::Separate => layout.add("output", &[n_words, dim]),
        };
        let bias = layout.add("bias", &[n_words]);
        let NeuralParams { activation_penalty, forget_bias, init_range, .. } = *params;
        Network {
            layout,
            input,
            body,
            output,
            bias,
            dim,
            n_context,
            activation_penalty,
            forget_bias,
            init_range,
        }
    }

    pub(crate) fn n_words(&self) -> usize {
        self.bias.len()
    }

    /// Initializes embeddings uniformly in ± `init_range`, layers with their own initializers, and output biases with 0
    /// ([`Network::init_bias`] sets them for training).
    pub(crate) fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        fill_uniform(self.input.table().of_mut(weights), self.init_range, rng);
        match &self.body {
            Body::Ff(layers) => layers.iter().for_each(|layer| layer.init(weights, rng)),
            Body::Rnn(layer) => layer.init(weights, rng),
            Body::Lstm(layers) => {
                layers.iter().for_each(|layer| layer.init(weights, self.forget_bias, rng))
            }
        }
        if self.output != self.input.table() {
            fill_uniform(self.output.of_mut(weights), self.init_range, rng);
        }
        self.bias.of_mut(weights).fill(T::zero());
    }

    /// Initializes output biases with the logarithm of the relative frequencies of the words in the training text, each
    /// counted once more than it occurs.
    ///
    /// With biases of 0, a simple recurrent network first learns these frequencies through an almost constant hidden vector,
    /// because its product with the output weights changes faster than the biases. The hyperbolic tangent is odd, so that the
    /// network may also settle at the negative of this vector, where frequent words are the least probable.
    pub(crate) fn init_bias<T: Real>(&self, weights: &mut [T], text: &[WordId]) {
        let mut counts = vec![1u64; self.n_words()];
        text.iter().for_each(|word| counts[word.index()] += 1);
        let total: u64 = counts.iter().sum();
        for (bias, &count) in self.bias.of_mut(weights).iter_mut().zip(&counts) {
            *bias = T::of((count as f64 / total as f64).ln());
        }
    }

    /// Size of the recurrent state of one stream.
    pub(crate) fn state_len(&self) -> usize {
        self.state_dims().iter().sum()
    }

    /// Sizes of the parts of the recurrent state. A state has the first part of each stream, then the second of each, …
    pub(crate) fn state_dims(&self) -> Vec<usize> {
        match &self.body {
            Body::Ff(_) => vec![],
            Body::Rnn(_) => vec![self.dim],
            Body::Lstm(layers) => layers.iter().flat_map(|layer| [layer.dim(); 2]).collect(),
        }
    }

    /// Computes the forward pass up to the last hidden layer, whose output is left in `scratch`. Updates the recurrent
    /// `state` of the streams, stored layer by layer. A batch with fewer streams than states belongs to the first streams.
    pub(crate) fn read<T: Real>(
        &self,
        weights: &[T],
        batch: &Batch,
        state: &mut [T],
        masks: Option<Masks>,
        scratch: &mut Scratch<T>,
        par: Par,
    ) {
        let (n_rows, dim, n_layers) = (batch.n_rows(), self.dim, self.n_layers());
        let part = |i: usize| masks.and_then(|masks| masks.units(i, n_layers));
        let period = masks.map_or(usize::MAX, |masks| masks.period(batch.n_streams));
        let Scratch { x, elman, lstm, outs, .. } = scratch;
        x.resize(n_rows * self.n_context, dim);
        self.input.forward(weights, &batch.inputs, x.view_mut(), par);
        drop_words(x, &batch.inputs, masks);
        drop_units(x, part(0), period, par);
        x.resize(n_rows, self.n_context * dim);
        outs.resize_with(n_layers, Buffer::new);
        let streams = batch.streams();
        match &self.body {
            Body::Ff(layers) => {
                for (i, layer) in layers.iter().enumerate() {
                    let (below, out) = outs.split_at_mut(i);
                    let (below, out) = (below.last().unwrap_or(x), &mut out[0]);
                    let weight = layer.weight().mat(weights).transpose();
                    out.resize(n_rows, dim);
                    multiply(out.view_mut(), Accum::Replace, below.view(), weight, par);
                    let bias = layer.bias().expect("feed-forward layers have a bias").of(weights);
                    bias_relu(out.view_mut(), bias, part(i + 1), par);
                }
            }
            Body::Rnn(layer) => {
                let state = &mut state[..batch.n_streams * dim];
                layer.forward(weights, x.view(), streams, state, elman, par);
                pass_on(elman.hidden(), &mut outs[0]);
                drop_units(&mut outs[0], part(1), period, par);
            }
            Body::Lstm(layers) => {
                lstm.resize_with(layers.len(), LstmScratch::default);
                let n_states = state.len() / self.state_len().max(1);
                let mut rest = state;
                for (i, (layer, scratch)) in layers.iter().zip(lstm).enumerate() {
                    let (below, out) = outs.split_at_mut(i);
                    let (below, out) = (below.last().unwrap_or(x).view(), &mut out[0]);
                    let (own, others) = rest.split_at_mut(2 * n_states * layer.dim());
                    let drop = masks.and_then(|masks| masks.weights(i));
                    with_first(own, batch.n_streams * layer.dim(), |state| {
                        layer.forward(weights, below, streams, state, drop, scratch, par);
                    });
                    pass_on(scratch.hidden(), out);
                    drop_units(out, part(i + 1), period, par);
                    rest = others;
                }
            }
        }
    }

    fn n_layers(&self) -> usize {
        match &self.body {
            Body::Ff(layers) => layers.len(),
            Body::Rnn(_) => 1,
            Body::Lstm(layers) => layers.len(),
        }
    }

    /// Computes the logits of the next word for each row, without the bias.
    fn predict<'s, T: Real>(
        &self,
        weights: &[T],
        scratch: &'s mut Scratch<T>,
        par: Par,
    ) -> &'s mut Buffer<T> {
        let out = scratch.outs.last().expect("there is at least one layer").view();
        scratch.logits.resize(out.nrows(), self.n_words());
        let logits = &mut scratch.logits;
        let u = self.output.mat(weights).transpose();
        multiply(logits.view_mut(), Accum::Replace, out, u, par);
        logits
    }

    /// Computes the logits of the next word for each row, with the bias.
    pub(crate) fn logits<'s, T: Real>(
        &self,
        weights: &[T],
        scratch: &'s mut Scratch<T>,
        par: Par,
    ) -> &'s mut [T] {
        let logits = self.predict(weights, scratch, par).values_mut();
        let add = |row: &mut [T]| {
            row.iter_mut().zip(self.bias.of(weights)).for_each(|(logit, b)| *logit += *b);
        };
        match par {
            Par::Seq => logits.chunks_exact_mut(self.n_words()).for_each(add),
            Par::Rayon(_) => logits.par_chunks_exact_mut(self.n_words()).for_each(add),
        }
        logits
    }

    /// Computes −Σ ln p of the targets of a batch.
    pub(crate) fn loss<T: Real>(
        &self,
        weights: &[T],
        batch: &Batch,
        state: &mut [T],
        scratch: &mut Scratch<T>,
        par: Par,
    ) -> f64 {
        self.read(weights, batch, state, None, scratch, par);
        let logits = self.predict(weights, scratch, par);
        let bias = self.bias.of(weights);
        biased_cross_entropy(logits.view_mut(), bias, &batch.targets, 1.0, par)
    }

    /// Like [`Network::loss`] with dropout, and writes `scale` times the derivatives to `gradient`.
    #[expect(clippy::too_many_arguments, reason = "weights, inputs, gradients and buffers")]
    pub(crate) fn learn<T: Real>(
        &self,
        weights: &[T],
        batch: &Batch,
        state: &mut [T],
        masks: Option<Masks>,
        scale: f64,
        gradient: &mut Gradient<T>,
        scratch: &mut Scratch<T>,
        par: Par,
    ) -> f64 {
        self.read(weights, batch, state, masks, scratch, par);
        let logits = self.predict(weights, scratch, par);
        let bias = self.bias.of(weights);
        let loss = biased_cross_entropy(logits.view_mut(), bias, &batch.targets, scale, par);
        self.clear(gradient, batch);
        let gradient = &mut gradient.values[..];
        self.backward(weights, batch, masks, scale, gradient, scratch, par);
        loss
    }

    /// Sets all derivatives to zero that are accumulated, i.e., all but those of U.
    fn clear<T: Real>(&self, gradient: &mut Gradient<T>, batch: &Batch) {
        let Gradient { values, sparse } = gradient;
        let (input, output) = (self.input.table(), self.output.range());
        let first = if self.output == input {
            0
        } else {
            sparse.restart(values, &batch.inputs);
            input.range().end
        };
        clear(&mut values[first..output.start]);
        clear(&mut values[output.end..]);
    }

    #[expect(clippy::too_many_arguments, reason = "weights, inputs, gradients and buffers")]
    fn backward<T: Real>(
        &self,
        weights: &[T],
        batch: &Batch,
        masks: Option<Masks>,
        scale: f64,
        gradient: &mut [T],
        scratch: &mut Scratch<T>,
        par: Par,
    ) {
        let (n_rows, dim, n_layers) = (batch.n_rows(), self.dim, self.n_layers());
        self.backward_of_output(weights, gradient, scratch, par);
        self.add_penalty(scale, scratch);
        let part = |i: usize| masks.and_then(|masks| masks.units(i, n_layers));
        let period = masks.map_or(usize::MAX, |masks| masks.period(batch.n_streams));
        let streams = batch.streams();
        let Scratch { x, elman, lstm, outs, d_out, d_in, d_z, .. } = scratch;
        for i in (0..n_layers).rev() {
            let below = if i == 0 { &*x } else { &outs[i - 1] };
            d_in.resize(n_rows, below.n_cols());
            match &self.body {
                Body::Ff(layers) => {
                    // Dropped units need no mask here: their outputs are zero, like those of inactive ReLUs.
                    d_z.resize(n_rows, dim);
                    let kept = part(i + 1).map_or(T::one(), Dropout::scale);
                    relu_backward(outs[i].view(), d_out.view(), kept, d_z.view_mut(), par);
                    let d_below = Some((d_in.view_mut(), Accum::Replace));
                    layers[i].backward(weights, below.view(), d_z.view(), gradient, d_below, par);
                }
                Body::Rnn(layer) => {
                    drop_units(d_out, part(1), period, par);
                    let (d_out, d_in) = (d_out.view(), d_in.view_mut());
                    layer.backward(weights, streams, elman, d_out, gradient, d_in, par);
                }
                Body::Lstm(layers) => {
                    drop_units(d_out, part(i + 1), period, par);
                    let drop = masks.and_then(|masks| masks.weights(i));
                    let (d_out, d_in) = (d_out.view(), d_in.view_mut());
                    let (layer, below) = (&layers[i], below.view());
                    let scratch = &mut lstm[i];
                    layer.backward(
                        weights, below, streams, drop, scratch, d_out, gradient, d_in, par,
                    );
                }
            }
            std::mem::swap(d_out, d_in);
        }
        d_out.resize(n_rows * self.n_context, dim);
        drop_units(d_out, part(0), period, par);
        drop_words(d_out, &batch.inputs, masks);
        self.input.backward(&batch.inputs, d_out.view(), gradient, par);
    }

    /// Adds the derivatives of the penalty on the output of the last layer, a mean over all tokens of a full batch.
    fn add_penalty<T: Real>(&self, scale: f64, scratch: &mut Scratch<T>) {
        if self.activation_penalty == 0.0 {
            return;
        }
        let out = scratch.outs.last().expect("there is at least one layer");
        let factor = T::of(scale * self.activation_penalty * 2.0 / self.dim as f64);
        let d_out = scratch.d_out.values_mut().iter_mut();
        d_out.zip(out.values()).for_each(|(d, &h)| *d += factor * h);
    }

    /// Backpropagates from the logits to U, b, and the output of the last layer.
    fn backward_of_output<T: Real>(
        &self,
        weights: &[T],
        gradient: &mut [T],
        scratch: &mut Scratch<T>,
        par: Par,
    ) {
        let Scratch { outs, logits, d_out, .. } = scratch;
        let out = outs.last().expect("there is at least one layer");
        d_out.resize(out.n_rows(), self.dim);
        let u = self.output.mat(weights);
        multiply(d_out.view_mut(), Accum::Replace, logits.view(), u, par);
        let d_u = self.output.mat_mut(gradient);
        multiply(d_u, Accum::Replace, logits.view().transpose(), out.view(), par);
        latens_nn::add_column_sums(logits.view(), self.bias.of_mut(gradient), par);
    }
}

/// Fills a large slice with zeros in parallel.
fn clear<T: Real>(numbers: &mut [T]) {
    numbers.par_chunks_mut(1 << 16).for_each(|part| part.fill(T::zero()));
}

/// Calls `f` with the first `n` values of both halves of a layer's state.
fn with_first<T: Real>(state: &mut [T], n: usize, f: impl FnOnce(&mut [T])) {
    let half = state.len() / 2;
    if n == half {
        return f(state);
    }
    let mut some = [&state[..n], &state[half..half + n]].concat();
    f(&mut some);
    state[..n].copy_from_slice(&some[..n]);
    state[half..half + n].copy_from_slice(&some[n..]);
}

fn pass_on<T: Real>(hidden: MatRef<'_, T>, out: &mut Buffer<T>) {
    out.resize(hidden.nrows(), hidden.ncols());
    out.view_mut().copy_from(hidden);
}

/// Drops units, or their derivatives.
fn drop_units<T: Real>(units: &mut Buffer<T>, dropout: Option<Dropout>, period: usize, par: Par) {
    if let Some(dropout) = dropout {
        dropout.apply_with_period(units.view_mut(), period, par);
    }
}

/// Drops the vectors of words, or their derivatives: the same words in all rows.
fn drop_words<T: Real>(rows: &mut Buffer<T>, words: &[u32], masks: Option<Masks>) {
    let Some(dropout) = masks.and_then(|masks| masks.words()) else { return };
    let dim = rows.n_cols();
    for (row, &word) in rows.values_mut().chunks_exact_mut(dim).zip(words) {
        let factor: T = dropout.factor(u64::from(word));
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::batches::Reader;
    use crate::params::{Mask, Memory};
    use latens_nn::Squash;
    use latens_nn::check::assert_gradient;

    /// Small networks of all kinds.
    fn kinds() -> Vec<NeuralParams> {
        let small = |params| NeuralParams { dim: 4, batch_size: 3, bptt: 3, ..params };
        let (ff, rnn, lstm) =
            (small(NeuralParams::ff()), small(NeuralParams::rnn()), small(NeuralParams::lstm()));
        vec![
            ff.clone(),
            NeuralParams { tying: Tying::Separate, memory: Memory::Reset, n_layers: 1, ..ff },
            NeuralParams { squash: Squash::Sigmoid, ..rnn.clone() },
            NeuralParams { tying: Tying::Shared, memory: Memory::Reset, ..rnn },
            NeuralParams { tying: Tying::Separate, memory: Memory::Reset, ..lstm.clone() },
            NeuralParams { n_layers: 3, ..lstm.clone() },
            NeuralParams {
                n_layers: 3,
                hidden_dim: 5,
                input_dropout: Some(0.3),
                layer_dropout: Some(0.2),
                word_dropout: 0.2,
                weight_dropout: 0.4,
                mask: Mask::Sequence,
                activation_penalty: 0.8,
                ..lstm
            },
        ]
    }

    fn text() -> Vec<WordId> {
        [2, 3, 1, 4, 1, 5, 2, 4, 1, 3, 1].map(WordId).to_vec()
    }

    /// Weights far enough from zero that all activations are nonlinear.
    fn weights(network: &Network) -> Vec<f64> {
        let mut weights = vec![0.0; network.layout.len()];
        fill_uniform(&mut weights, 0.7, &mut Rng::new(5));
        weights
    }

    #[test]
    fn gradients_agree_with_finite_differences_also_with_dropout() {
        let text = text();
        for params in kinds() {
            let network = Network::new(&params, 6);
            let weights = weights(&network);
            let reader = Reader::new(&params, &text);
            let masks = Masks::new(&NeuralParams { dropout: 0.4, ..params.clone() }, 7);
            for (masks, at) in [(None, 0), (masks, reader.len() - 1), (masks, 0)] {
                let state: Vec<f64> = (0..reader.n_streams() * network.state_len())
                    .map(|i| f64::from(i as u32 % 5) / 10.0)
                    .collect();
                let learn = |weights: &[f64], gradient: &mut Gradient<f64>, at: usize| {
                    let batch = reader.batch(at, &[]);
                    let (mut scratch, mut state) = (Scratch::default(), state.clone());
                    let (scale, par) = (0.5, Par::Seq);
                    let scratch = &mut scratch;
                    let state = &mut state;
                    let loss =
                        network.learn(weights, &batch, state, masks, scale, gradient, scratch, par);
                    let out = scratch.outs.last().unwrap().values();
                    let squares = out.iter().map(|h| h * h).sum::<f64>() / network.dim as f64;
                    scale * (loss + network.activation_penalty * squares)
                };
                // The derivatives of another batch must be overwritten.
                let mut gradient = Gradient::new(&network);
                learn(&weights, &mut gradient, reader.len() / 2);
                learn(&weights, &mut gradient, at);
                let mut ignored = Gradient::new(&network);
                let mut f = |weights: &[f64]| learn(weights, &mut ignored, at);
                assert_gradient(&mut f, &weights, &gradient.values, 1e-6);
            }
        }
    }

    #[test]
    fn without_output_weights_words_have_their_frequencies_in_the_training_text() {
        let text = text();
        for params in kinds() {
            let network = Network::new(&params, 6);
            let mut weights = weights(&network);
            network.output.of_mut(&mut weights).fill(0.0);
            network.init_bias(&mut weights, &text);
            // Words 1 to 5 occur 4, 2, 2, 2 and 1 times; with one more of each of the six words, there are 17.
            let expected =
                -(4.0 * (5.0f64 / 17.0).ln() + 6.0 * (3.0f64 / 17.0).ln() + (2.0f64 / 17.0).ln());
            let reader = Reader::to_score(&params, &text);
            let mut state = vec![0.0; reader.n_streams() * network.state_len()];
            let mut scratch = Scratch::default();
            let batch = reader.batch(0, &[]);
            let loss = network.loss(&weights, &batch, &mut state, &mut scratch, Par::Seq);
            assert!((loss - expected).abs() < 1e-9, "{loss} {expected}");
        }
    }

    #[test]
    fn the_loss_does_not_depend_on_the_batch_boundaries() {
        let text = text();
        for params in kinds().iter().filter(|params| params.architecture != Architecture::Ff) {
            let network = Network::new(params, 6);
            let weights = weights(&network);
            let log_prob = |bptt| {
                let params = NeuralParams { batch_size: 1, bptt, ..params.clone() };
                let reader = Reader::new(&params, &text);
                let (mut scratch, mut state) = (Scratch::default(), vec![0.0; network.state_len()]);
                let mut loss = |at| {
                    let batch = reader.batch(at, &[]);
                    network.loss(&weights, &batch, &mut state, &mut scratch, Par::Seq)
                };
                (0..reader.len()).map(&mut loss).sum::<f64>()
            };
            for bptt in [1, 2, 4] {
                assert!((log_prob(bptt) - log_prob(100)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_number_of_weights_matches_the_literature() {
        // Table 1 of Chiu and Rush: 2.8 and 3.6 million weights for 10,000 words.
        let ff = Network::new(&NeuralParams::ff(), 10_000).layout.len();
        let lstm = Network::new(&NeuralParams::lstm(), 10_000).layout.len();
        assert_eq!((ff / 10_000, lstm / 10_000), (283, 362));
        let separate = NeuralParams { tying: Tying::Separate, ..NeuralParams::ff() };
        assert_eq!(Network::new(&separate, 10_000).layout.len(), ff + 2_560_000);
    }
}
