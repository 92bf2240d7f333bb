//! The table of crates in ARCHITECTURE.md.

/// Which crate may depend on which others of ours.
pub(crate) struct Table {
    rows: Vec<Row>,
}

struct Row {
    /// The crate's folder; `model-*` stands for every model.
    name: String,
    allowed: Vec<String>,
}

impl Table {
    /// Reads the rows of the table whose last column is headed "May depend on". That column names crates in backticks,
    /// or says `nothing`, or `all above`.
    pub(crate) fn parse(text: &str) -> Table {
        let table = text.lines().skip_while(|line| !line.contains("May depend on")).skip(2);
        let mut rows: Vec<Row> = Vec::new();
        for line in table.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, _, allowed] = cells[..] else { panic!("three columns expected: {line}") };
            let mut names = quoted(allowed);
            if allowed.contains("all above") {
                names.extend(rows.iter().map(|row| row.name.clone()));
            }
            assert!(!names.is_empty() || allowed == "nothing", "not understood: {line}");
            rows.push(Row { name: quoted(name).remove(0), allowed: names });
        }
        assert!(rows.len() > 10, "ARCHITECTURE.md has no table of crates");
        Table { rows }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }

    pub(crate) fn allows(&self, name: &str, dependency: &str) -> bool {
        let row = self.rows.iter().find(|row| row.name == name);
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md does not list `{name}`"));
        row.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => dependency.starts_with(prefix),
            None => allowed == dependency,
        })
    }
}

/// What stands in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_table_is_read_as_it_is_written() {
    let rows: String = (0..9).map(|i| format!("| `c{i}` | text | nothing |\n")).collect();
    let text = format!(
        "# A\n\n| Crate | What it does | May depend on (of ours) |\n|---|---|---|\n{rows}\
         | `model-a` | learns | `c1`, `c2`; `cuda` behind the feature `cuda` |\n\
         | `all` | everything | all above |\n\nMore text.\n| `x` | y | `z` |\n"
    );
    let table = Table::parse(&text);
    assert_eq!(table.names().count(), 11);
    assert!(table.allows("model-a", "c2") && table.allows("model-a", "cuda"));
    assert!(!table.allows("model-a", "c3") && !table.allows("c1", "c0"));
    assert!(table.allows("all", "model-a"));
}
