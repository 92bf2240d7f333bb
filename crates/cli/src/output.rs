//! Results on the standard output: text for people, or one JSON object.

use serde::Serialize;
use std::io::{self, Write};

/// Where results go, and in which form.
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Output {
        Output { json, quiet }
    }

    /// Whether messages are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints the result: `result` as JSON if that is wanted, else `text`.
    pub(crate) fn result(
        &self,
        result: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, result)?;
            writeln!(out)?;
        } else {
            text(&mut out)?;
        }
        out.flush()
    }

    /// A message for people, on the standard error.
    pub(crate) fn note(&self, message: &str) {
        if !self.quiet {
            eprintln!("{message}");
        }
    }
}

/// A number as people read it: `1,234,567`.
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
