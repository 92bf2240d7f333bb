//! Curves of a training run from its log, which may still grow.

use super::args::{NoArgs, parse};
use crate::error::ViewError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A longer log is cut off.
const MAX_BYTES: u64 = 64 << 20;
/// Number of points of a curve; longer curves are thinned out.
const MAX_POINTS: usize = 2000;

/// Answers `log`; `None` for other views.
pub(crate) fn answer(path: &Path, view: &str, args: &Value) -> Option<Result<Value, ViewError>> {
    (view == "log").then(|| {
        parse::<NoArgs>(args)?;
        let lines = read(path).map_err(|_| ViewError::no_answer("the log cannot be read"))?;
        Ok(curves(&lines))
    })
}

/// Whether a file looks like a log: its first line is a JSON object with a number.
pub(crate) fn is_log(path: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    BufReader::new(File::open(path)?.take(1 << 16)).read_until(b'\n', &mut first)?;
    let parsed: Option<Map<String, Value>> = serde_json::from_slice(&first).ok();
    let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
    // A run that has just begun has an empty log.
    Ok(parsed.is_some_and(|line| line.values().any(Value::is_number))
        || is_jsonl && first.is_empty())
}

/// The lines that are complete objects. The last one may be half written.
fn read(path: &Path) -> io::Result<Vec<Map<String, Value>>> {
    let mut lines = BufReader::new(File::open(path)?.take(MAX_BYTES));
    let (mut found, mut line) = (Vec::new(), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        found.extend(serde_json::from_slice(&line).ok());
        line.clear();
    }
    Ok(found)
}

/// One curve per number of the lines, over the iterations.
fn curves(lines: &[Map<String, Value>]) -> Value {
    let mut curves: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let x = line.get("iteration").and_then(Value::as_f64).unwrap_or(at as f64 + 1.0);
        for (name, value) in line {
            if let Some(y) = value.as_f64().filter(|_| name != "iteration") {
                curves.entry(name).or_default().push((x, y));
            }
        }
    }
    let thin = |points: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
        let (step, last) = (points.len().div_ceil(MAX_POINTS), points.len() - 1);
        let kept = points.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last);
        kept.map(|(_, &point)| point).collect()
    };
    let curve = |(name, points): (&str, Vec<(f64, f64)>)| {
        let last = points.last().map(|point| point.1);
        json!({ "name": name, "n_points": points.len(), "last": last, "points": thin(points) })
    };
    json!({ "n_lines": lines.len(), "curves": curves.into_iter().map(curve).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_the_numbers_of_the_complete_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let text = "{\"iteration\":1,\"loss\":3.5}\n{\"iteration\":2,\"loss\":2.5,\"note\":\"x\"}\n{\"iter";
        std::fs::write(&path, text).unwrap();
        assert!(is_log(&path).unwrap());
        let found = answer(&path, "log", &json!({})).unwrap().unwrap();
        assert_eq!(found["n_lines"], 2);
        assert_eq!(found["curves"][0]["name"], "loss");
        assert_eq!(found["curves"][0]["points"], json!([[1.0, 3.5], [2.0, 2.5]]));
        assert!(answer(&path, "topics", &json!({})).is_none());
    }

    #[test]
    fn long_curves_are_thinned_out_but_keep_their_last_point() {
        let line = |i: usize| json!({ "iteration": i, "loss": i }).as_object().unwrap().clone();
        let lines: Vec<Map<String, Value>> = (0..5001).map(line).collect();
        let found = curves(&lines);
        let points = found["curves"][0]["points"].as_array().unwrap();
        assert!(points.len() <= MAX_POINTS && points.len() > MAX_POINTS / 2);
        assert_eq!(points[points.len() - 1], json!([5000.0, 5000.0]));
        assert_eq!(found["curves"][0]["n_points"], 5001);
    }

    #[test]
    fn text_is_not_a_log() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("a.txt", "a sentence\n"), ("b.txt", ""), ("c.jsonl", "{\"text\":\"x\"}\n")]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert!(!is_log(&path).unwrap(), "{name}");
        }
    }
}
