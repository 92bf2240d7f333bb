//! Singular vectors of the transition matrix of a linear dynamical system (Belanger & Kakade 2015, Table 1).

use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::corpus::{Vocab, WordId};
use latens::lds::{Lds, SingularPair};
use latens::model::{Fit, Progress};
use latens::tasks::plot::{Anchor, Svg};
use std::ops::ControlFlow;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lds-dynamics",
    about: "singular vectors of the transition matrix of a linear dynamical system on the Penn Treebank, with \
            their most likely words; the figure is the singular value",
    run,
};

/// Number of pairs and of words per singular vector.
const N_PAIRS: usize = 12;
const N_WORDS: usize = 6;
/// Minimum number of occurrences of a word.
const MIN_COUNT: u64 = 50;

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    draw(data, effort, note).map(|(rows, _)| rows)
}

/// The table, and a picture of it.
pub(crate) fn draw(
    data: &Path,
    effort: Effort,
    note: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, String)> {
    let ptb = PennTreebank::read(data)?;
    let (dim, n_iterations) = if effort.is_quick() { (50, 3) } else { (200, 10) };
    let params = Lds::params().dim(dim).n_iterations(n_iterations).pseudo_counts(20.0);
    let watch = |progress: &Progress<'_>| {
        if let Some((_, gain)) = progress.metrics.first() {
            note(&format!("iteration {}: gain {gain:.3}", progress.done));
        }
        ControlFlow::Continue(())
    };
    let model = params.watch(watch).fit(&ptb.train)?;
    let pairs = model.singular_pairs(N_PAIRS, N_WORDS, MIN_COUNT)?;
    let vocab = &model.lexicon().vocab;
    let row = |(i, pair): (usize, &SingularPair)| {
        Row::new(
            format!("{} → {}", words(&pair.from, vocab, " "), words(&pair.to, vocab, " ")),
            format!("pair {}", i + 1),
            None,
            pair.strength,
        )
    };
    Ok((pairs.iter().enumerate().map(row).collect(), picture(&pairs, vocab)))
}

fn words(side: &[(WordId, f64)], vocab: &Vocab, between: &str) -> String {
    side.iter().map(|&(word, _)| vocab.word(word)).collect::<Vec<_>>().join(between)
}

/// Each pair as two columns of words, with bars for their projections, and an arrow.
fn picture(pairs: &[SingularPair], vocab: &Vocab) -> String {
    const LINE: f64 = 15.0;
    const PAIR: f64 = (N_WORDS as f64 + 1.5) * LINE;
    let n_rows = pairs.len().div_ceil(2);
    let mut svg = Svg::new(880.0, 40.0 + n_rows as f64 * PAIR);
    svg.text((440.0, 22.0), 14.0, Anchor::Middle, "Singular vectors of the transition matrix");
    for (i, pair) in pairs.iter().enumerate() {
        let (left, top) = (10.0 + 440.0 * (i % 2) as f64, 40.0 + (i / 2) as f64 * PAIR);
        let most = pair.from.iter().chain(&pair.to).map(|&(_, value)| value).fold(1e-9, f64::max);
        for (side, x) in [(&pair.from, left), (&pair.to, left + 240.0)] {
            for (line, &(word, value)) in side.iter().enumerate() {
                let y = top + line as f64 * LINE;
                svg.bar((x, y + 2.0), 170.0 * (value / most).max(0.0), LINE - 3.0, "#cfe0f3");
                svg.text((x + 3.0, y + LINE - 4.0), 11.0, Anchor::Start, vocab.word(word));
            }
        }
        let middle = top + N_WORDS as f64 * LINE / 2.0;
        svg.arrow((left + 180.0, middle), 48.0, 0.5 + 2.5 * pair.strength);
        svg.text(
            (left + 204.0, middle - 7.0),
            10.0,
            Anchor::Middle,
            &format!("{:.3}", pair.strength),
        );
    }
    svg.finish()
}
