//! The function to minimize.

/// A function to minimize: writes its gradient at a point and returns its value there.
pub type Function<'f> = dyn FnMut(&[f64], &mut [f64]) -> f64 + 'f;

/// A [`Function`] that is evaluated elsewhere, so that its value at a point may not be known yet.
pub type PartialFunction<'f> = dyn FnMut(&[f64], &mut [f64]) -> Result<f64, Unknown> + 'f;

/// The value at a point is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;
