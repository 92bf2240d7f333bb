//! Arguments of queries.

use crate::error::ViewError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Largest number of rows that one answer lists.
pub(crate) const MAX_ROWS: usize = 1000;

/// Reads the arguments of a query.
pub(crate) fn parse<T: DeserializeOwned>(args: &Value) -> Result<T, ViewError> {
    T::deserialize(args).map_err(ViewError::arguments)
}

/// Checks an index.
pub(crate) fn below(name: &str, idx: usize, n: usize) -> Result<usize, ViewError> {
    if idx < n {
        return Ok(idx);
    }
    let problem = match n {
        0 => format!("there is no {name}"),
        n => format!("{name} {idx} is out of range: the last one is {}", n - 1),
    };
    Err(ViewError::Arguments { problem })
}

/// No arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArgs {}

/// A text that a user typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextArgs {
    pub(crate) text: String,
}

/// A word that a user typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WordArgs {
    pub(crate) word: String,
}

/// A part of a long list.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PageArgs {
    pub(crate) first: usize,
    pub(crate) n: usize,
}

impl Default for PageArgs {
    fn default() -> PageArgs {
        PageArgs { first: 0, n: 50 }
    }
}
