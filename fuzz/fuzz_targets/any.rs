//! Runs the target that the environment variable `TARGET` names, or writes the seeds of all targets to the folder that
//! `SEEDS` names. One program for all targets, since every target links the same library.
#![no_main]

use latens_fuzz::mutation::change_value;
use latens_fuzz::targets::{self, Target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest allocation, and the most memory in use, in bytes. Inputs have a few kilobytes; a zstd stream may ask for a
/// window of 128 MiB.
const MAX_ALLOCATION: usize = 256 << 20;
const MAX_IN_USE: usize = 1 << 30;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    let Some(target) = targets::find(&name) else {
        let names: Vec<&str> = targets::TARGETS.iter().map(|target| target.name).collect();
        eprintln!("set the environment variable TARGET to one of: {}", names.join(", "));
        std::process::exit(2);
    };
    target
});

fuzz_target!(init: init(), |data: &[u8]| (TARGET.run)(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let changed =
        if TARGET.takes_outlines { change_value(data, size, max_size, seed) } else { None };
    changed.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});

fn init() {
    if let Some(folder) = std::env::var_os("SEEDS") {
        latens_fuzz::seeds::write(folder.as_ref()).expect("the seeds can be written");
        std::process::exit(0);
    }
    LazyLock::force(&TARGET);
    // All work is done in this thread: handing a few bytes to other threads takes longer than reading them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("there is no other pool yet");
    latens_fuzz::warm_up();
    BEFORE.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The system's allocator with a limit. libFuzzer has one of its own (`-malloc_limit_mb`), but only with the address
/// sanitizer.
struct Limited;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Memory in use when the targets start; there is no limit before.
static BEFORE: AtomicUsize = AtomicUsize::new(usize::MAX);

fn take(n_bytes: usize) {
    let in_use = IN_USE.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes;
    let before = BEFORE.load(Ordering::Relaxed);
    let is_limited = before != usize::MAX;
    if is_limited && (n_bytes > MAX_ALLOCATION || in_use.saturating_sub(before) > MAX_IN_USE) {
        // Once only: printing allocates, too.
        IN_USE.store(0, Ordering::Relaxed);
        eprintln!("an allocation of {n_bytes} bytes is above the limit ({in_use} in use)");
        std::process::abort();
    }
}

fn give_back(n_bytes: usize) {
    IN_USE.fetch_sub(n_bytes, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        take(new_size);
        give_back(layout.size());
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;
