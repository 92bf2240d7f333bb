//! Parts of a training step: residual layer, character network, products with the output weights, optimizer.
//!
//! Throughput is given in floating-point operations of the matrix products (Gelem/s = GFLOP/s), and in bytes of weights,
//! moments and gradients read and written.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_math::Rng;
use latens_math::linalg::{Accum, Par, multiply};
use latens_nn::{
    AdamW, AdamWParams, Buffer, CharCnn, CharCnnParams, CharCnnScratch, Layout, Residual,
    ResidualScratch, Spellings, fill_normal, norm,
};
use std::hint::black_box;

fn residual(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("residual forward and backward");
    for (name, n_rows, dim) in [("tiny", 64, 64), ("small", 2048, 256), ("paper", 16_384, 256)] {
        let mut layout = Layout::new();
        let layer = Residual::new(&mut layout, "residual", dim, dim);
        let mut weights = vec![0f32; layout.len()];
        layer.init(&mut weights, &mut Rng::new(1));
        let [mut x, mut out, mut d_x] = [(); 3].map(|()| Buffer::new());
        for buffer in [&mut x, &mut out, &mut d_x] {
            buffer.resize(n_rows, dim);
        }
        fill_normal(x.values_mut(), 1.0, &mut Rng::new(2));
        let d_out = x.clone();
        let (mut scratch, mut gradient) = (ResidualScratch::default(), vec![0f32; layout.len()]);
        // Two products forward and four backward, with two operations per term.
        group.throughput(Throughput::Elements((6 * 2 * n_rows * dim * dim) as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let par = Par::rayon(0);
                layer.forward(&weights, x.view(), &mut scratch, out.view_mut(), None, par);
                let (d_out, d_x) = (d_out.view(), Some(d_x.view_mut()));
                layer.backward(&weights, x.view(), &mut scratch, d_out, &mut gradient, d_x, par);
            });
        });
    }
}

fn char_cnn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("character network forward and backward");
    let (n_words, mut rng) = (10_000, Rng::new(1));
    let offsets: Vec<usize> = (0..=n_words).map(|i| 8 * i).collect();
    let chars: Vec<u32> = (0..8 * n_words).map(|_| (rng.uniform() * 50.0) as u32).collect();
    let words = Spellings { chars: &chars, offsets: &offsets };
    let mut layout = Layout::new();
    let cnn = CharCnn::new(&mut layout, "words", 50, &CharCnnParams::default());
    let mut weights = vec![0f32; layout.len()];
    cnn.init(&mut weights, &mut rng);
    let mut out = Buffer::new();
    out.resize(n_words, cnn.dim());
    let (mut scratch, mut gradient) = (CharCnnScratch::default(), vec![0f32; layout.len()]);
    group.throughput(Throughput::Elements(n_words as u64));
    group.bench_function("10,000 words", |bencher| {
        bencher.iter(|| {
            let par = Par::rayon(0);
            cnn.forward(&weights, words, &mut scratch, out.view_mut(), par);
            cnn.backward(&weights, words, &mut scratch, out.view(), &mut gradient, par);
        });
    });
}

/// Logits of 400 tokens, and the derivatives of hidden vectors and of weights.
fn output_products(criterion: &mut Criterion) {
    let (n_tokens, dim, n_words) = (400, 300, 10_000);
    let sizes = [(n_tokens, dim), (n_words, dim), (n_tokens, n_words)];
    let [hidden, weights, mut logits] = sizes.map(|(n_rows, n_columns)| {
        let mut buffer = Buffer::<f32>::new();
        buffer.resize(n_rows, n_columns);
        fill_normal(buffer.values_mut(), 1.0, &mut Rng::new(1));
        buffer
    });
    let (mut d_hidden, mut d_weights) = (hidden.clone(), weights.clone());
    let mut group = criterion.benchmark_group("products with the output weights");
    group.throughput(Throughput::Elements((3 * 2 * n_tokens * dim * n_words) as u64));
    group.bench_function("400 tokens, 300 units, 10,000 words", |bencher| {
        bencher.iter(|| {
            let (par, set) = (Par::rayon(0), Accum::Replace);
            let (h, w) = (hidden.view(), weights.view());
            multiply(logits.view_mut(), set, h, w.transpose(), par);
            multiply(d_hidden.view_mut(), set, logits.view(), w, par);
            multiply(d_weights.view_mut(), set, logits.view().transpose(), h, par);
        });
    });
}

fn optimizer(criterion: &mut Criterion) {
    let n = 3_000_000;
    let mut weights = vec![0f32; n];
    fill_normal(&mut weights, 1.0, &mut Rng::new(1));
    let gradient = weights.clone();
    let mut adam = AdamW::new(AdamWParams::default(), n);
    let mut group = criterion.benchmark_group("3,000,000 weights");
    group.throughput(Throughput::Bytes(7 * 4 * n as u64));
    group.bench_function("AdamW", |bencher| {
        bencher.iter(|| adam.update(&mut weights, &gradient, 1e-6, 1.0));
    });
    group.throughput(Throughput::Bytes(4 * n as u64));
    group.bench_function("norm", |bencher| bencher.iter(|| norm(black_box(&gradient))));
}

criterion_group!(benches, residual, char_cnn, output_products, optimizer);
criterion_main!(benches);
