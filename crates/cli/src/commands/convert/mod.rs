//! `latens export` and `latens import`: the file formats of other programs.

pub(crate) mod foreign_format;
pub(crate) mod vectors;
mod export_import;

pub(crate) use export_import::{ExportArgs, ImportArgs, export, import};
