//! Recurrent networks initialized with a linear dynamical system (Belanger & Kakade 2015, Table 4 and Figure 1).
//!
//! Protocol of the paper: 300 hidden units. The learning rate is constant until an epoch no longer improves the validation
//! perplexity, then decays geometrically until that happens again. Its initial value is chosen on the validation text for
//! each kind of initial weights. The state is carried across sentences, as in Mikolov's toolkit.

use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::{Context, Result};
use latens::corpus::Corpus;
use latens::lds::{HiddenState, Lds, RnnWeights};
use latens::model::{Fit, FitBuilder, FitError, Progress};
use latens::neural::{FirstWeights, Neural, NeuralInputs, NeuralParams, usable_device};
use latens::tasks::perplexity;
use latens::tasks::plot::{Anchor, Svg};
use std::ops::ControlFlow;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lds-rnn",
    about: "recurrent networks initialized with a linear dynamical system, on the Penn Treebank: perplexity, and epochs \
            until the best one; the figure is perplexity against epochs",
    run,
};

/// Initial scale of hidden vectors relative to the states of the linear system.
const SCALES: [f64; 4] = [0.1, 0.3, 0.5, 1.0];

/// Longer output vectors of the linear system are rescaled to this norm. With 300 dimensions, the validation perplexity
/// before training is 440; without rescaling it is over 10⁹.
const MAX_OUTPUT_NORM: f64 = 1.0;

/// Settings of a full and of a quick run.
struct Size {
    dim: usize,
    n_iterations: usize,
    n_sentences: usize,
    epochs: usize,
    rates: &'static [f64],
    seeds: &'static [u64],
}

const FULL: Size = Size {
    dim: 300,
    n_iterations: 10,
    n_sentences: usize::MAX,
    epochs: 40,
    rates: &[2.5e-4, 5e-4, 1e-3],
    seeds: &[1, 2, 3],
};

const QUICK: Size = Size {
    dim: 50,
    n_iterations: 3,
    n_sentences: 3000,
    epochs: 5,
    rates: &[1e-3, 3e-3],
    seeds: &[1],
};

/// One training run: validation perplexity after each epoch, and test perplexity of the best one.
#[derive(Clone)]
struct Run {
    valid: Vec<f64>,
    test: f64,
}

impl Run {
    /// The best epoch, counted from 1, and its validation perplexity.
    fn best(&self) -> (usize, f64) {
        let epochs = self.valid.iter().copied().zip(1..).map(|(valid, epoch)| (epoch, valid));
        epochs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is at least one epoch")
    }

    /// The first epoch with at most this validation perplexity.
    fn reaches(&self, perplexity: f64) -> Option<usize> {
        self.valid.iter().position(|&valid| valid <= perplexity).map(|epoch| epoch + 1)
    }
}

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    draw(data, effort, note).map(|(rows, _)| rows)
}

/// The table, and the figure.
pub(crate) fn draw(
    data: &Path,
    effort: Effort,
    note: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String)> {
    let size = if effort.is_quick() { QUICK } else { FULL };
    let mut ptb = PennTreebank::read(data)?;
    let n = ptb.train.sentences.len().min(size.n_sentences);
    ptb.train.sentences = ptb.train.sentences.slice(0..n);
    note(&format!("fitting a linear dynamical system of {} dimensions", size.dim));
    let lds = fit_lds(&ptb.train, &size)?;
    let mut initial = initial_weights(&lds);
    choose_scale(&mut initial, &ptb, &size, note)?;
    let baseline = runs("baseline", None, &ptb, &size, note)?;
    let initialized = runs("LDS", Some(&initial), &ptb, &size, note)?;
    let mut rows = rows("baseline", &baseline, Paper { valid: 130.6, test: 124.0, epochs: 17.0 });
    rows.extend(self::rows("LDS", &initialized, Paper { valid: 128.1, test: 122.8, epochs: 12.0 }));
    let goal = mean(baseline.iter().map(|run| run.best().1));
    let reached: Vec<f64> =
        initialized.iter().filter_map(|run| run.reaches(goal)).map(|epoch| epoch as f64).collect();
    if reached.len() == initialized.len() {
        rows.push(row("LDS", "passes to the baseline's best", None, mean(reached.into_iter())));
    }
    Ok((rows, figure(&baseline, &initialized)))
}

fn fit_lds(train: &Corpus, size: &Size) -> Result<Lds> {
    Ok(Lds::params().dim(size.dim).n_iterations(size.n_iterations).fit(train)?)
}

fn initial_weights(lds: &Lds) -> FirstWeights<'_> {
    let RnnWeights { dim, recurrent, input, output, bias } =
        lds.rnn_weights(HiddenState::Predicted);
    let vocab = &lds.lexicon().vocab;
    let (scale, max_output_norm) = (1.0, MAX_OUTPUT_NORM);
    FirstWeights { vocab, dim, recurrent, input, output, bias, scale, max_output_norm }
}

/// Chooses the scale with the lowest validation perplexity before training.
fn choose_scale(
    initial: &mut FirstWeights<'_>,
    ptb: &PennTreebank,
    size: &Size,
    note: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut best = (f64::INFINITY, initial.scale);
    for scale in SCALES {
        initial.scale = scale;
        let params = Neural::rnn().dim(size.dim).epochs(0);
        let model = training(params, ptb, Some(initial)).fit(&ptb.train)?;
        let valid = perplexity(&model, &ptb.valid).perplexity();
        note(&format!("scale {scale}: validation perplexity {valid:.1} before training"));
        if valid < best.0 {
            best = (valid, scale);
        }
    }
    initial.scale = best.1;
    Ok(())
}

fn training<'a>(
    params: NeuralParams,
    ptb: &'a PennTreebank,
    init: Option<&'a FirstWeights<'a>>,
) -> FitBuilder<'a, 'a, NeuralParams> {
    let mut inputs = NeuralInputs::default();
    inputs.init = init;
    params.with(inputs).valid(&ptb.valid).device(usable_device())
}

/// Chooses the learning rate with the first seed, then trains with the other seeds.
fn runs(
    name: &str,
    init: Option<&FirstWeights<'_>>,
    ptb: &PennTreebank,
    size: &Size,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Run>> {
    let mut best: Option<(f64, Run)> = None;
    for &rate in size.rates {
        let Some(run) = learn(name, init, ptb, size, (rate, size.seeds[0]), note)? else {
            continue;
        };
        if best.as_ref().is_none_or(|(_, best)| run.best().1 < best.best().1) {
            best = Some((rate, run));
        }
    }
    let (rate, run) = best.context("training diverged with every learning rate")?;
    let mut runs = vec![run];
    for &seed in &size.seeds[1..] {
        runs.extend(learn(name, init, ptb, size, (rate, seed), note)?);
    }
    Ok(runs)
}

fn learn(
    name: &str,
    init: Option<&FirstWeights<'_>>,
    ptb: &PennTreebank,
    size: &Size,
    (learning_rate, seed): (f64, u64),
    note: &mut dyn FnMut(&str),
) -> Result<Option<Run>> {
    let Size { dim, epochs, .. } = *size;
    let params = Neural::rnn().dim(dim).epochs(epochs).learning_rate(learning_rate).seed(seed);
    let mut valid = Vec::new();
    let watch = |progress: &Progress<'_>| {
        let measured = progress.metrics.iter().find(|(name, _)| *name == "valid_perplexity");
        valid.extend(measured.map(|&(_, value)| value));
        ControlFlow::Continue(())
    };
    let model = match training(params, ptb, init).watch(watch).fit(&ptb.train) {
        Err(error @ (FitError::Diverged { .. } | FitError::Unscorable { .. })) => {
            note(&format!("{name}, learning rate {learning_rate}, seed {seed}: {error}"));
            return Ok(None);
        }
        fitted => fitted?,
    };
    let run = Run { valid, test: perplexity(&model, &ptb.test).perplexity() };
    let (epoch, best) = run.best();
    note(&format!(
        "{name}, learning rate {learning_rate}, seed {seed}: valid {best:.1} in epoch {epoch}, test {:.1}",
        run.test
    ));
    Ok(Some(run))
}

/// Validation and test perplexity of the paper, and the number of epochs to the best model.
struct Paper {
    valid: f64,
    test: f64,
    epochs: f64,
}

fn row(name: &str, column: &str, paper: Option<f64>, ours: f64) -> Row {
    Row::new(name, column, paper, ours)
}

/// Means over runs beside the figures of the paper, then every run.
fn rows(name: &str, runs: &[Run], paper: Paper) -> Vec<Row> {
    let mut rows = vec![
        row(name, "PTB valid", Some(paper.valid), mean(runs.iter().map(|run| run.best().1))),
        row(name, "PTB test", Some(paper.test), mean(runs.iter().map(|run| run.test))),
        row(name, "passes", Some(paper.epochs), mean(runs.iter().map(|run| run.best().0 as f64))),
    ];
    if runs.len() > 1 {
        for (i, run) in runs.iter().enumerate() {
            let column = |what: &str| format!("{what}, seed {}", i + 1);
            rows.push(row(name, &column("PTB valid"), None, run.best().1));
            rows.push(row(name, &column("PTB test"), None, run.test));
            rows.push(row(name, &column("passes"), None, run.best().0 as f64));
        }
    }
    rows
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// Validation perplexity against epochs, for all runs.
fn figure(baseline: &[Run], initialized: &[Run]) -> String {
    let (left, top, width, height) = (60.0, 30.0, 560.0, 330.0);
    let all = || baseline.iter().chain(initialized).flat_map(|run| run.valid.iter().copied());
    let n_epochs = baseline.iter().chain(initialized).map(|run| run.valid.len()).max().unwrap_or(1);
    let lowest = all().fold(f64::INFINITY, f64::min) * 0.98;
    // Cut off the first epochs, whose perplexity is far higher.
    let highest = all().fold(0.0, f64::max).min(lowest * 2.0);
    let place = |epoch: usize, value: f64| {
        let x = left + width * (epoch as f64 - 1.0) / (n_epochs.max(2) - 1) as f64;
        let share = (value.min(highest) - lowest) / (highest - lowest);
        (x, top + height * (1.0 - share))
    };
    let mut svg = Svg::new(640.0, 420.0);
    svg.text(
        (left + width / 2.0, 18.0),
        14.0,
        Anchor::Middle,
        "Validation perplexity against epochs",
    );
    svg.line(&[(left, top), (left, top + height), (left + width, top + height)], "#444", 1.0);
    for tick in 0..=4 {
        let value = lowest + (highest - lowest) * f64::from(tick) / 4.0;
        let y = place(1, value).1;
        svg.text((left - 6.0, y + 4.0), 11.0, Anchor::End, &format!("{value:.0}"));
    }
    for epoch in (1..=n_epochs).step_by((n_epochs / 10).max(1)) {
        let x = place(epoch, lowest).0;
        svg.text((x, top + height + 16.0), 11.0, Anchor::Middle, &epoch.to_string());
    }
    for (name, runs, color, y) in
        [("baseline", baseline, "#888", 50.0), ("LDS", initialized, "#1f6fb4", 68.0)]
    {
        svg.line(&[(500.0, y), (530.0, y)], color, 2.0);
        svg.text((536.0, y + 4.0), 12.0, Anchor::Start, name);
        for run in runs {
            let points = run.valid.iter().zip(1..).map(|(&value, epoch)| place(epoch, value));
            svg.line(&points.collect::<Vec<_>>(), color, 2.0);
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_epoch_has_the_lowest_validation_perplexity() {
        let run = Run { valid: vec![200.0, 150.0, 140.0, 141.0], test: 135.0 };
        assert_eq!(run.best(), (3, 140.0));
        assert_eq!((run.reaches(150.0), run.reaches(139.0)), (Some(2), None));
        let rows = rows("x", &[run.clone(), run], Paper { valid: 1.0, test: 2.0, epochs: 3.0 });
        assert_eq!(rows.len(), 9);
        assert_eq!((rows[2].paper, rows[2].ours), (Some(3.0), 3.0));
    }

    #[test]
    fn the_figure_has_one_line_per_run() {
        let run = |valid: &[f64]| Run { valid: valid.to_vec(), test: 1.0 };
        let svg = figure(&[run(&[300.0, 150.0])], &[run(&[200.0, 140.0]), run(&[190.0])]);
        assert_eq!(svg.matches("<polyline").count(), 3 + 1 + 2);
    }
}
