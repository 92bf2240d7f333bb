/// Names of the columns of a table, or of the keys of JSON objects, that hold the parts of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Columns {
    /// Column of the text. Default: `text`, or the only column of a table.
    pub text: Option<String>,
    /// Column of the identifier. Default: `id`, if there is such a column.
    pub id: Option<String>,
    /// Column of the label. Default: `label`, if there is such a column.
    pub label: Option<String>,
    /// Further columns to keep; see [`Documents::value`](crate::Documents::value).
    pub kept: Vec<String>,
}

impl Columns {
    /// Sets [`text`](field@Self::text).
    #[must_use]
    pub fn text(self, name: impl Into<String>) -> Columns {
        Columns { text: Some(name.into()), ..self }
    }

    /// Sets [`id`](field@Self::id).
    #[must_use]
    pub fn id(self, name: impl Into<String>) -> Columns {
        Columns { id: Some(name.into()), ..self }
    }

    /// Sets [`label`](field@Self::label).
    #[must_use]
    pub fn label(self, name: impl Into<String>) -> Columns {
        Columns { label: Some(name.into()), ..self }
    }

    /// Sets [`kept`](field@Self::kept).
    #[must_use]
    pub fn kept(self, names: impl IntoIterator<Item = impl Into<String>>) -> Columns {
        Columns { kept: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Name of the text column.
    pub(crate) fn text_name(&self) -> &str {
        self.text.as_deref().unwrap_or("text")
    }

    /// Name of the column of identifiers.
    pub(crate) fn id_name(&self) -> &str {
        self.id.as_deref().unwrap_or("id")
    }

    /// Name of the label column.
    pub(crate) fn label_name(&self) -> &str {
        self.label.as_deref().unwrap_or("label")
    }
}

/// Where the columns are in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) text: usize,
    pub(crate) id: Option<usize>,
    pub(crate) label: Option<usize>,
    pub(crate) kept: Vec<usize>,
}

impl Places {
    /// Finds the columns in the header of a table. Describes the problem if one is missing.
    pub(crate) fn find(columns: &Columns, header: &[String]) -> Result<Places, String> {
        let place = |name: &str| header.iter().position(|found| found == name);
        let needed = |name: &str| {
            place(name).ok_or_else(|| {
                let found: Vec<String> = header.iter().map(|name| format!("`{name}`")).collect();
                format!("the table has no column `{name}`; its columns are {}", found.join(", "))
            })
        };
        let wanted = |name: &Option<String>, default: &str| match name {
            Some(name) => needed(name).map(Some),
            None => Ok(place(default)),
        };
        let text = match &columns.text {
            None if header.len() == 1 => 0,
            _ => needed(columns.text_name())?,
        };
        Ok(Places {
            text,
            id: wanted(&columns.id, "id")?,
            label: wanted(&columns.label, "label")?,
            kept: columns.kept.iter().map(|name| needed(name)).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(columns: &Columns, header: &[&str]) -> Result<Places, String> {
        Places::find(columns, &header.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn columns_are_found_by_name_or_by_default() {
        let places = find(&Columns::default(), &["year", "text", "id"]).unwrap();
        assert_eq!(places, Places { text: 1, id: Some(2), label: None, kept: vec![] });
        let some = |name: &str| Some(name.to_owned());
        let columns = Columns {
            text: some("body"),
            label: some("group"),
            kept: vec!["year".to_owned()],
            ..Columns::default()
        };
        let places = find(&columns, &["body", "group", "year"]).unwrap();
        assert_eq!(places, Places { text: 0, id: None, label: Some(1), kept: vec![2] });
        assert_eq!(find(&Columns::default(), &["abstract"]).unwrap().text, 0);
        let problem = find(&Columns::default(), &["title", "body"]).unwrap_err();
        assert_eq!(problem, "the table has no column `text`; its columns are `title`, `body`");
        assert!(find(&columns, &["body", "group"]).unwrap_err().contains("`year`"));
    }
}
