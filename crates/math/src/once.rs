//! Values that are computed on first use.

use std::sync::OnceLock;

/// The value of a cell, which is computed unless it is known.
///
/// Unlike in [`OnceLock::get_or_init`], `compute` may run tasks of a thread pool. While a thread waits for them, it runs
/// other tasks, and one of these may need the same value: inside of `get_or_init`, it would wait for itself. If several
/// threads compute the value, the first one is kept. Call it once before a loop on several threads that needs the value:
/// otherwise, each thread computes it.
pub fn get_or_compute<T>(cell: &OnceLock<T>, compute: impl FnOnce() -> T) -> &T {
    if let Some(value) = cell.get() {
        return value;
    }
    let value = compute();
    cell.get_or_init(|| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn tasks_of_the_computation_may_wait_for_tasks_that_need_the_value() {
        let (done, wait) = channel();
        // If the test fails, this thread hangs.
        std::thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let (cell, n_computed) = (OnceLock::new(), AtomicUsize::new(0));
            let compute = || {
                // Takes up the next task, as threads do while they wait.
                rayon::yield_now();
                n_computed.fetch_add(1, Ordering::Relaxed)
            };
            let value = |_| *get_or_compute(&cell, compute);
            let values = || (0..8).into_par_iter().with_max_len(1).map(value).collect();
            let values: Vec<usize> = pool.install(values);
            done.send((values, n_computed.into_inner()))
        });
        let (values, n_computed) =
            wait.recv_timeout(Duration::from_secs(60)).expect("a thread waits for itself");
        assert!(n_computed > 1, "no other task was taken up");
        assert_eq!(values, [0; 8]);
    }
}
