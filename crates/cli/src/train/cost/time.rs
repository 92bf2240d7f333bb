//! A rough estimate of the time of training, before the first iteration.

use crate::output::duration;
use latens::model::{Cost, Device};
use latens_math::linalg::{Accum, Mat, Par, multiply};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Estimates below this many seconds are not worth a line.
const MIN_SECONDS: f64 = 10.0;

/// Share of the speed of a single large matrix product that training reaches in its products.
const EFFICIENCY: f64 = 0.5;

/// A line about the time that training will take at most, unless it is short or unknown.
pub(crate) fn time_estimate(cost: &Cost, device: Device) -> Option<String> {
    let (seconds, n_iterations) = (seconds_per_iteration(cost, device)?, cost.n_iterations());
    let total = seconds * n_iterations as f64;
    (total >= MIN_SECONDS).then(|| {
        format!(
            "rough estimate: {} per iteration, at most {} for all {n_iterations} iterations",
            duration(seconds),
            duration(total)
        )
    })
}

/// A rough estimate of the time of an iteration, unless it is unknown. The work is known, the speed is measured for a few
/// milliseconds on one core.
pub(super) fn seconds_per_iteration(cost: &Cost, device: Device) -> Option<f64> {
    let (work, products) = (cost.multiply_adds_per_iteration(), cost.products_per_iteration());
    if device != Device::Cpu || work <= 0.0 {
        return None;
    }
    let of_products =
        if products > 0.0 { products / (EFFICIENCY * products_per_second()) } else { 0.0 };
    let of_one_core = (work - products) / multiply_adds_per_second() + of_products;
    Some(of_one_core / rayon::current_num_threads() as f64)
}

/// Measured speed of one core in a matrix product. A product leaves 30 MB of buffers in its thread; a thread of its own frees
/// them before training.
fn products_per_second() -> f64 {
    let measured = thread::scope(|scope| scope.spawn(measure_products).join());
    measured.expect("a product of valid matrices does not panic")
}

fn measure_products() -> f64 {
    const LEN: usize = 192;
    const ROUNDS: usize = 10;
    let a = Mat::<f32>::from_fn(LEN, LEN, |row, column| (row + column) as f32);
    let mut out = Mat::<f32>::zeros(LEN, LEN);
    let seconds = fastest(ROUNDS, || {
        let a = black_box(&a);
        multiply(out.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), Par::Seq);
        black_box(&mut out);
    });
    (LEN * LEN * LEN) as f64 / seconds
}

/// Measured speed of one core on arrays in its cache.
fn multiply_adds_per_second() -> f64 {
    const LEN: usize = 4096;
    const REPEATS: usize = 50;
    const ROUNDS: usize = 40;
    let (a, mut b) = (vec![1.0001f32; LEN], vec![0.5f32; LEN]);
    let seconds = fastest(ROUNDS, || {
        for _ in 0..REPEATS {
            let a = black_box(&a);
            b.iter_mut().zip(a).for_each(|(b, &a)| *b = *b * a + 1e-7);
            black_box(&mut b);
        }
    });
    (LEN * REPEATS) as f64 / seconds
}

/// Seconds of the fastest of several rounds, as other programs interrupt some.
fn fastest(n_rounds: usize, mut round: impl FnMut()) -> f64 {
    let seconds = (0..n_rounds).map(|_| {
        let started = Instant::now();
        round();
        started.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min).max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_have_an_estimate_and_short_ones_do_not() {
        assert_eq!(time_estimate(&Cost::new(10).multiply_adds(1.0), Device::Cpu), None);
        assert_eq!(time_estimate(&Cost::new(10), Device::Cpu), None);
        let line = time_estimate(&Cost::new(10).multiply_adds(1e18), Device::Cpu).unwrap();
        assert!(line.contains("for all 10 iterations"), "{line}");
    }

    #[test]
    fn the_time_of_an_iteration_is_known_on_the_cpu_only() {
        let cost = Cost::new(10).multiply_adds(1e9).products(1e9);
        assert!(seconds_per_iteration(&cost, Device::Cpu).unwrap() > 0.0);
        assert_eq!(seconds_per_iteration(&cost, Device::Cuda), None);
        assert_eq!(seconds_per_iteration(&Cost::new(10), Device::Cpu), None);
    }

    #[test]
    fn products_count_as_work() {
        let line = time_estimate(&Cost::new(10).products(1e18), Device::Cpu).unwrap();
        assert!(line.contains("for all 10 iterations"), "{line}");
        let cost = Cost::new(1).multiply_adds(3.0).products(2.0);
        assert_eq!((cost.multiply_adds_per_iteration(), cost.products_per_iteration()), (5.0, 2.0));
    }
}
