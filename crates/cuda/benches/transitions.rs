//! Transition probabilities from 14,336 states to 16,384 states with vectors of 256 dimensions: one kernel that
//! exponentiates its products, against cuBLAS and a pass over the logits. Without a device this measures nothing.

use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use latens_cuda::{
    Array, BlockShape, CudaError, Device, PowerBuffers, ProductShape, Shape, Transposed, f16,
};
use std::io::Write;
use std::time::Instant;

const N_FROM: usize = 14_336;
const N: usize = 16_384;
const DIM: usize = 256;
/// States per cluster.
const K: usize = 128;

/// Numbers between −1 and 1.
fn vectors(device: &Device, n: usize, factor: usize) -> Result<Array<f16>, CudaError> {
    let number = |i: usize| f16::from_f32((i * factor % 1_009) as f32 / 504.5 - 1.0);
    device.upload(&(0..n * DIM).map(number).collect::<Vec<_>>())
}

/// Times launches that follow each other without a gap.
fn time(
    bencher: &mut Bencher<'_>,
    device: &Device,
    mut launch: impl FnMut() -> Result<(), CudaError>,
) {
    bencher.iter_custom(|n| {
        device.wait().expect("earlier work");
        let start = Instant::now();
        (0..n).for_each(|_| launch().expect("a launch"));
        device.wait().expect("the work");
        start.elapsed()
    });
}

fn transitions(criterion: &mut Criterion) {
    let device = match Device::open() {
        Err(error) if error.is_unavailable() => {
            let _ = writeln!(std::io::stderr(), "transitions skipped: {error}");
            return;
        }
        device => device.expect("a device"),
    };
    measure(criterion, &device).expect("the device");
}

fn measure(criterion: &mut Criterion, device: &Device) -> Result<(), CudaError> {
    let (from, to) = (vectors(device, N_FROM, 7)?, vectors(device, N, 13)?);
    let mut logits: Array<f16> = device.zeros(N_FROM * N)?;
    let mut sums: Array<f32> = device.zeros(N_FROM)?;
    let mut group = criterion.benchmark_group("transitions");
    if device.has_powers(N, DIM) {
        let mut buffers = PowerBuffers::new(device)?;
        group.bench_function("powers", |bencher| {
            time(bencher, device, || {
                let out = (logits.as_bf16_mut(), &mut sums);
                let shape = Shape { rows: N_FROM, columns: N };
                device.minus_powers(out, (&from, &to), &mut buffers, shape)
            });
        });
    }
    group.bench_function("logits", |bencher| {
        time(bencher, device, || {
            let from = (&from, 0..N_FROM * DIM, Transposed::No);
            let to = (&to, 0..N * DIM, Transposed::Yes);
            let shape = ProductShape { n: N_FROM, m: N, k: DIM };
            device.multiply_within((&mut logits, 0..N_FROM * N), from, to, shape)
        });
    });
    // No blocks are in use.
    let n_pairs = N_FROM / K * (N / K);
    let block_of = device.upload(&vec![u32::MAX; n_pairs])?;
    let mut blocks = device.zeros(1)?;
    group.bench_function("pass over the logits", |bencher| {
        time(bencher, device, || {
            let (rows, blocks) = ((&mut logits, &mut sums), (&mut blocks, 0));
            let shape = BlockShape { k: K, n: N };
            device.minus_probabilities_half(rows, blocks, (&block_of, 0..n_pairs), N_FROM, shape)
        });
    });
    Ok(())
}

criterion_group!(benches, transitions);
criterion_main!(benches);
