//! What files of token ids consist of.

use std::io;

/// The ids of an array or a file.
pub(super) trait Items: Send {
    /// The next id or the end of a row; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Item>>;
}

pub(super) enum Item {
    Id(i64),
    EndOfRow,
}
