//! The same tables with taggers that are tuned on development text of the target domain, over several seeds of the
//! representations.
//!
//! Regularization and feature scale of each row maximize the mean score over seeds. All rows try the same values.

use super::measures::{Figure, Measure, Transfer, errors, phrases};
use super::paper::PAPER;
use super::tagging::{Size, noun_phrases, runner, tags, target};
use crate::experiment::{Effort, Experiment, Row};
use crate::tagging::representation::Representation;
use anyhow::Result;
use latens::corpus::TaggedSentences;
use latens::fhmm::MStep;
use latens::model::Fit;
use latens::tasks::tagging::{FeatureTagger, TaggerInputs, TaggerParams, evaluate};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::path::{Path, PathBuf};

pub(crate) const PARTS_OF_SPEECH: Experiment = Experiment {
    name: "fhmm-tuned-pos",
    about: "part-of-speech tagging as in `fhmm-pos`, tuned on development text, mean over seeds (error rate, %)",
    run: |data, effort, note| table(data, effort, &tags(data, effort)?, 200, errors, note),
};

pub(crate) const CHUNKS: Experiment = Experiment {
    name: "fhmm-tuned-chunk",
    about: "noun-phrase chunking as in `fhmm-chunk`, tuned on development text, mean over seeds (recall, precision and F1, %)",
    run: |data, effort, note| table(data, effort, &noun_phrases(data)?, 100, phrases, note),
};

/// Choices of a full and of a quick run.
struct Choices {
    seeds: &'static [u64],
    l2: &'static [f64],
    scales: &'static [f64],
}

impl Choices {
    fn new(effort: Effort) -> Choices {
        match effort {
            Effort::Quick => Choices { seeds: &[1, 2], l2: &[0.01, 0.1], scales: &[0.1, 0.3] },
            Effort::Full => {
                Choices { seeds: &[1, 2, 3], l2: &[0.01, 0.1, 0.5], scales: &[0.03, 0.1, 0.3] }
            }
        }
    }

    /// The parameters to choose from. Only dense features have a scale.
    fn of(&self, base: &TaggerParams, representation: &Representation) -> Vec<TaggerParams> {
        let scales = if representation.is_dense() { self.scales } else { &[base.scale] };
        let pairs = self.l2.iter().flat_map(|&l2| scales.iter().map(move |&scale| (l2, scale)));
        pairs.map(|(l2, scale)| base.clone().l2(l2).scale(scale)).collect()
    }
}

/// Taggers of a full run have at most `n_iterations`; those of a quick run have fewer.
fn table(
    data: &Path,
    effort: Effort,
    transfer: &Transfer,
    n_iterations: usize,
    measure: Measure,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let (size, choices) = (Size::new(effort), Choices::new(effort));
    let runner = runner(data, &size);
    let dev = target(data, "dev")?;
    let n_iterations = match effort {
        Effort::Quick => size.n_iterations,
        Effort::Full => n_iterations,
    };
    let base = FeatureTagger::params().pos_column(transfer.pos_column).n_iterations(n_iterations);
    let mut rows = Vec::new();
    let all_rows = |&seed| size.representations(MStep::default(), seed);
    let of_seeds: Vec<[Representation; 8]> = choices.seeds.iter().map(all_rows).collect();
    for (i, (name, ..)) in PAPER.iter().enumerate() {
        let first = &of_seeds[0][i];
        let n_seeds = if first.has_seed() { of_seeds.len() } else { 1 };
        note(&format!("{name}: fitting the representation"));
        let encoders = of_seeds[..n_seeds].par_iter();
        let encoders = encoders.map(|representations| runner.encoder(&representations[i]));
        let encoders = encoders.collect::<Result<Vec<_>>>()?;
        let candidates = choices.of(&base, first);
        note(&format!("{name}: fitting {} taggers", candidates.len() * n_seeds));
        let try_one = |params: TaggerParams| -> Result<Tried> {
            let one_seed = |path: &Option<PathBuf>| -> Result<_> {
                let encoder = path.as_deref().map(|path| (path, first.features()));
                let tagger = learn(transfer, &dev, params.clone(), encoder)?;
                Ok((score(&tagger, &dev, transfer.column)?, measure(transfer, &tagger, i)?))
            };
            let of_seeds = encoders.par_iter().map(one_seed).collect::<Result<Vec<_>>>()?;
            let (scores, figures) = of_seeds.into_iter().unzip();
            Ok(Tried { params, scores, figures })
        };
        let tried = candidates.into_par_iter().map(try_one).collect::<Result<Vec<_>>>()?;
        for candidate in &tried {
            note(&format!("{name}: {}", candidate.summary()));
        }
        let Tried { params: TaggerParams { l2, scale, .. }, figures, .. } = best(tried);
        note(&format!("{name}: l2 {l2}, scale {scale} are best on the development text"));
        rows.extend(means(name, &figures));
    }
    Ok(rows)
}

/// Parameters, their scores on the development text, and their figures, for each seed.
struct Tried {
    params: TaggerParams,
    scores: Vec<f64>,
    figures: Vec<Vec<Figure>>,
}

impl Tried {
    /// The mean score on the development text.
    fn score(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len() as f64
    }

    /// One line with the parameters, the scores, and the figures of all seeds.
    fn summary(&self) -> String {
        let list = |numbers: &mut dyn Iterator<Item = f64>| {
            numbers.map(|number| format!("{number:.2}")).collect::<Vec<_>>().join("/")
        };
        let TaggerParams { l2, scale, .. } = self.params;
        let dev = list(&mut self.scores.iter().copied());
        let mut line = format!("l2 {l2}, scale {scale}: {dev} on the development text");
        for (i, Figure { column, .. }) in self.figures[0].iter().enumerate() {
            line += &format!("; {column} {}", list(&mut self.figures.iter().map(|of| of[i].ours)));
        }
        line
    }
}

/// The parameters with the highest score, the first of them if there is a tie.
fn best(tried: Vec<Tried>) -> Tried {
    let better =
        |best: Tried, other: Tried| if other.score() > best.score() { other } else { best };
    tried.into_iter().reduce(better).expect("there are parameters to choose from")
}

/// Fits a tagger that stops when its score on the development text no longer improves.
fn learn(
    transfer: &Transfer,
    dev: &TaggedSentences,
    params: TaggerParams,
    encoder: Option<(&Path, Option<&str>)>,
) -> Result<FeatureTagger> {
    let mut inputs = TaggerInputs::default().column(transfer.column).dev(dev.clone());
    if let Some((path, features)) = encoder {
        inputs = inputs.encoder(latens::open_encoder(path, features)?);
    }
    Ok(params.with(inputs).fit(&transfer.source)?)
}

/// F1 of spans, or accuracy, in percent.
fn score(tagger: &FeatureTagger, text: &TaggedSentences, column: usize) -> Result<f64> {
    let scores = evaluate(tagger, text, column)?;
    Ok(100.0 * scores.spans.map_or(scores.accuracy, |spans| spans.f1))
}

/// The means of the figures of one row over seeds.
fn means(name: &str, figures: &[Vec<Figure>]) -> Vec<Row> {
    let first = figures.first().into_iter().flatten().enumerate();
    let row = |(i, Figure { column, paper, .. }): (usize, &Figure)| {
        let ours = figures.iter().map(|of_seed| of_seed[i].ours).collect();
        Row::of_seeds(name, column, *paper, ours)
    };
    first.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens::brown::BrownParams;
    use latens::word2vec::Word2vecParams;

    #[test]
    fn only_dense_features_have_a_scale() {
        let (choices, base) = (Choices::new(Effort::Full), FeatureTagger::params());
        let l2 = |representation| {
            let params = choices.of(&base, &representation);
            params.iter().map(|params| (params.l2, params.scale)).collect::<Vec<_>>()
        };
        let brown = l2(Representation::Brown(BrownParams::default()));
        assert_eq!(brown, [0.01, 0.1, 0.5].map(|l2| (l2, base.scale)));
        let word2vec = l2(Representation::Word2vec(Word2vecParams::default()));
        assert_eq!(word2vec.len(), 9);
        assert_eq!(word2vec[..3], [(0.01, 0.03), (0.01, 0.1), (0.01, 0.3)]);
    }

    #[test]
    fn the_highest_score_is_best_and_of_equal_ones_the_first() {
        let tried = |(l2, scores): (f64, &[f64])| Tried {
            params: FeatureTagger::params().l2(l2),
            scores: scores.to_vec(),
            figures: Vec::new(),
        };
        let l2_of_best = |scores: [&[f64]; 4]| {
            let all = [0.01, 0.1, 0.5, 1.0].into_iter().zip(scores).map(tried);
            best(all.collect()).params.l2
        };
        assert_eq!(l2_of_best([&[80.0], &[83.0], &[82.0], &[81.0]]), 0.1);
        assert_eq!(l2_of_best([&[80.0], &[83.0], &[83.0], &[84.0]]), 1.0);
        assert_eq!(l2_of_best([&[80.0], &[83.0], &[81.0], &[83.0]]), 0.1);
        // The mean over seeds decides.
        assert_eq!(l2_of_best([&[80.0, 90.0], &[86.0, 85.0], &[81.0, 82.0], &[84.0, 83.0]]), 0.1);
    }

    #[test]
    fn figures_are_means_over_seeds() {
        let figures = |ours: [f64; 2]| {
            let columns = ["All error", "OOV error"].into_iter().zip(ours);
            columns
                .map(|(column, ours)| Figure { column: column.to_owned(), paper: Some(9.7), ours })
                .collect::<Vec<_>>()
        };
        let rows = means("FHMM", &[figures([1.0, 5.0]), figures([2.0, 7.0])]);
        assert_eq!((rows[0].ours, rows[1].ours), (1.5, 6.0));
        assert_eq!(rows[1].of_seeds, [5.0, 7.0]);
        assert_eq!((rows[1].column.as_str(), rows[1].paper), ("OOV error", Some(9.7)));
        assert!(means("BASELINE", &[figures([1.0, 5.0])])[0].of_seeds.is_empty());
    }
}
