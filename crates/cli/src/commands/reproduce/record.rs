//! Figures as records of `results/*.jsonl`: one JSON object per line, with what is needed to measure them again.

use crate::args;
use anyhow::{Context, Result};
use latens_experiments::{Effort, Experiment, Row};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// One figure. Field names are those that `xtask` reads.
#[derive(Serialize)]
struct Record<'a> {
    id: String,
    model: &'a str,
    data: &'a str,
    metric: String,
    unit: Option<&'static str>,
    value: f64,
    spread: Option<Spread>,
    reference: Option<Reference>,
    command: &'a str,
    commit: Option<&'a str>,
    machine: &'a str,
    date: &'a str,
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct Spread {
    over: &'static str,
    n: usize,
    min: f64,
    max: f64,
}

impl Spread {
    /// The range over seeds; `None` without them.
    fn of(figures: &[f64]) -> Option<Spread> {
        let n = figures.len();
        let [min, max] = [f64::min, f64::max].map(|f| figures.iter().copied().reduce(f));
        Some(Spread { over: "seeds", n, min: rounded(min?), max: rounded(max?) })
    }
}

#[derive(Serialize)]
struct Reference {
    kind: &'static str,
    value: f64,
    source: &'static str,
}

/// What the rows of an experiment measure.
struct Measure {
    /// Corpus, if the columns of the experiment do not name it.
    data: Option<&'static str>,
    /// Quantity; columns that do not name the corpus are added to it.
    metric: &'static str,
    unit: Option<&'static str>,
    /// Paper that the experiment repeats.
    source: &'static str,
}

impl Measure {
    fn of(experiment: &str) -> Option<Measure> {
        const PTB: Option<&str> = Some("Penn Treebank");
        const GENIA: Option<&str> = Some("newswire to GENIA test");
        const PERCENT: Option<&str> = Some("%");
        let (data, metric, unit, source) = match experiment {
            "lm-baselines" | "hmm-ptb" | "hmm-wikitext2" | "hmm-distill" => {
                (None, "perplexity", None, "Chiu & Rush 2020, Table 1")
            }
            "hmm-ablation" => {
                (PTB, "perplexity", None, "Chiu & Rush 2020, Tables 3 and 4, Figure 3")
            }
            "hmm-dropout" => (PTB, "perplexity", None, "Chiu & Rush 2020"),
            "control" => (PTB, "generation", None, "Zhang et al. 2024"),
            "hmm-tagging" => (None, "accuracy", PERCENT, "Chiu & Rush 2020"),
            "lds-dynamics" => {
                (PTB, "share of the state carried over", None, "Belanger & Kakade 2015, Table 1")
            }
            "lds-rnn" => (PTB, "perplexity or epochs", None, "Belanger & Kakade 2015, Table 4"),
            "lds-pos" => (None, "accuracy", PERCENT, "Belanger & Kakade 2015, Table 2"),
            "lds-ner" => (Some("CoNLL-2003"), "F1", PERCENT, "Belanger & Kakade 2015, Table 3"),
            "fhmm-pos" | "fhmm-tuned-pos" => {
                (GENIA, "tagging", PERCENT, "Nepal & Yates 2013, Table 1")
            }
            "fhmm-chunk" | "fhmm-tuned-chunk" => {
                (GENIA, "noun phrases", PERCENT, "Nepal & Yates 2013, Table 2")
            }
            "glda-speed" => (Some("NIPS"), "sampling", None, "Das et al. 2015, Figure 2"),
            "glda-topics" => (Some("20 newsgroups"), "coherence", None, "Das et al. 2015, Table 1"),
            "glda-oov" => (
                None,
                "accuracy (%) or mean distance of mixtures",
                None,
                "Das et al. 2015, Tables 2 and 3",
            ),
            _ => return None,
        };
        Some(Measure { data, metric, unit, source })
    }

    /// Data, metric and unit of a row. A column may name the corpus or the metric, and some rows are tests.
    fn describe<'a>(&self, row: &'a Row) -> (&'a str, String, Option<&'static str>) {
        let column = row.column.as_str();
        let data = self.data.unwrap_or(column);
        if row.row.starts_with("p: ") || column.starts_with("p ") {
            return (data, format!("p, {column}"), None);
        }
        let metric = match self.data {
            Some(_) => format!("{}, {column}", self.metric),
            None => self.metric.to_owned(),
        };
        (data, metric, self.unit)
    }
}

/// Opens the file for appending, so that a wrong name is refused before the experiment runs.
pub(super) fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.with_context(|| format!("cannot write `{}`", path.display()))
}

/// Appends one record per figure. Values that are not finite are left out: JSON cannot hold them.
pub(super) fn append(
    mut file: File,
    experiment: &Experiment,
    effort: Effort,
    rows: &[Row],
) -> Result<()> {
    let run = Run {
        command: command(args::all().iter().skip(1).map(|arg| arg.to_string_lossy().into_owned())),
        commit: commit(),
        machine: machine(),
        date: date(SystemTime::now()),
    };
    let lines = run.lines(experiment.name, effort, rows)?;
    file.write_all(lines.as_bytes()).context("cannot append the records")
}

/// What all records of a run have in common.
struct Run {
    command: String,
    commit: Option<String>,
    machine: String,
    date: String,
}

impl Run {
    fn lines(&self, experiment: &str, effort: Effort, rows: &[Row]) -> Result<String> {
        let measure = Measure::of(experiment)
            .with_context(|| format!("`{experiment}` has no description of its figures"))?;
        let mut lines = String::new();
        for row in rows.iter().filter(|row| row.ours.is_finite()) {
            let (data, metric, unit) = measure.describe(row);
            let size = if effort == Effort::Quick { "quick" } else { "" };
            let reference = row.paper.filter(|paper| paper.is_finite()).map(|value| Reference {
                kind: "paper",
                value,
                source: measure.source,
            });
            let record = Record {
                id: slug([experiment, size, &row.row, &row.column]),
                model: &row.row,
                data,
                metric,
                unit,
                value: rounded(row.ours),
                spread: Spread::of(&row.of_seeds),
                reference,
                command: &self.command,
                commit: self.commit.as_deref(),
                machine: &self.machine,
                date: &self.date,
                note: None,
            };
            lines += &serde_json::to_string(&record)?;
            lines.push('\n');
        }
        Ok(lines)
    }
}

/// Lowercase letters and digits, everything else as single hyphens.
fn slug<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut slug = String::new();
    for part in parts {
        for c in part.chars().chain(['-']) {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Six significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The command line as others can run it: without `--record`, and with `DIR` for the folder of corpora.
fn command(args: impl IntoIterator<Item = String>) -> String {
    let (mut words, mut args) = (vec!["latens".to_owned()], args.into_iter());
    while let Some(arg) = args.next() {
        match arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag) {
            flag @ ("--record" | "--data") => {
                if !arg.contains('=') {
                    args.next();
                }
                if flag == "--data" {
                    words.push("--data DIR".to_owned());
                }
            }
            _ => words.push(arg),
        }
    }
    words.join(" ")
}

/// The commit of the working directory, if it is a checkout of this project.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let ran = Command::new("git").args(args).output().ok()?;
        ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    };
    git(&["cat-file", "-e", "HEAD:crates/experiments/Cargo.toml"])?;
    git(&["rev-parse", "--short=7", "HEAD"])
}

/// Processor, threads and memory, as far as the system tells.
fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name");
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let threads = available_parallelism().map_or(1, |n| n.get());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| {
        let kib: u64 = text.strip_suffix(" kB")?.parse().ok()?;
        Some(format!(", {:.0} GiB", kib as f64 / f64::from(1 << 20)))
    });
    let memory = memory.unwrap_or_default();
    format!("{processor}, {threads} threads{memory}, {}", std::env::consts::OS)
}

/// The day in UTC, as `YYYY-MM-DD`.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Howard Hinnant's `civil_from_days`: years begin in March, eras of 400 years have 146,097 days.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_experiments::EXPERIMENTS;
    use serde_json::Value;
    use std::time::Duration;

    fn row(row: &str, column: &str, paper: Option<f64>, ours: f64) -> Row {
        Row::new(row, column, paper, ours)
    }

    #[test]
    fn every_experiment_describes_its_figures() {
        for experiment in EXPERIMENTS {
            assert!(Measure::of(experiment.name).is_some(), "{}", experiment.name);
        }
    }

    #[test]
    fn a_row_becomes_a_record() {
        let run = Run {
            command: "latens reproduce hmm-ptb --data DIR".to_owned(),
            commit: None,
            machine: "somewhere".to_owned(),
            date: "2026-11-16".to_owned(),
        };
        let mut rows = [
            row("32768 states", "PTB test", Some(115.8), 114.401_234_56),
            row("32768 states", "PTB valid", None, f64::NAN),
        ];
        let lines = run.lines("hmm-ptb", Effort::Full, &rows).unwrap();
        let records: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(records.len(), 1, "NaN has no record");
        let expected = serde_json::json!({
            "id": "hmm-ptb-32768-states-ptb-test", "model": "32768 states", "data": "PTB test",
            "metric": "perplexity", "unit": null, "value": 114.401, "spread": null,
            "reference": { "kind": "paper", "value": 115.8, "source": "Chiu & Rush 2020, Table 1" },
            "command": "latens reproduce hmm-ptb --data DIR", "commit": null,
            "machine": "somewhere", "date": "2026-11-16", "note": null,
        });
        assert_eq!(records[0], expected);
        rows[0].of_seeds = vec![115.0, 113.5, 114.7];
        let lines = run.lines("hmm-ptb", Effort::Full, &rows).unwrap();
        let record: Value = serde_json::from_str(lines.trim_end()).unwrap();
        let spread = serde_json::json!({ "over": "seeds", "n": 3, "min": 113.5, "max": 115.0 });
        assert_eq!(record["spread"], spread);
    }

    #[test]
    fn p_values_have_no_unit() {
        let measure = Measure::of("lds-pos").unwrap();
        let p = row("p: Lex+EM ≠ Lex", "CoNLL-2000 U test", None, 4e-16);
        assert_eq!(
            measure.describe(&p),
            ("CoNLL-2000 U test", "p, CoNLL-2000 U test".into(), None)
        );
        assert_eq!(
            slug(["lds-pos", "", &p.row, &p.column]),
            "lds-pos-p-lex-em-lex-conll-2000-u-test"
        );
    }

    #[test]
    fn the_command_does_not_name_folders_of_the_user() {
        let args = "reproduce x --data /home/me/corpora --quick --record=new.jsonl --threads 2";
        let command = command(args.split(' ').map(str::to_owned));
        assert_eq!(command, "latens reproduce x --data DIR --quick --threads 2");
    }

    #[test]
    fn dates_agree_with_the_calendar() {
        for (days, expected) in [(0, "1970-01-01"), (11_016, "2000-02-29"), (20_773, "2026-11-16")]
        {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 7)), expected);
        }
    }
}
