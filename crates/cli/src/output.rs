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
    fn digits_are_grouped_from_the_right() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")];
        for (n, expected) in cases {
            assert_eq!(thousands(n), expected);
        }
    }
}
