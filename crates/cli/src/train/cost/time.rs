//! A rough estimate of the time of training, before the first iteration.

use crate::output::duration;
use latens::model::{Cost, Device};
use std::hint::black_box;
use std::time::Instant;

/// Estimates below this many seconds are not worth a line.
const MIN_SECONDS: f64 = 10.0;

/// A line about the time that training will take at most, unless it is short or unknown. The work is known, the speed is
/// measured for a few milliseconds on one core.
pub(crate) fn time_estimate(cost: &Cost, device: Device) -> Option<String> {
    let (work, n_iterations) = (cost.multiply_adds_per_iteration(), cost.n_iterations());
    if device != Device::Cpu || work <= 0.0 {
        return None;
    }
    let seconds = work / (multiply_adds_per_second() * rayon::current_num_threads() as f64);
    let total = seconds * n_iterations as f64;
    (total >= MIN_SECONDS).then(|| {
        format!(
            "rough estimate: {} per iteration, {} for all {n_iterations} at most; progress tells more",
            duration(seconds),
            duration(total)
        )
    })
}

/// Measured speed of one core on arrays in its cache. The fastest of many short rounds, as other programs interrupt some.
fn multiply_adds_per_second() -> f64 {
    const LEN: usize = 4096;
    const REPEATS: usize = 50;
    const ROUNDS: usize = 40;
    let (a, mut b) = (vec![1.0001f32; LEN], vec![0.5f32; LEN]);
    let mut seconds = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..REPEATS {
            let a = black_box(&a);
            b.iter_mut().zip(a).for_each(|(b, &a)| *b = *b * a + 1e-7);
            black_box(&mut b);
        }
        seconds = seconds.min(started.elapsed().as_secs_f64());
    }
    (LEN * REPEATS) as f64 / seconds.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_have_an_estimate_and_short_ones_do_not() {
        assert_eq!(time_estimate(&Cost::new(10).multiply_adds(1.0), Device::Cpu), None);
        assert_eq!(time_estimate(&Cost::new(10), Device::Cpu), None);
        let line = time_estimate(&Cost::new(10).multiply_adds(1e18), Device::Cpu).unwrap();
        assert!(line.contains("for all 10 at most"), "{line}");
    }
}
