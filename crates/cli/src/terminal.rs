//! Keeps control characters of words, file names and model files away from the terminal.
//!
//! Such characters could move the cursor, change colors, or reorder what the user reads. Results are escaped if standard
//! output is a terminal; in files and pipes, data keeps its bytes. Messages are always escaped.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character is a control character (C0, DEL, C1) or changes the direction of text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is part of the structure of our own output.
fn is_structure(c: char) -> bool {
    c == '\n' || c == '\t'
}

/// Escapes all control characters, as in JSON: `\u001b`.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, is_control)
}

/// Escapes all control characters except line breaks and tabs.
pub(crate) fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_if(text, |c| is_control(c) && !is_structure(c))
}

fn escape_if(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => escaped.push(c),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c => write!(escaped, "\\u{:04x}", u32::from(c)).expect("writing to a string succeeds"),
        }
    }
    Cow::Owned(escaped)
}

/// A writer that escapes all control characters except line breaks and tabs. Invalid UTF-8 becomes U+FFFD.
///
/// JSON stays the same JSON, because control characters occur only inside its strings.
pub(crate) struct Escaper<W> {
    out: W,
    /// The beginning of a character whose other bytes have not arrived.
    partial: Vec<u8>,
}

impl<W: Write> Escaper<W> {
    pub(crate) fn new(out: W) -> Escaper<W> {
        Escaper { out, partial: Vec::new() }
    }
}

impl<W: Write> Write for Escaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.partial.extend_from_slice(bytes);
        let arrived = std::mem::take(&mut self.partial);
        let mut rest = &arrived[..];
        while !rest.is_empty() {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.out.write_all(escape_lines(text).as_bytes())?;
                    break;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            let valid = std::str::from_utf8(valid).expect("it was found to be valid");
            self.out.write_all(escape_lines(valid).as_bytes())?;
            let Some(length) = error.error_len() else {
                self.partial = after.to_vec();
                break;
            };
            self.out.write_all("\u{FFFD}".as_bytes())?;
            rest = &after[length..];
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_all_other_characters_stay() {
        let text = "a\x1b[31m\r\x07\x7f\u{9b}\u{85}\u{202e}\u{2066}\u{200f}\u{61c}é東\u{200d}z\n\t";
        let escaped = "a\\u001b[31m\\u000d\\u0007\\u007f\\u009b\\u0085\\u202e\\u2066\\u200f\\u061cé東\u{200d}z";
        assert_eq!(escape_lines(text), format!("{escaped}\n\t"));
        assert_eq!(escape(text), format!("{escaped}\\n\\t"));
        assert!(matches!(escape("plain — text"), Cow::Borrowed(_)));
    }

    #[test]
    fn characters_may_arrive_in_pieces() {
        let bytes = "é\u{9b}東\u{202e}x\n".as_bytes();
        for size in 1..bytes.len() {
            let mut out = Escaper::new(Vec::new());
            bytes.chunks(size).for_each(|piece| out.write_all(piece).unwrap());
            assert_eq!(String::from_utf8(out.out).unwrap(), "é\\u009b東\\u202ex\n", "{size}");
        }
        let mut out = Escaper::new(Vec::new());
        out.write_all(b"a\x9bb\xff\xe2\x80c").unwrap();
        assert_eq!(String::from_utf8(out.out).unwrap(), "a\u{FFFD}b\u{FFFD}\u{FFFD}c");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "a\u{9b}\x1b\n\t": ["\u{202e}\x7f"] });
        let mut out = Escaper::new(Vec::new());
        write!(out, "{value}").unwrap();
        assert!(out.out.is_ascii());
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&out.out).unwrap(), value);
    }
}
