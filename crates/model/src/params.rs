//! Parameters and their validation.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::ops::{Bound, Deref, RangeBounds};
use thiserror::Error;

/// Hyperparameters of a model: numbers and options that are chosen before fitting.
///
/// ```
/// use latens_model::{ParamError, Params, check_range, check_that};
///
/// struct HmmParams {
///     n_states: usize,
///     n_blocks: usize,
/// }
///
/// impl Default for HmmParams {
///     fn default() -> Self {
///         HmmParams { n_states: 1024, n_blocks: 32 }
///     }
/// }
///
/// impl Params for HmmParams {
///     fn check(&self) -> Result<(), ParamError> {
///         let Self { n_states, n_blocks } = *self;
///         check_range("n_blocks", n_blocks, 1..)?;
///         check_range("n_states", n_states, 1..=1 << 20)?;
///         let must = format!("a multiple of `n_blocks` = {n_blocks}");
///         check_that(n_states % n_blocks == 0, "n_states", must, n_states)
///     }
/// }
///
/// let error = HmmParams { n_states: 1000, ..HmmParams::default() }.validate().err().unwrap();
/// assert_eq!(error.to_string(), "`n_states` must be a multiple of `n_blocks` = 32, got 1000");
/// ```
pub trait Params: Sized + Default {
    /// Returns an error for the first invalid parameter.
    fn check(&self) -> Result<(), ParamError>;

    /// Validates the parameters, as `fit` requires.
    fn validate(self) -> Result<Valid<Self>, ParamError> {
        self.check()?;
        Ok(Valid(self))
    }
}

/// Parameters that passed [`Params::check`]. Dereferences to `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Valid<P>(P);

impl<P> Valid<P> {
    /// Returns the parameters, for example to change and validate them again.
    pub fn into_inner(self) -> P {
        self.0
    }
}

impl<P: Serialize> Valid<P> {
    /// Returns the parameters as a JSON object.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.0).expect("parameters can be serialized as JSON")
    }
}

impl<P> Deref for Valid<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

/// A parameter has an invalid value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{name}` must be {must}, got {got}")]
pub struct ParamError {
    /// Name of the parameter in Rust, Python and on the command line.
    pub name: &'static str,
    /// The requirement: `at least 1`.
    pub must: String,
    /// The invalid value.
    pub got: String,
}

/// Checks that the parameter `name` is a finite number in `range`.
pub fn check_range<T: Number>(
    name: &'static str,
    value: T,
    range: impl RangeBounds<T>,
) -> Result<(), ParamError> {
    if !value.is_finite() {
        return check_that(false, name, "a finite number", value);
    }
    if range.contains(&value) { Ok(()) } else { check_that(false, name, in_words(&range), value) }
}

/// Checks a condition on the parameter `name`; `must` completes the message "`name` must be …".
pub fn check_that(
    holds: bool,
    name: &'static str,
    must: impl Display,
    got: impl Display,
) -> Result<(), ParamError> {
    if holds {
        return Ok(());
    }
    Err(ParamError { name, must: must.to_string(), got: got.to_string() })
}

fn in_words<T: Number>(range: &impl RangeBounds<T>) -> String {
    let from = match range.start_bound() {
        Bound::Included(from) => format!("at least {from}"),
        Bound::Excluded(from) => format!("above {from}"),
        Bound::Unbounded => String::new(),
    };
    let to = match range.end_bound() {
        Bound::Included(to) => format!("at most {to}"),
        Bound::Excluded(to) => format!("below {to}"),
        Bound::Unbounded => String::new(),
    };
    match (from.is_empty(), to.is_empty()) {
        (false, false) => format!("{from} and {to}"),
        _ => from + &to,
    }
}

/// A numeric type that [`check_range`] accepts.
pub trait Number: Copy + PartialOrd + Display {
    /// Whether the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! numbers {
    ($($integer:ty)*; $($float:ty)*) => {
        $(impl Number for $integer { fn is_finite(self) -> bool { true } })*
        $(impl Number for $float { fn is_finite(self) -> bool { <$float>::is_finite(self) } })*
    };
}
numbers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize; f32 f64 }

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<(), ParamError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn numbers_within_the_range_are_accepted() {
        assert!(check_range("order", 3, 1..=10).is_ok());
        assert!(check_range("dim", 1, 1..).is_ok());
        assert!(check_range("rate", 0.0, 0.0..1.0).is_ok());
        assert!(check_range("any", -1e300, ..).is_ok());
    }

    #[test]
    fn the_message_states_the_requirement_and_the_value() {
        let above_zero = (Bound::Excluded(0.0), Bound::Unbounded);
        let cases = [
            (check_range("order", 0, 1..), "`order` must be at least 1, got 0"),
            (check_range("order", 11, 1..=10), "`order` must be at least 1 and at most 10, got 11"),
            (check_range("rate", 1.0, ..1.0), "`rate` must be below 1, got 1"),
            (check_range("rate", 0.0, above_zero), "`rate` must be above 0, got 0"),
            (check_range("rate", f32::NAN, ..), "`rate` must be a finite number, got NaN"),
            (check_range("rate", f64::INFINITY, 0.0..), "`rate` must be a finite number, got inf"),
            (check_that(false, "a", "even", 3), "`a` must be even, got 3"),
        ];
        for (result, expected) in cases {
            assert_eq!(message(result), expected);
        }
    }
}
