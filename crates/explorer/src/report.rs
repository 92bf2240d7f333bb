//! The page with its answers as one file, which needs no server.

use crate::explorer::{Explorer, Query};
use crate::page::{INDEX, SCRIPTS, STYLE};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Writes the page and the answers to all queries that need no typed text into one HTML file.
///
/// Its scripts are those of the server in one block; the policy of the file allows that block only, by its checksum.
pub fn report(explorer: &Explorer, title: &str) -> String {
    explorer.finish();
    let mut answers = Map::new();
    for query in explorer.report_queries() {
        if let Ok(answer) = explorer.answer(&query) {
            answers.insert(key(&query), answer);
        }
    }
    let data = json!({ "title": title, "items": explorer.items(), "answers": answers });
    let (script, style) = (bundle(), STYLE.text);
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'",
        checksum(&script),
        checksum(style),
    );
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>{style}</style>"
    );
    let body = format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script type=\"module\">{script}</script>",
        inert(&data)
    );
    INDEX
        .text
        .replace("<link rel=\"icon\" href=\"icon.svg\">\n", "")
        .replace("<link rel=\"stylesheet\" href=\"style.css\">", &head)
        .replace("<script type=\"module\" src=\"app.js\"></script>", &body)
}

/// The key of an answer, as `data.js` computes it.
fn key(query: &Query) -> String {
    let args = query.args.as_object().cloned().unwrap_or_default();
    let mut parts: Vec<(String, String)> =
        args.into_iter().map(|(name, value)| (name, plain(&value))).collect();
    parts.sort();
    let parts: Vec<String> =
        parts.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{} {} {}", query.item, query.view, parts.join("&"))
}

/// A value as JavaScript writes it: 1, not 1.0.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |x| x.to_string()),
        other => other.to_string(),
    }
}

/// JSON that cannot end a script element or begin a comment.
fn inert(data: &Value) -> String {
    data.to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn checksum(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// All modules as one: imports are dropped, since all names are in the same block.
fn bundle() -> String {
    let mut script = String::new();
    for asset in SCRIPTS {
        let mut lines = asset.text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("import ") {
                // An import may span several lines.
                let mut line = line;
                while !line.ends_with(';') {
                    line = lines.next().expect("an import ends with a semicolon");
                }
                continue;
            }
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
            script.push('\n');
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_modules_have_no_name_in_common() {
        let mut names = HashSet::new();
        for line in bundle().lines() {
            let words: Vec<&str> = line.split([' ', '(', '=', ';']).collect();
            let is_declared = ["const", "let", "function", "class"].contains(&words[0]);
            let name = match words[..] {
                ["async", "function", name, ..] => name,
                [_, name, ..] if is_declared => name,
                _ => continue,
            };
            assert!(names.insert(name.to_owned()), "`{name}` is declared twice");
        }
        assert!(names.len() > 30, "{}", names.len());
        assert!(!bundle().contains("\nimport ") && !bundle().contains("\nexport "));
        assert!(!bundle().contains("</script"), "this would end the block");
    }

    #[test]
    fn the_license_of_the_charting_library_goes_with_it() {
        // D3 has a license that must be part of every copy.
        for part in ["Copyright 2010-2026 Mike Bostock", "Permission to use, copy, modify"] {
            assert!(bundle().contains(part), "{part}");
        }
    }

    #[test]
    fn keys_are_those_of_the_page() {
        let query = |args: Value| Query { item: 2, view: "topic".to_owned(), args };
        assert_eq!(key(&query(json!({ "topic": 3, "lambda": 1.0 }))), "2 topic lambda=1&topic=3");
        assert_eq!(key(&query(json!({ "lambda": 0.3 }))), "2 topic lambda=0.3");
        assert_eq!(key(&query(Value::Null)), "2 topic ");
    }

    #[test]
    fn words_cannot_leave_the_data_block() {
        let text = inert(&json!("</script><!--<script>\u{2028}"));
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "</script><!--<script>\u{2028}");
    }
}
