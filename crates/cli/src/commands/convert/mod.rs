//! `latens export` and `latens import`: the file formats of other programs.

mod export_import;

pub(crate) use export_import::{ExportArgs, ImportArgs, export, import};
