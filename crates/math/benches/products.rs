//! Matrix products of the sizes of factorial HMMs and networks, on one thread, in single precision.
//!
//! `products.py` measures the same products with NumPy.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};

/// Products of an n × k and a k × m matrix.
const PRODUCTS: [Product; 6] = [
    // Mean field with 5 layers of 10 states: 256 tokens, 100 and 1,000 joint states of the two groups of layers.
    Product {
        name: "sums over the larger group",
        n: 256,
        k: 1_000,
        m: 100,
        transposed: Some(Side::Right),
    },
    Product { name: "sums over the smaller group", n: 256, k: 100, m: 1_000, transposed: None },
    // Its M-step: blocks of 256 words.
    Product { name: "sums over words", n: 100, k: 256, m: 1_000, transposed: Some(Side::Left) },
    // The output weights of a recurrent network: 400 tokens, 300 units, a tile of 1,024 words.
    Product { name: "logits", n: 400, k: 300, m: 1_024, transposed: Some(Side::Right) },
    Product { name: "derivatives of hidden vectors", n: 400, k: 1_024, m: 300, transposed: None },
    Product {
        name: "derivatives of output weights",
        n: 1_024,
        k: 400,
        m: 300,
        transposed: Some(Side::Left),
    },
];

struct Product {
    name: &'static str,
    n: usize,
    k: usize,
    m: usize,
    /// The factor that is stored column by column; the others are stored row by row.
    transposed: Option<Side>,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("products");
    for Product { name, n, k, m, transposed } in PRODUCTS {
        let (a, b) = (numbers(n * k), numbers(k * m));
        let mut out = vec![0.0f32; n * m];
        let factor = |numbers, n_rows, n_columns, side| {
            if transposed == Some(side) {
                MatRef::from_column_major_slice(numbers, n_rows, n_columns)
            } else {
                MatRef::from_row_major_slice(numbers, n_rows, n_columns)
            }
        };
        let a = factor(&a[..], n, k, Side::Left);
        let b = factor(&b[..], k, m, Side::Right);
        group.throughput(Throughput::Elements(2 * (n * k * m) as u64));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let out = MatMut::from_row_major_slice_mut(&mut out, n, m);
                matmul(out, Accum::Replace, a, b);
            });
        });
    }
    group.finish();
}

/// Numbers in [0, 1).
fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 10_007) as f32 / 10_007.0).collect()
}

criterion_group!(products, benches);
criterion_main!(products);
