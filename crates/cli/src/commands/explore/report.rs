use super::shown::ShownArgs;
use crate::output::{Output, shown, thousands};
use anyhow::Result;
use clap::Args;
use latens::store::write_atomically;
use latens_explorer::report;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Write what models learned as one HTML file
///
/// Writes the page of `latens explore` with its data into a file that opens in any browser, without a server or a
/// network connection. Views that need typed text are left out.
#[derive(Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    shown: ShownArgs,
    /// Title of the report
    #[arg(long, value_name = "TEXT", default_value = "latens")]
    title: String,
    /// Path of the file to write
    #[arg(short, long, value_name = "PATH", default_value = "report.html")]
    output: PathBuf,
}

pub(crate) fn run(args: &ReportArgs, output: &Output) -> Result<()> {
    let explorer = args.shown.open(output)?;
    let page = report(&explorer, &args.title);
    write_atomically(&args.output, |out| out.write_all(page.as_bytes()))?;
    let path = args.output.display().to_string();
    let result = json!({ "path": path, "bytes": page.len(), "items": explorer.len() });
    output.result(&result, |out| {
        writeln!(out, "wrote `{}`: {} bytes", shown(&path), thousands(page.len()))
    })
}
