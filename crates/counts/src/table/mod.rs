//! The table that holds all counts, in memory, in a temporary file or in a mapped file.

mod array_sink;
pub(crate) mod count_table;
pub(crate) mod table_file;
