//! Neural layers with hand-derived gradients.
