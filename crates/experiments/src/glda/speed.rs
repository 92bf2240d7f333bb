//! Log-likelihood against time for the samplers of Gaussian LDA (Das et al. 2015, Figure 2).

use crate::corpora::topics::{encode, nips, vectors};
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::corpus::DocumentCorpus;
use latens::lda::{Glda, GldaInputs, Sampler};
use latens::model::{Fit, FitError, Progress};
use latens::tasks::plot::{Anchor, Svg};
use rayon::ThreadPoolBuilder;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "glda-speed",
    about: "samplers of Gaussian LDA on NIPS papers: tokens per second, and log-likelihood over time",
    run,
};

/// Samplers with the threads they use: one for comparison, or all.
const SAMPLERS: [(&str, Sampler, Threads); 8] = [
    ("naive", Sampler::Naive, Threads::One),
    ("cholesky (paper)", Sampler::Cholesky, Threads::One),
    ("alias (paper)", Sampler::Alias, Threads::One),
    ("exact", Sampler::Exact, Threads::One),
    ("mh", Sampler::Mh, Threads::One),
    ("parallel", Sampler::Parallel, Threads::One),
    ("mh, all threads", Sampler::Mh, Threads::All),
    ("parallel, all threads", Sampler::Parallel, Threads::All),
];
const N_TOPICS: usize = 50;
const DIM: usize = 50;

#[derive(Clone, Copy, PartialEq)]
enum Threads {
    One,
    All,
}

/// The run of one sampler.
struct Curve {
    name: &'static str,
    threads: Threads,
    tokens_per_second: f64,
    /// Elapsed seconds and log-likelihood per token.
    points: Vec<(f64, f64)>,
}

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    Ok(rows(&curves(data, effort, note)?))
}

/// The table, and a plot of the curves.
pub(crate) fn draw(
    data: &Path,
    effort: Effort,
    note: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String)> {
    let curves = curves(data, effort, note)?;
    Ok((rows(&curves), picture(&curves)))
}

fn curves(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Curve>> {
    // `naive` takes minutes per iteration on 60 papers, and more than an hour on all.
    let (step, seconds) = if effort.is_quick() { (145, 5.0) } else { (29, 30.0) };
    let documents: Vec<_> = nips(data)?.into_iter().step_by(step).collect();
    let (own, vectors) = vectors(data, DIM)?;
    let corpus = encode(&documents)?;
    let (vectors, coverage) = vectors.for_words(&own.vocab, &corpus.lexicon.vocab);
    note(&format!(
        "{} tokens, {:.1} % of them with a vector",
        corpus.documents.n_tokens(),
        100.0 * coverage.share()
    ));
    let data = (&corpus, GldaInputs::default().vectors(&vectors));
    let mut curves = Vec::new();
    for (name, sampler, threads) in SAMPLERS {
        let work = || curve(name, sampler, threads, data, seconds);
        let curve = match threads {
            Threads::One => ThreadPoolBuilder::new().num_threads(1).build()?.install(work),
            Threads::All => work(),
        }?;
        note(&curve.about());
        curves.push(curve);
    }
    Ok(curves)
}

/// Runs a sampler for at least `seconds` seconds and two iterations.
fn curve(
    name: &'static str,
    sampler: Sampler,
    threads: Threads,
    (corpus, inputs): (&DocumentCorpus, GldaInputs<'_>),
    seconds: f64,
) -> Result<Curve> {
    let params = Glda::params().n_topics(N_TOPICS).n_iterations(1000).sampler(sampler);
    let (mut points, mut speeds) = (Vec::new(), Vec::new());
    let started = Instant::now();
    let watch = |progress: &Progress<'_>| {
        let metric = |wanted| progress.metrics.iter().find(|(name, _)| *name == wanted);
        let value = |wanted| metric(wanted).map_or(f64::NAN, |&(_, value)| value);
        points.push((started.elapsed().as_secs_f64(), value("log_likelihood_per_token")));
        speeds.push(value("tokens_per_second"));
        let is_over = points.len() >= 2 && started.elapsed().as_secs_f64() > seconds;
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match params.with(inputs).watch(watch).fit(corpus) {
        Ok(_) | Err(FitError::Interrupted) => {}
        Err(error) => return Err(error.into()),
    }
    anyhow::ensure!(!points.is_empty(), "the sampler made no iteration");
    let n = speeds.len() as f64;
    let tokens_per_second = n / speeds.iter().map(|speed| 1.0 / speed).sum::<f64>();
    Ok(Curve { name, threads, tokens_per_second, points })
}

impl Curve {
    fn about(&self) -> String {
        let (seconds, nats) = self.points.last().copied().unwrap_or((f64::NAN, f64::NAN));
        format!(
            "{}: {} iterations, {:.0} tokens/s, {nats:.3} nats per token after {seconds:.1} s",
            self.name,
            self.points.len(),
            self.tokens_per_second,
        )
    }
}

fn rows(curves: &[Curve]) -> Vec<Row> {
    let mut rows = Vec::new();
    let speed_of = |name: &str| {
        curves.iter().find(|curve| curve.name == name).map_or(f64::NAN, |c| c.tokens_per_second)
    };
    for curve in curves {
        let mut row = |column: &str, paper, ours| {
            let (row, column) = (curve.name.to_owned(), column.to_owned());
            rows.push(Row::new(row, column, paper, ours));
        };
        row("tokens/s", None, curve.tokens_per_second);
        // Speeds with several threads are not comparable.
        if curve.threads == Threads::One {
            let paper = (curve.name == "alias (paper)").then_some(9.93);
            row("times cholesky", paper, curve.tokens_per_second / speed_of("cholesky (paper)"));
            row("times alias", None, curve.tokens_per_second / speed_of("alias (paper)"));
        }
        row("nats/token at the end", None, curve.points.last().map_or(f64::NAN, |p| p.1));
    }
    rows
}

const COLORS: [&str; 8] =
    ["#999999", "#d62728", "#ff7f0e", "#9467bd", "#1f77b4", "#2ca02c", "#17becf", "#bcbd22"];

/// Log-likelihood per token against time on a logarithmic axis.
fn picture(curves: &[Curve]) -> String {
    let (width, height, margin) = (720.0, 480.0, 60.0);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let low = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(f64::INFINITY, f64::min);
    let high = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (x_low, x_high) = (low(|p| p.0.ln()), high(|p| p.0.ln()));
    let (y_low, y_high) = (low(|p| p.1), high(|p| p.1));
    let place = |&(x, y): &(f64, f64)| {
        let across = (x.ln() - x_low) / (x_high - x_low).max(1e-9);
        let up = (y - y_low) / (y_high - y_low).max(1e-9);
        (margin + across * (width - 2.0 * margin), height - margin - up * (height - 2.0 * margin))
    };
    let mut svg = Svg::new(width, height);
    for (i, (curve, color)) in curves.iter().zip(COLORS).enumerate() {
        svg.line(&curve.points.iter().map(place).collect::<Vec<_>>(), color, 1.5);
        svg.colored_text(
            (width - 170.0, height - 150.0 + 15.0 * i as f64),
            12.0,
            color,
            curve.name,
        );
    }
    let seconds = |log: f64| format!("{:.2} s", log.exp());
    svg.text((margin, height - 25.0), 12.0, Anchor::Start, &seconds(x_low));
    svg.text((width - margin, height - 25.0), 12.0, Anchor::End, &seconds(x_high));
    svg.text((width / 2.0, height - 25.0), 12.0, Anchor::Middle, "time (logarithmic)");
    svg.text((5.0, margin), 12.0, Anchor::Start, &format!("{y_high:.2}"));
    svg.text((5.0, height - margin), 12.0, Anchor::Start, &format!("{y_low:.2}"));
    svg.text((5.0, margin - 20.0), 12.0, Anchor::Start, "log-likelihood (nats per token)");
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_compared_and_curves_drawn() {
        let curve = |name, speed, threads| Curve {
            name,
            threads,
            tokens_per_second: speed,
            points: vec![(0.5, -20.0), (1.0, -19.0)],
        };
        let curves = [
            curve("cholesky (paper)", 10.0, Threads::One),
            curve("alias (paper)", 20.0, Threads::One),
            curve("mh, all threads", 90.0, Threads::All),
        ];
        let rows = rows(&curves);
        let alias = rows.iter().find(|r| r.row == "alias (paper)" && r.column == "times cholesky");
        let alias = alias.map(|row| (row.ours, row.paper));
        assert_eq!(alias, Some((2.0, Some(9.93))));
        let of_all: Vec<&str> = rows
            .iter()
            .filter(|row| row.row == "mh, all threads")
            .map(|row| row.column.as_str())
            .collect();
        assert_eq!(of_all, ["tokens/s", "nats/token at the end"]);
        let picture = picture(&curves);
        assert!(picture.contains("<polyline") && !picture.contains("NaN"));
    }
}
