//! Tables of counts as arrays of a container file.

use crate::table::count_table::{CountTable, Counts, Item};
use latens_store::{ArrayWriter, Container, ContainerError};
use std::io;

/// Names and lengths in bytes of the arrays that [`write_table`] writes.
///
/// The name of the array of counts contains its width in bits.
pub(crate) fn table_arrays<T: Item>(name: &str, table: &CountTable<T>) -> [(String, u64); 3] {
    let n_items = table.len() as u64;
    let counts = match table.counts() {
        Counts::Narrow(_) => (format!("{name}.counts32"), 4 * n_items),
        Counts::Wide(_) => (format!("{name}.counts64"), 8 * n_items),
    };
    [
        (format!("{name}.offsets"), size_of_val(table.offsets()) as u64),
        (format!("{name}.items"), size_of_val(table.items()) as u64),
        counts,
    ]
}

/// Writes a table as three arrays.
pub(crate) fn write_table<T: Item>(
    table: &CountTable<T>,
    out: &mut ArrayWriter<'_>,
) -> io::Result<()> {
    out.array(table.offsets())?;
    out.array(table.items())?;
    match table.counts() {
        Counts::Narrow(counts) => out.array(counts),
        Counts::Wide(counts) => out.array(counts),
    }
}

/// Reads a table that [`write_table`] wrote, and validates it.
pub(crate) fn read_table<T: Item>(
    file: &Container,
    name: &str,
    n_rows: usize,
) -> Result<CountTable<T>, ContainerError> {
    let counts = match file.array(&format!("{name}.counts32")) {
        Ok(counts) => Counts::Narrow(counts),
        Err(_) => Counts::Wide(file.array(&format!("{name}.counts64"))?),
    };
    let offsets = file.array(&format!("{name}.offsets"))?;
    let items = file.array(&format!("{name}.items"))?;
    CountTable::from_parts(n_rows, offsets, items, counts)
        .map_err(|problem| file.problem(problem.to_owned()))
}
