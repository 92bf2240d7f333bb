//! Arguments, sizes and grids of kernels.

use super::array::{View, ViewMut};
use super::element::Element;
use super::handle::Device;
use cudarc::driver::{DevicePtr, DeviceSlice, LaunchArgs, LaunchConfig, PushKernelArg};

/// An argument of a kernel.
pub(super) trait Argument {
    /// The type of the parameter in CUDA C.
    #[cfg(test)]
    fn c_type() -> String;

    /// Panics if the argument cannot be used on the device.
    fn check(&self, _: &Device) {}

    /// The bits that the kernel gets.
    fn bits(&self, device: &Device) -> u64;

    fn push<'a>(&'a mut self, launch: &mut LaunchArgs<'a>);
}

impl<T: Element> Argument for View<'_, T> {
    #[cfg(test)]
    fn c_type() -> String {
        format!("const {}*", T::C_NAME)
    }

    fn check(&self, device: &Device) {
        device.check_owner(self.0.stream());
    }

    fn bits(&self, device: &Device) -> u64 {
        self.0.device_ptr(&device.stream).0
    }

    fn push<'a>(&'a mut self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&self.0);
    }
}

impl<T: Element> Argument for ViewMut<'_, T> {
    #[cfg(test)]
    fn c_type() -> String {
        format!("{}*", T::C_NAME)
    }

    fn check(&self, device: &Device) {
        device.check_owner(self.0.stream());
    }

    fn bits(&self, device: &Device) -> u64 {
        self.0.device_ptr(&device.stream).0
    }

    fn push<'a>(&'a mut self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&mut self.0);
    }
}

macro_rules! scalars {
    ($($scalar:ty: $c_type:literal, $bits:expr;)*) => {$(
        impl Argument for $scalar {
            #[cfg(test)]
            fn c_type() -> String {
                $c_type.to_owned()
            }

            fn bits(&self, _: &Device) -> u64 {
                let bits: fn($scalar) -> u64 = $bits;
                bits(*self)
            }

            fn push<'a>(&'a mut self, launch: &mut LaunchArgs<'a>) {
                launch.arg(&*self);
            }
        }
    )*};
}
scalars! {
    i32: "int", |value| value as u64;
    u32: "unsigned", u64::from;
    i64: "long long", |value| value as u64;
    u64: "unsigned long long", |value| value;
    f32: "float", |value| u64::from(value.to_bits());
    f64: "double", f64::to_bits;
}

/// Appends the bits of a grid of thread blocks.
pub(super) fn note_grid(config: &LaunchConfig, notes: &mut Vec<u64>) {
    let LaunchConfig { grid_dim, block_dim, shared_mem_bytes } = *config;
    let (grid, block) = (<[u32; 3]>::from(grid_dim), <[u32; 3]>::from(block_dim));
    notes.extend(grid.into_iter().chain(block).chain([shared_mem_bytes]).map(u64::from));
}

/// Panics unless `len`, the length of the array `name`, is at least `n`.
#[track_caller]
pub(crate) fn at_least(name: &str, len: usize, n: usize) {
    assert!(len >= n, "`{name}` must have at least {n} elements, got {len}");
}

/// Panics unless `len`, the length of the range or array `name`, is `n`.
#[track_caller]
pub(crate) fn exactly(name: &str, len: usize, n: usize) {
    assert!(len == n, "`{name}` must have {n} elements, got {len}");
}

/// A size as kernels take it.
#[track_caller]
pub(crate) fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or_else(|_| panic!("a size must be below 2^31, got {size}"))
}

/// One thread per element, up to a number that fills any device. Threads of larger arrays take several elements.
pub(crate) fn for_each(n: usize) -> LaunchConfig {
    const THREADS: usize = 256;
    const MAX_BLOCKS: usize = 8192;
    let blocks = n.div_ceil(THREADS).clamp(1, MAX_BLOCKS);
    grid((blocks, 1, 1), (THREADS, 1))
}

/// One warp per row.
#[track_caller]
pub(crate) fn warps(n_rows: usize) -> LaunchConfig {
    // Kernels number the threads in 32 bits.
    assert!(n_rows < 1 << 27, "the number of rows must be below 2^27, got {n_rows}");
    grid((n_rows.div_ceil(8).max(1), 1, 1), (256, 1))
}

/// A grid of thread blocks without dynamic shared memory.
#[track_caller]
pub(crate) fn grid(blocks: (usize, usize, usize), threads: (usize, usize)) -> LaunchConfig {
    let size = |size: usize| int(size) as u32;
    LaunchConfig {
        grid_dim: (size(blocks.0), size(blocks.1), size(blocks.2)),
        block_dim: (size(threads.0), size(threads.1), 1),
        shared_mem_bytes: 0,
    }
}
