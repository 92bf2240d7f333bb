//! Results on standard output, as text or as one JSON object, and messages on standard error.

use crate::errors::StdoutError;
use crate::terminal::{Escaper, escape, escape_lines};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Format and verbosity of the output.
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Output {
        Output { json, quiet }
    }

    /// Whether messages are suppressed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether results are printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `result` as JSON if requested, otherwise as `text`.
    pub(crate) fn result(
        &self,
        result: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        if self.json { print_json(result) } else { print(text) }
    }

    /// Prints a message to standard error.
    pub(crate) fn note(&self, message: &str) {
        if !self.quiet {
            complain(&format!("{message}\n"));
        }
    }
}

/// Prints one JSON object. Serialization errors print nothing.
pub(crate) fn print_json(result: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(result)?;
    print(|out| writeln!(out, "{json}"))
}

/// Prints to standard output. A terminal receives no control characters.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = if out.is_terminal() {
        let mut out = Escaper::new(&mut out);
        write(&mut out).and_then(|()| out.flush())
    } else {
        write(&mut out).and_then(|()| out.flush())
    };
    Ok(written.map_err(StdoutError)?)
}

/// A word or name as a part of a line of text: for a terminal without line breaks and tabs, which could forge other lines.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { escape(text) } else { Cow::Borrowed(text) }
}

/// Words separated by spaces; see [`shown`].
pub(crate) fn shown_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Prints to standard error without control characters. Ignores failures, which cannot be reported.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().write_all(escape_lines(text).as_bytes());
}

/// Formats a number with about four significant digits for readers; JSON has all digits.
pub(crate) fn figure(x: f64) -> String {
    let size = x.abs();
    match size {
        _ if x.fract() == 0.0 && size < 1e15 => format!("{x:.0}"),
        _ if !x.is_finite() => x.to_string(),
        _ if size >= 1000.0 => format!("{x:.0}"),
        _ if size >= 100.0 => format!("{x:.1}"),
        _ if size >= 10.0 => format!("{x:.2}"),
        _ if size >= 1.0 => format!("{x:.3}"),
        _ if size >= 0.001 => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}

/// Formats a duration in seconds with the largest unit that fits: `45 s`, `3 min`, `2.5 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s if s < 360_000.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Formats a p-value with the digits that mean something: `p = 0.031`, `p < 0.001`.
pub(crate) fn p_text(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p < 0.1 => format!("p = {p:.3}"),
        p => format!("p = {p:.2}"),
    }
}

/// Formats a number with thousands separators: `1,234,567`.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        let cases = [
            (0.0, "0"),
            (12.0, "12"),
            (12345.678, "12346"),
            (123.456, "123.5"),
            (12.3456, "12.35"),
            (-1.23456, "-1.235"),
            (0.123456, "0.1235"),
            (0.000012345, "1.23e-5"),
            (f64::INFINITY, "inf"),
        ];
        for (x, expected) in cases {
            assert_eq!(figure(x), expected);
        }
        let durations =
            [(5.4, "5 s"), (99.0, "99 s"), (150.0, "2 min"), (9000.0, "2.5 h"), (1e6, "12 days")];
        for (seconds, expected) in durations {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn p_values_are_never_zero() {
        let cases =
            [(0.0, "p < 0.001"), (9e-4, "p < 0.001"), (0.0312, "p = 0.031"), (0.5, "p = 0.50")];
        for (p, expected) in cases {
            assert_eq!(p_text(p), expected);
        }
        assert_eq!(p_text(1.0), "p = 1.00");
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")];
        for (n, expected) in cases {
            assert_eq!(thousands(n), expected);
        }
    }
}
