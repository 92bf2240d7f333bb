//! Numbers that keep the digits of the record: 114.40 is not 114.4.

use std::collections::HashMap;

/// The number literals of a JSON object, by path: `value`, `reference.value`.
///
/// Parsing to `f64` drops trailing zeros, which say how precise a figure is. `line` must be a valid JSON object.
pub(crate) fn literals(line: &str) -> HashMap<String, String> {
    let (mut found, mut path) = (HashMap::new(), Vec::<String>::new());
    let (mut key, mut is_value) = (String::new(), false);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '"' => {
                length = string_length(rest);
                if !is_value {
                    key = rest[1..length - 1].to_owned();
                }
            }
            ':' => is_value = true,
            ',' => is_value = false,
            '{' => {
                path.push(std::mem::take(&mut key));
                is_value = false;
            }
            '}' => {
                path.pop();
            }
            '-' | '0'..='9' if is_value => {
                length = rest.find([',', '}', ']', ' ']).unwrap_or(rest.len());
                // The outermost object has no name.
                let names = path.iter().skip(1).chain([&key]).map(String::as_str);
                found.insert(names.collect::<Vec<_>>().join("."), rest[..length].to_owned());
            }
            _ => {}
        }
        rest = &rest[length..];
    }
    found
}

/// The length in bytes of the JSON string that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Groups the digits before the point by thousands: `6770000` becomes `6,770,000`.
pub(crate) fn grouped(literal: &str) -> String {
    let (sign, digits) = literal.strip_prefix('-').map_or(("", literal), |rest| ("−", rest));
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    let mut text = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 3 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_their_digits() {
        let line = r#"{"id": "a-1, \"2\": 3", "value": 114.40, "reference": {"value": 5e-37, "source": "x"}, "n": -1}"#;
        let found = literals(line);
        assert_eq!(found["value"], "114.40");
        assert_eq!(found["reference.value"], "5e-37");
        assert_eq!(found["n"], "-1");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        let cases = [
            ("0.45", "0.45"),
            ("999", "999"),
            ("1024", "1,024"),
            ("6770000", "6,770,000"),
            ("-408034.9741", "−408,034.9741"),
            ("5e-37", "5e-37"),
        ];
        for (literal, expected) in cases {
            assert_eq!(grouped(literal), expected);
        }
    }
}
