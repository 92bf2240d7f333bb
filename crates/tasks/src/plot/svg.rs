//! A minimal SVG writer.

use std::fmt::Write;

/// An SVG picture under construction. Coordinates are pixels; y grows downwards.
///
/// ```
/// use latens_tasks::plot::{Anchor, Svg};
///
/// let mut svg = Svg::new(200.0, 100.0);
/// svg.line(&[(10.0, 90.0), (190.0, 10.0)], "#1f77b4", 1.5);
/// svg.text((100.0, 50.0), 12.0, Anchor::Middle, "loss < 1");
/// assert!(svg.finish().contains("loss &lt; 1</text>"));
/// ```
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Which point of a text its coordinates give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The left end.
    Start,
    /// The middle.
    Middle,
    /// The right end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Svg {
    /// An empty white picture.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// Draws black text of the given font size, with its anchor at (x, y).
    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str) {
        let (anchor, text) = (anchor.name(), escape(text));
        writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}">{text}</text>"#
        )
        .expect("writing to a string cannot fail");
    }

    /// Draws text in a color, starting at (x, y).
    pub fn colored_text(&mut self, (x, y): (f64, f64), size: f64, fill: &str, text: &str) {
        let text = escape(text);
        writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{fill}">{text}</text>"#
        )
        .expect("writing to a string cannot fail");
    }

    /// Draws a filled rectangle with its top left corner at (x, y).
    pub fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, color: &str) {
        writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{color}"/>"#
        )
        .expect("writing to a string cannot fail");
    }

    /// Draws an arrow from (x, y) to the right.
    pub fn arrow(&mut self, (x, y): (f64, f64), length: f64, thickness: f64) {
        let end = x + length;
        writeln!(
            self.body,
            "<path d=\"M{x:.1} {y:.1}H{end:.1}m-6 -4l6 4l-6 4\" fill=\"none\" stroke=\"#444\" \
             stroke-width=\"{thickness:.2}\"/>"
        )
        .expect("writing to a string cannot fail");
    }

    /// Draws a polyline through points.
    pub fn line(&mut self, points: &[(f64, f64)], color: &str, thickness: f64) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        writeln!(
            self.body,
            r#"<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{thickness}"/>"#
        )
        .expect("writing to a string cannot fail");
    }

    /// Returns the SVG document.
    pub fn finish(self) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_markup_is_escaped() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.text((1.0, 2.0), 8.0, Anchor::Start, "<unk> & co");
        let text = svg.finish();
        assert!(text.contains(">&lt;unk&gt; &amp; co</text>") && text.starts_with("<svg "));
    }
}
