//! Pictures in SVG.

mod svg;
mod topic_map;

pub use svg::Svg;
pub use topic_map::{MapWord, topic_map};
