//! `latens explore` and `latens report`: what models learned, as a page.

mod shown;
mod report;
mod serve;

pub(crate) use report::{ReportArgs, run as run_report};
pub(crate) use serve::{ExploreArgs, run};
