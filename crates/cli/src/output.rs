//! Results on the standard output: text for people, or one JSON object.

use crate::errors::StdoutError;
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

    /// Whether the result is to be JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the result: `result` as JSON if that is wanted, else `text`.
    pub(crate) fn result(
        &self,
        result: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        if self.json { print_json(result) } else { print(text) }
    }

    /// A message for people, on the standard error.
    pub(crate) fn note(&self, message: &str) {
        if !self.quiet {
            complain(&format!("{message}\n"));
        }
    }
}

/// Prints one JSON object, whole or not at all.
pub(crate) fn print_json(result: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(result)?;
    print(|out| writeln!(out, "{json}"))
}

/// Prints to the standard output.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    Ok(write(&mut out).and_then(|()| out.flush()).map_err(StdoutError)?)
}

/// Prints to the standard error. If nobody can be told, there is nobody to tell that, either.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
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
