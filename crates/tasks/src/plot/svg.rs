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

/// Colors that also differ in print and for most color-blind readers.
pub(super) const COLORS: [&str; 9] = [
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22",
    "#ff7f0e",
];

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

    /// Draws a translucent circle around (x, y).
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, color: &str) {
        writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{color}" fill-opacity="0.35" stroke="{color}"/>"#
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

/// Escapes markup. Replaces control characters, which XML forbids or browsers hide, and characters that change the direction
/// of text, which would move what follows them.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{61C}' | '\u{200E}' | '\u{200F}' => escaped.push('\u{FFFD}'),
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{FFFD}'),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            c if c.is_control() => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    escaped
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

    #[test]
    fn any_text_gives_valid_xml() {
        let controls = (0..=0x9F).chain([0x202E, 0x2066, 0x200F, 0x61C, 0xFFFE, 0xFFFF]);
        let mut text: String = controls.filter_map(char::from_u32).collect();
        text.push_str("<b>&\"' é 東 \u{1F600} ]]>");
        let mut svg = Svg::new(10.0, 20.0);
        svg.text((1.0, 2.0), 8.0, Anchor::Start, &text);
        svg.colored_text((1.0, 2.0), 8.0, "#000", &text);
        let picture = svg.finish();
        let document = roxmltree::Document::parse(&picture).unwrap();
        let texts: Vec<&str> = document
            .descendants()
            .filter(|n| n.has_tag_name("text"))
            .filter_map(|n| n.text())
            .collect();
        assert_eq!(texts.len(), 2);
        for found in texts {
            assert!(found.ends_with("<b>&\"' é 東 \u{1F600} ]]>"), "{found:?}");
            assert!(!found.contains(|c: char| c.is_control() || c == '\u{202E}'), "{found:?}");
        }
    }
}
