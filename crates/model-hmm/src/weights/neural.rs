//! Neural parameterization: probabilities from networks of state vectors (Chiu and Rush 2020, §3.2 and eq. 3).

use crate::params::HmmParams;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::emission::clustered as emission;
use crate::tables::emission::vectors::{VectorGradients, Vectors};
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::factors::Factors;
use crate::tables::probability_tables::Tables;
use crate::tables::transition;
use crate::weights::mapping::{TableMapping, start_gradient, start_probabilities};
use crate::weights::state_vectors::{StateScratch, StateVectors, Use};
use crate::weights::tags::{tag_gradient, tag_probabilities};
use crate::weights::word_vectors::{WordScratch, WordTable};
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, Rng};
use latens_nn::{Buffer, Dropout, Layout, Linear, Residual, ResidualScratch};

/// With more states, scoring does not compute the table of all transitions: it would be over 256 MiB, 16 GiB at 2¹⁶
/// states, and a text uses few of its blocks.
const MANY_STATES: usize = 1 << 13;

/// The networks, each with a residual layer f(e) = LayerNorm(ReLU(W₂ d) + d), d = ReLU(W₁ e):
///
/// * start logits r · f_start(e),
/// * transition logits f_trans(e) · e',
/// * emission logits f_emit(e) · U_x + bias_x,
/// * tag logits T f_tag(e) + bias, if there are tags.
pub(crate) struct Neural<T> {
    layout: Layout,
    /// Standard deviation of the initial embeddings.
    deviation: f64,
    states: StateVectors,
    start: Net<T>,
    start_out: Linear,
    transition: Net<T>,
    emission: Net<T>,
    words: WordTable,
    tags: Option<(Net<T>, Linear)>,
    state_scratch: StateScratch<T>,
    word_scratch: WordScratch<T>,
}

/// A network, its output, and the derivatives with respect to the output.
struct Net<T> {
    net: Residual,
    reads: Use,
    scratch: ResidualScratch<T>,
    out: Buffer<T>,
    d_out: Buffer<T>,
}

impl<T: Real> Neural<T> {
    /// Networks for weights that are stored elsewhere; `spellings` has the word of every slot, `n_tags` is 0 without
    /// tags.
    pub(crate) fn new(
        params: &HmmParams,
        space: &StateSpace,
        spellings: &[&str],
        n_tags: usize,
    ) -> Neural<T> {
        let (mut layout, dim) = (Layout::new(), params.dim);
        let states = StateVectors::new(&mut layout, params, space.n_clusters());
        let net = |layout: &mut Layout, name: &str, reads| Net::new(layout, name, reads, dim);
        let start = net(&mut layout, "start", Use::Start);
        let start_out = Linear::without_bias(&mut layout, "start.out", dim, 1);
        let transition = net(&mut layout, "transition", Use::From);
        let emission = net(&mut layout, "emission", Use::Emit);
        let silent = space.unknown.map(|unknown| unknown.slot);
        let words = WordTable::new(&mut layout, params, spellings, silent);
        let tags = (n_tags > 0).then(|| {
            let out_net = net(&mut layout, "tags", Use::Emit);
            (out_net, Linear::new(&mut layout, "tags.out", dim, n_tags))
        });
        Neural {
            layout,
            deviation: params.init_deviation,
            states,
            start,
            start_out,
            transition,
            emission,
            words,
            tags,
            state_scratch: StateScratch::default(),
            word_scratch: WordScratch::default(),
        }
    }

    /// Computes all probabilities except those of transitions, for which it stores only the factors.
    pub(crate) fn forward_to_factors(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        dropout: Option<Dropout>,
        tables: &mut Tables<T>,
    ) {
        let par = Par::rayon(0);
        tables.k = kept.k;
        let part = |i: u64| dropout.map(|dropout| dropout.part(i));
        self.states.forward(weights, kept, part(0), &mut self.state_scratch, par);
        self.start.forward(weights, &self.state_scratch, part(1), par);
        self.transition.forward(weights, &self.state_scratch, part(2), par);
        self.emission.forward(weights, &self.state_scratch, part(3), par);

        tables.start.resize(kept.states.len(), T::zero());
        let column = MatMut::from_row_major_slice_mut(&mut tables.start, kept.states.len(), 1);
        self.start_out.forward(weights, self.start.out.view(), column, par);
        start_probabilities(&mut tables.start);

        let mut factors = tables.factors.take().unwrap_or_default();
        factors.dim = self.transition.out.n_cols();
        factors.from.clear();
        factors.from.extend_from_slice(self.transition.out.values());
        factors.to.clear();
        factors.to.extend_from_slice(self.state_scratch.vectors(Use::To).values());
        tables.factors = Some(factors);

        self.words.forward(weights, &mut self.word_scratch, par);
        emission::forward(space, kept, self.vectors(weights), tables);

        if let Some((net, out)) = &mut self.tags {
            net.forward(weights, &self.state_scratch, part(4), par);
            tables.tags = tag_probabilities(weights, out, net.out.view(), par);
        }
    }

    /// f_emit of a state in the last forward pass.
    pub(crate) fn emission_vector(&self, state_idx: usize) -> &[T] {
        let dim = self.emission.out.n_cols();
        &self.emission.out.values()[state_idx * dim..(state_idx + 1) * dim]
    }

    /// U and the bias of the word of a slot in the last forward pass.
    pub(crate) fn word<'a>(&'a self, weights: &'a [T], slot: usize) -> (&'a [T], T) {
        let Vectors { words, bias, dim, .. } = self.vectors(weights);
        (&words[slot * dim..(slot + 1) * dim], bias[slot])
    }

    /// U of a word without a slot, if word vectors are computed from characters.
    pub(crate) fn read_word(&self, weights: &[T], word: &str) -> Option<Vec<T>> {
        self.words.read(weights, word)
    }

    fn vectors<'a>(&'a self, weights: &'a [T]) -> Vectors<'a, T> {
        Vectors {
            words: self.words.vectors(weights, &self.word_scratch),
            bias: self.words.bias(weights),
            states: self.emission.out.values(),
            dim: self.emission.out.n_cols(),
        }
    }
}

impl<T: Real> TableMapping<T> for Neural<T> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Draws embeddings from N(0, deviation²) and layers with n inputs from U(±1/√n).
    fn init(&self, weights: &mut [T], rng: &mut Rng) {
        self.states.init(self.deviation, weights, rng);
        for net in [&self.start, &self.transition, &self.emission] {
            net.net.init(weights, rng);
        }
        self.start_out.init(weights, rng);
        self.words.init(weights, rng);
        if let Some((net, out)) = &self.tags {
            net.net.init(weights, rng);
            out.init(weights, rng);
        }
    }

    fn forward(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        dropout: Option<Dropout>,
        tables: &mut Tables<T>,
    ) {
        self.forward_to_factors(weights, space, kept, dropout, tables);
        transition::forward(tables);
    }

    fn forward_to_score(&mut self, weights: &[T], space: &StateSpace, tables: &mut Tables<T>) {
        let kept = KeptStates::all(space);
        let has_lists = space.short_lists().is_some();
        let is_dense = space.n_clusters() == 1 && !has_lists;
        if is_dense || space.n_states() <= MANY_STATES {
            return self.forward(weights, space, &kept, None, tables);
        }
        self.forward_to_factors(weights, space, &kept, None, tables);
        tables.factors.as_mut().expect("`forward_to_factors` sets them").normalize();
        tables.transition = Vec::new();
    }

    fn backward(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        tables: &mut Tables<T>,
        expected: &ExpectedCounts<T>,
        gradient: &mut [T],
    ) {
        let par = Par::rayon(0);
        let n = kept.states.len();

        start_gradient(&mut tables.start, &expected.start);
        let d_logits = MatRef::from_row_major_slice(&tables.start[..], n, 1);
        let d_start = Some((self.start.d_out.view_mut(), Accum::Replace));
        self.start_out.backward(weights, self.start.out.view(), d_logits, gradient, d_start, par);

        let factors: Factors<T> = tables.factors.take().expect("`forward` sets them");
        transition::logit_gradient(tables, expected);
        let d_to = self.state_scratch.gradients(Use::To).view_mut();
        transition::factor_gradient(tables, &factors, self.transition.d_out.view_mut(), d_to);
        tables.factors = Some(factors);

        let mut d_states = std::mem::take(&mut self.emission.d_out);
        let mut d_vectors = std::mem::take(&mut self.word_scratch.d_vectors);
        let (d_words, d_bias) = self.words.gradients(gradient, &mut d_vectors);
        let gradients =
            VectorGradients { words: d_words, bias: d_bias, states: d_states.values_mut() };
        let vectors = self.vectors(weights);
        emission::backward(space, kept, vectors, tables, expected, gradients);
        (self.emission.d_out, self.word_scratch.d_vectors) = (d_states, d_vectors);
        self.words.backward(weights, &mut self.word_scratch, gradient, par);

        if let Some((net, out)) = &mut self.tags {
            let d_logits = tag_gradient(&tables.tags, &expected.tags, n);
            let d_out = Some((net.d_out.view_mut(), Accum::Replace));
            out.backward(weights, net.out.view(), d_logits.view(), gradient, d_out, par);
            net.backward(weights, &mut self.state_scratch, gradient, par);
        }
        for net in [&mut self.start, &mut self.transition, &mut self.emission] {
            net.backward(weights, &mut self.state_scratch, gradient, par);
        }
        self.states.backward(weights, kept, &mut self.state_scratch, gradient, par);
    }
}

impl<T: Real> Net<T> {
    fn new(layout: &mut Layout, name: &str, reads: Use, dim: usize) -> Net<T> {
        let net = Residual::new(layout, name, dim, dim);
        let scratch = ResidualScratch::default();
        Net { net, reads, scratch, out: Buffer::new(), d_out: Buffer::new() }
    }

    fn forward(
        &mut self,
        weights: &[T],
        states: &StateScratch<T>,
        dropout: Option<Dropout>,
        par: Par,
    ) {
        let x = states.vectors(self.reads).view();
        self.out.resize(x.nrows(), self.net.dim());
        self.d_out.resize(x.nrows(), self.net.dim());
        self.net.forward(weights, x, &mut self.scratch, self.out.view_mut(), dropout, par);
    }

    fn backward(
        &mut self,
        weights: &[T],
        states: &mut StateScratch<T>,
        gradient: &mut [T],
        par: Par,
    ) {
        let (x, d_x) = states.vectors_and_gradients(self.reads);
        let (d_out, d_x) = (self.d_out.view(), Some(d_x.view_mut()));
        self.net.backward(weights, x.view(), &mut self.scratch, d_out, gradient, d_x, par);
    }
}
