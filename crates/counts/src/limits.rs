//! Limits of what can be counted.

/// Maximum n-gram order.
pub const MAX_ORDER: usize = 6;

/// Maximum number of lags.
pub const MAX_LAGS: usize = u8::MAX as usize;
