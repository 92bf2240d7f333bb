//! Pages with marked regions that are filled from records.

use crate::record::Record;
use crate::table::{Field, render};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// Fills the tables of a page. `shown` collects the ids of all records that it shows.
///
/// A table stands between `<!-- table: PATTERN …; columns FIELD -->` and `<!-- end of table -->`. A pattern is an id in
/// which `*` stands for any text; `columns` is optional (see [`render`]).
pub(crate) fn fill_tables(
    page: &str,
    records: &[&Record],
    to_docs: &str,
    shown: &mut BTreeSet<String>,
) -> Result<String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(at) = line_start(rest, BEGIN) {
        let (before, region) = rest.split_at(at);
        let (marker, body) =
            region.split_once("-->").context("a marker does not end with `-->`")?;
        let (_, after) = body
            .split_once(END)
            .with_context(|| format!("`{marker}-->` is not followed by `{END}`"))?;
        let wish = marker[BEGIN.len()..].trim();
        let table =
            table(wish, records, to_docs, shown).with_context(|| format!("table `{wish}`"))?;
        out += &format!("{before}{marker}-->\n{table}{END}");
        rest = after;
    }
    Ok(out + rest)
}

/// Where the first line that begins with `marker` starts; prose may quote a marker.
fn line_start(text: &str, marker: &str) -> Option<usize> {
    text.match_indices(marker).map(|(at, _)| at).find(|&at| at == 0 || text[..at].ends_with('\n'))
}

fn table(
    wish: &str,
    records: &[&Record],
    to_docs: &str,
    shown: &mut BTreeSet<String>,
) -> Result<String> {
    let (patterns, columns) = match wish.split_once(';') {
        None => (wish, None),
        Some((patterns, option)) => match option.trim().split_once(' ') {
            Some(("columns", field)) => (patterns, Some(Field::parse(field.trim())?)),
            _ => bail!("`{}` is not an option of a table", option.trim()),
        },
    };
    let mut chosen: Vec<&Record> = Vec::new();
    for pattern in patterns.split_whitespace() {
        let found: Vec<&Record> =
            records.iter().copied().filter(|r| matches(pattern, &r.id)).collect();
        if found.is_empty() {
            bail!("no record matches `{pattern}`");
        }
        for record in found {
            if !chosen.iter().any(|other| other.id == record.id) {
                chosen.push(record);
            }
        }
    }
    shown.extend(chosen.iter().map(|record| record.id.clone()));
    render(&chosen, columns, to_docs)
}

/// Replaces what stands between two markers.
pub(crate) fn fill_region(page: &str, begin: &str, end: &str, content: &str) -> Result<String> {
    let missing = || format!("the markers `{begin}` and `{end}` are missing");
    let (before, rest) = page.split_once(begin).with_context(missing)?;
    let (_, after) = rest.split_once(end).with_context(missing)?;
    Ok(format!("{before}{begin}\n{content}{end}{after}"))
}

/// Whether an id matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, tail)) => id
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|skipped| matches(tail, &rest[skipped..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, id, expected) in [
            ("hmm-*", "hmm-ptb", true),
            ("hmm-*-test", "hmm-ptb-1-test", true),
            ("hmm-*-test", "hmm-ptb-1-valid", false),
            ("hmm", "hmm-ptb", false),
            ("*", "x", true),
        ] {
            assert_eq!(matches(pattern, id), expected, "{pattern} {id}");
        }
    }

    #[test]
    fn filling_a_page_twice_changes_nothing() {
        let records = [record("x-1", "m", "valid", "1")];
        let records: Vec<&Record> = records.iter().collect();
        let page = "# X\n\n<!-- table: x-* -->\n<!-- end of table -->\n\nProse.\n";
        let mut shown = BTreeSet::new();
        let filled = fill_tables(page, &records, "../", &mut shown).unwrap();
        assert!(filled.contains("| m | 1 |") && filled.ends_with("\n\nProse.\n"), "{filled}");
        assert_eq!(fill_tables(&filled, &records, "../", &mut shown).unwrap(), filled);
        assert!(shown.contains("x-1"));
    }

    #[test]
    fn a_marker_inside_a_line_is_prose() {
        let page = "Write `<!-- table: x-* -->` on a line.\n";
        assert_eq!(fill_tables(page, &[], "", &mut BTreeSet::new()).unwrap(), page);
    }

    #[test]
    fn markers_without_records_or_ends_are_refused() {
        let records = [record("x-1", "m", "valid", "1")];
        let records: Vec<&Record> = records.iter().collect();
        for (page, expected) in [
            ("<!-- table: y-* -->\n<!-- end of table -->", "no record matches `y-*`"),
            ("<!-- table: x-* -->\n", "is not followed by"),
            ("<!-- table: x-*; rows a -->\n<!-- end of table -->", "not an option"),
        ] {
            let error = fill_tables(page, &records, "", &mut BTreeSet::new()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        }
    }
}
