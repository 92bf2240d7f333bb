//! The function to minimize.

/// A function to minimize: writes its gradient at a point and returns its value there.
pub type Function<'f> = dyn FnMut(&[f64], &mut [f64]) -> f64 + 'f;
