//! Line plots of series with intervals.

use super::labels::{Rectangle, place_labels, text_width};
use super::svg::{Anchor, COLORS, Svg};

/// A named line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name at the end of the line.
    pub name: String,
    /// One point per value of the x axis; values that are not finite are left out.
    pub points: Vec<SeriesPoint>,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
/// Room for the names of series.
const RIGHT: f64 = 260.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 60.0;
const FONT: f64 = 11.0;

/// Draws series over the values of an x axis, with intervals as vertical lines, as SVG.
pub fn series_plot(x_name: &str, y_name: &str, values: &[&str], series: &[Series]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let finite = |y: &f64| y.is_finite();
    let points = || series.iter().flat_map(|series| &series.points);
    let low = points().map(|point| point.low).filter(finite).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.high).filter(finite).fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low < high { (low, high) } else { (low.min(0.0), low.max(0.0) + 1.0) };
    let x_of = |idx: usize| {
        let n_steps = values.len().saturating_sub(1).max(1) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * idx as f64 / n_steps
    };
    let y_of = |y: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (high - low);
    axes(&mut svg, x_name, y_name, values, (low, high), &x_of, &y_of);
    let mut ends = Vec::new();
    for (idx, one) in series.iter().enumerate() {
        let color = COLORS[idx % COLORS.len()];
        let known = one.points.iter().enumerate().filter(|(_, point)| point.value.is_finite());
        let line: Vec<(f64, f64)> = known.map(|(i, point)| (x_of(i), y_of(point.value))).collect();
        for (i, point) in one.points.iter().enumerate() {
            if point.low.is_finite() && point.high > point.low {
                let interval = [(x_of(i), y_of(point.low)), (x_of(i), y_of(point.high))];
                svg.line(&interval, color, 0.6);
            }
        }
        svg.line(&line, color, 1.8);
        ends.push(line.last().copied().unwrap_or((LEFT, TOP)));
    }
    let frame = Rectangle { left: 0.0, top: 0.0, right: WIDTH, bottom: HEIGHT };
    let sizes: Vec<(f64, f64)> =
        series.iter().map(|s| (text_width(&s.name, FONT), FONT + 2.0)).collect();
    let starts: Vec<(f64, f64)> = ends.iter().map(|&(_, y)| (WIDTH - RIGHT + 4.0, y)).collect();
    for (idx, place) in place_labels(&starts, &sizes, frame).into_iter().enumerate() {
        let Some(place) = place else { continue };
        let at = (place.left, place.bottom - 3.0);
        svg.colored_text(at, FONT, COLORS[idx % COLORS.len()], &series[idx].name);
    }
    svg.finish()
}

fn axes(
    svg: &mut Svg,
    x_name: &str,
    y_name: &str,
    values: &[&str],
    (low, high): (f64, f64),
    x_of: &impl Fn(usize) -> f64,
    y_of: &impl Fn(f64) -> f64,
) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    svg.line(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], "#444", 1.0);
    for step in 0..=4 {
        let y = low + (high - low) * f64::from(step) / 4.0;
        let digits = if high - low >= 10.0 { 0 } else { 3 };
        svg.text((LEFT - 6.0, y_of(y) + 4.0), FONT, Anchor::End, &format!("{y:.digits$}"));
    }
    // As many names as fit.
    let widest = values.iter().map(|value| text_width(value, FONT)).fold(1.0, f64::max) + 10.0;
    let room = ((right - LEFT) / widest).floor().max(1.0) as usize;
    let every = values.len().div_ceil(room).max(1);
    for (idx, value) in values.iter().enumerate().step_by(every) {
        svg.text((x_of(idx), bottom + 18.0), FONT, Anchor::Middle, value);
    }
    svg.text(((LEFT + right) / 2.0, HEIGHT - 16.0), 12.0, Anchor::Middle, x_name);
    svg.text((LEFT, TOP - 6.0), 12.0, Anchor::Start, y_name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_a_line_and_a_name() {
        let point = |value: f64| SeriesPoint { value, low: value - 0.1, high: value + 0.1 };
        let series = [("a < b", 0.2), ("c", 0.2)].map(|(name, y)| Series {
            name: name.to_owned(),
            points: vec![point(y), point(f64::NAN), point(y + 0.1)],
        });
        let picture = series_plot("year", "share", &["1990", "1991", "1992"], &series);
        let document = roxmltree::Document::parse(&picture).unwrap();
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for text in ["a < b", "c", "year", "share", "1990", "1992"] {
            assert!(texts.contains(&text), "{text}: {texts:?}");
        }
        // The axes, and for each series a line and two intervals.
        assert_eq!(picture.matches("<polyline").count(), 1 + 2 * 3);
        assert!(!picture.contains("NaN"));
        assert!(series_plot("x", "y", &[], &[]).starts_with("<svg"));
    }
}
