//! A small writer of pictures.

use std::fmt::Write;

/// A picture that is being drawn, in pixels.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// Text that begins, is centred or ends at a place: `start`, `middle` or `end`.
    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: &str, text: &str) {
        let text = escape(text);
        writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}">{text}</text>"#
        )
        .expect("a string takes all");
    }

    /// Text that begins at a place, in a colour.
    pub fn coloured_text(&mut self, (x, y): (f64, f64), size: f64, fill: &str, text: &str) {
        let text = escape(text);
        writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{fill}">{text}</text>"#
        )
        .expect("a string takes all");
    }

    /// A bar from a place to the right.
    pub fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, shade: &str) {
        writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{shade}"/>"#
        )
        .expect("a string takes all");
    }

    pub fn arrow(&mut self, (x, y): (f64, f64), length: f64, thickness: f64) {
        let end = x + length;
        writeln!(
            self.body,
            "<path d=\"M{x:.1} {y:.1}H{end:.1}m-6 -4l6 4l-6 4\" fill=\"none\" stroke=\"#444\" \
             stroke-width=\"{thickness:.2}\"/>"
        )
        .expect("a string takes all");
    }

    /// A line through places.
    pub fn line(&mut self, places: &[(f64, f64)], colour: &str, thickness: f64) {
        let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        writeln!(
            self.body,
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thickness}"/>"#
        )
        .expect("a string takes all");
    }

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
    fn words_that_look_like_markup_are_escaped() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.text((1.0, 2.0), 8.0, "start", "<unk> & co");
        let text = svg.finish();
        assert!(text.contains(">&lt;unk&gt; &amp; co</text>") && text.starts_with("<svg "));
    }
}
