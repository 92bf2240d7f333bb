//! A cache of arrays that threads share.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arrays that are computed on first use, up to a total length. One thread computes an array, and others that need it
/// wait: every thread would need the memory of a copy otherwise.
#[derive(Debug)]
pub(crate) struct OnceCache {
    places: Vec<OnceLock<Box<[f32]>>>,
    n_cached: AtomicUsize,
    max_cached: usize,
}

impl OnceCache {
    /// A cache of up to `n` arrays of `max_cached` numbers in all.
    pub(crate) fn new(n: usize, max_cached: usize) -> OnceCache {
        let places = std::iter::repeat_with(OnceLock::new).take(n).collect();
        OnceCache { places, n_cached: AtomicUsize::new(0), max_cached }
    }

    /// The array of `len` numbers with an index, computed by `build` if it is not cached. `build` must not run tasks of
    /// a thread pool: a task that needs the same array would wait for itself.
    pub(crate) fn get(
        &self,
        idx: usize,
        len: usize,
        build: impl FnOnce() -> Vec<f32>,
    ) -> Cow<'_, [f32]> {
        let Some(place) = self.places.get(idx) else { return Cow::Owned(build()) };
        if let Some(array) = place.get() {
            return Cow::Borrowed(array);
        }
        // A single array is always cached: computing it again would take too long.
        let is_full = self.n_cached.fetch_add(len, Ordering::Relaxed) + len > self.max_cached;
        if is_full && self.places.len() > 1 {
            self.n_cached.fetch_sub(len, Ordering::Relaxed);
            return Cow::Owned(build());
        }
        let mut is_built = false;
        let array = place.get_or_init(|| {
            is_built = true;
            build().into()
        });
        if !is_built {
            self.n_cached.fetch_sub(len, Ordering::Relaxed);
        }
        Cow::Borrowed(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::time::Duration;

    #[test]
    fn one_thread_builds_an_array_and_the_others_wait() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
        let (cache, n_built) = (OnceCache::new(1, 0), AtomicUsize::new(0));
        let build = || {
            n_built.fetch_add(1, Ordering::Relaxed);
            // Others arrive in the meantime.
            std::thread::sleep(Duration::from_millis(50));
            vec![1.0, 2.0]
        };
        let get = |_| cache.get(0, 2, build).into_owned();
        let arrays: Vec<Vec<f32>> =
            pool.install(|| (0..64).into_par_iter().with_max_len(1).map(get).collect());
        assert!(arrays.iter().all(|array| array == &[1.0, 2.0]));
        assert_eq!(n_built.into_inner(), 1);
        assert_eq!(cache.n_cached.into_inner(), 2);
    }

    #[test]
    fn arrays_beyond_the_limit_are_not_cached() {
        let cache = OnceCache::new(2, 3);
        assert!(matches!(cache.get(0, 2, || vec![0.0; 2]), Cow::Borrowed(_)));
        assert!(matches!(cache.get(1, 2, || vec![0.0; 2]), Cow::Owned(_)));
        assert!(matches!(cache.get(9, 1, || vec![0.0]), Cow::Owned(_)));
        assert!(matches!(cache.get(0, 2, || unreachable!("it is cached")), Cow::Borrowed(_)));
        assert_eq!(cache.n_cached.into_inner(), 2);
    }
}
