//! Plots as SVG.

mod svg;
mod topic_map;

pub use svg::{Anchor, Svg};
pub use topic_map::{MapWord, topic_map};
