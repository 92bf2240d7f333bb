//! Tells text in columns from plain text.

use std::collections::HashSet;

/// Number of lines that are examined.
const N_LINES: usize = 1000;

/// Minimum number of lines with equally many words, and a blank line among them, to assume columns.
const MIN_EQUAL_LINES: usize = 10;

/// Evidence that text is in columns: the tags that one of the columns may contain.
#[derive(Clone, Debug, Default)]
pub struct ColumnGuess<'a> {
    /// Tags that a tagger knows.
    pub tags: HashSet<&'a str>,
    /// Column of the tags in the text that the tagger learned from, counted from 0.
    pub column: Option<usize>,
}

impl ColumnGuess<'_> {
    /// Whether `text` has one token per line. All lines that are not blank must have the same number of columns, and the
    /// columns must be separated by tabs, contain known tags, or be many. One column needs a blank line.
    pub(crate) fn says_columns(&self, text: &str) -> bool {
        let is_token = |line: &&str| !line.starts_with("-DOCSTART-");
        let lines: Vec<&str> = text.lines().filter(is_token).take(N_LINES).collect();
        let is_blank = |line: &&str| line.trim().is_empty();
        let end = lines.iter().rposition(|line| !is_blank(line)).map_or(0, |last| last + 1);
        let start = lines.iter().position(|line| !is_blank(line)).unwrap_or(0);
        let lines = &lines[start.min(end)..end];
        let has_gap = lines.iter().any(is_blank);
        let rows: Vec<&&str> = lines.iter().filter(|line| !is_blank(line)).collect();
        let n_columns = rows.first().map_or(0, |row| row.split_ascii_whitespace().count());
        let same = |row: &&&str| row.split_ascii_whitespace().count() == n_columns;
        if rows.len() < 2 || !rows.iter().all(same) {
            return false;
        }
        if n_columns == 1 {
            return has_gap;
        }
        let has_tabs =
            |row: &&&str| row.split('\t').filter(|cell| !cell.is_empty()).count() == n_columns;
        let is_tagged = |row: &&&str| {
            let cell = |column| row.split_ascii_whitespace().nth(column);
            self.column.and_then(cell).is_some_and(|cell| self.tags.contains(cell))
        };
        rows.iter().all(has_tabs)
            || rows.iter().all(is_tagged)
            || (has_gap && rows.len() >= MIN_EQUAL_LINES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_from_plain_text() {
        let guess = ColumnGuess { tags: HashSet::from(["N", "V"]), column: Some(1) };
        let equal = "a b\n".repeat(9);
        for text in [
            "dogs N\nbark V\n",
            "dogs\tX\nbark\tY\n",
            "-DOCSTART- -X- O\n\ndogs N\nbark V\n",
            "dogs\nbark\n\ncats\n",
            &format!("{equal}\na b\n"),
        ] {
            assert!(guess.says_columns(text), "{text:?}");
        }
        for text in [
            "The dog barks .\n\nIt sleeps .\n",
            "dogs bark\n",
            "dogs bark\ncats sleep\n",
            "dogs\nbark\n",
            "dogs N\nbark\n",
            "news\tDogs bark\nsports\tThe cat runs\n",
            &equal,
            "\n\n",
            "",
        ] {
            assert!(!guess.says_columns(text), "{text:?}");
        }
    }
}
