mod record;

use crate::data::pictures::check_picture;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::store::write_atomically;
use latens_experiments::{EXPERIMENTS, Effort, Experiment, Row, figure, resume};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Reproduce an experiment of the papers
///
/// Reads the corpora of the papers and prints a table of their results and ours.
/// `docs/data.md` lists the files that each experiment needs.
#[derive(Args)]
pub(crate) struct ReproduceArgs {
    /// Name of the experiment (see `--list`)
    #[arg(required_unless_present = "list")]
    experiment: Option<String>,
    /// Folder of the corpora
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    data: Option<PathBuf>,
    /// Run a smaller version of the experiment
    #[arg(long)]
    quick: bool,
    /// Continue an interrupted run, for experiments that keep their models
    #[arg(long, conflicts_with = "output")]
    resume: bool,
    /// Path of the figure to draw, for experiments with a figure
    #[arg(short, long, value_name = "FIGURE.svg")]
    output: Option<PathBuf>,
    /// Append one record per figure to this file, in the format of `results/*.jsonl`
    #[arg(long, value_name = "FILE.jsonl")]
    record: Option<PathBuf>,
    /// List the experiments
    #[arg(long)]
    list: bool,
}

#[derive(Serialize)]
struct ReproduceResult<'a> {
    experiment: &'a str,
    rows: Vec<Row>,
    seconds: f64,
}

pub(crate) fn run(args: &ReproduceArgs, output: &Output) -> Result<ExitCode> {
    let (false, Some(name), Some(data)) = (args.list, &args.experiment, &args.data) else {
        list(output)?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(experiment) = EXPERIMENTS.iter().find(|experiment| experiment.name == name) else {
        return Err(hinted(
            format!("unknown experiment `{name}`"),
            "`latens reproduce --list` lists all experiments",
        ));
    };
    let records = args.record.as_deref().map(record::open).transpose()?;
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let started = Instant::now();
    let note = &mut |message: &str| output.note(message);
    let rows = match &args.output {
        Some(path) => run_and_draw(experiment, data, effort, path, note)?,
        None if args.resume => {
            let Some(resume) = resume(experiment.name) else {
                let message = format!("the experiment `{name}` cannot be resumed");
                return Err(hinted(message, "omit `--resume`"));
            };
            resume(data, effort, note)?
        }
        None => (experiment.run)(data, effort, note)?,
    };
    let result = ReproduceResult {
        experiment: experiment.name,
        rows,
        seconds: started.elapsed().as_secs_f64(),
    };
    if let Some(records) = records {
        record::append(records, experiment, effort, &result.rows)?;
    }
    output.result(&result, |out| write_table(experiment, &result.rows, out))?;
    Ok(ExitCode::SUCCESS)
}

fn run_and_draw(
    experiment: &Experiment,
    data: &Path,
    effort: Effort,
    path: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let Some(draw) = figure(experiment.name) else {
        let message = format!("the experiment `{}` has no figure", experiment.name);
        return Err(hinted(message, "omit `-o`"));
    };
    check_picture(Some(path), &["svg"])?;
    let (rows, picture) = draw(data, effort, note)?;
    write_atomically(path, |out| out.write_all(picture.as_bytes()))?;
    Ok(rows)
}

fn list(output: &Output) -> Result<()> {
    let names = EXPERIMENTS.iter().map(|e| json!({ "name": e.name, "about": e.about }));
    output.result(&json!({ "experiments": names.collect::<Vec<_>>() }), |out| {
        EXPERIMENTS.iter().try_for_each(|e| writeln!(out, "{:16} {}", e.name, e.about))
    })
}

fn write_table(experiment: &Experiment, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", experiment.about)?;
    let width = |text: fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (first, second) = (width(|row| &row.row, 24), width(|row| &row.column, 20));
    writeln!(out, "{:first$} {:second$} {:>10} {:>10}", "", "", "paper", "ours")?;
    for row in rows {
        let paper = row.paper.map_or("-".to_owned(), |paper| format!("{paper:.2}"));
        write!(out, "{:first$} {:second$} {paper:>10} {:>10.2}", row.row, row.column, row.ours)?;
        let seeds = row.of_seeds.iter().copied();
        if let (Some(min), Some(max)) = (seeds.clone().reduce(f64::min), seeds.reduce(f64::max)) {
            write!(out, "   {min:.2} to {max:.2} over {} seeds", row.of_seeds.len())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
