//! Plots as SVG.

mod svg;
mod labels;
mod series;
mod topic_circles;
mod topic_map;

pub use series::{Series, SeriesPoint, series_plot};
pub use svg::{Anchor, Svg};
pub use topic_circles::{TopicCircle, topic_circles, topic_places};
pub use topic_map::{MapWord, principal_plane, topic_map};
