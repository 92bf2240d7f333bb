//! Where text comes from, its formats, and the records (sentences or documents) in it.

pub(crate) mod format;
pub(crate) mod inputs;
pub(crate) mod columns;
pub(crate) mod rows;
pub(crate) mod table;
pub(crate) mod folder;
pub(crate) mod blocks;
pub(crate) mod lines;
pub(crate) mod source;
pub(crate) mod records;
#[cfg(test)]
pub(crate) mod tests;
