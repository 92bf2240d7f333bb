//! What each part of a very large HMM is good for (Chiu & Rush 2020, Tables 3 and 4, Figure 3).

use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Experiment, Row};
use crate::hmm::kept_models::KeptModels;
use anyhow::Result;
use latens::brown::{Brown, BrownParams};
use latens::hmm::{Constraint, HmmParams, Learning, Parameterization, Training};
use latens::model::{Device, Params, WordClusters, unwatched};
use latens::tasks::perplexity;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hmm-ablation",
    about: "perplexity of HMMs on the Penn Treebank: clusters, constraints, states, dropout, networks",
    run: |data, quick, note| ablate(data, quick, false, note),
};

/// One model of a table.
struct Model {
    table: &'static str,
    constraint: Constraint,
    parameterization: Parameterization,
    /// States and clusters, as in the paper; without a constraint there are no clusters.
    full: (usize, usize),
    /// The same for a first look, in which some models are left out.
    quick: Option<(usize, usize)>,
    state_dropout: f64,
    /// What the paper reports for the validation text, and for the training text.
    valid: Option<f64>,
    train: Option<f64>,
}

/// The number of clusters where there are none.
const NONE: usize = 1;

fn models() -> Vec<Model> {
    use Constraint::{Brown, None as Unconstrained, Uniform};
    use Parameterization::{Neural, Scalar};
    let model = |table, constraint, full, quick, state_dropout, valid| Model {
        table,
        constraint,
        parameterization: Neural,
        full,
        quick,
        state_dropout,
        valid,
        train: None,
    };
    let table_3 = |constraint, full, quick, state_dropout, valid| {
        model("Table 3", constraint, full, Some(quick), state_dropout, Some(valid))
    };
    let figure_3 = |n_states, quick, valid| {
        let quick: Option<usize> = quick;
        model("Figure 3", Brown, (n_states, 128), quick.map(|n| (n, 32)), 0.5, valid)
    };
    let table_4 = |parameterization, state_dropout, valid, train| Model {
        parameterization,
        train: Some(train),
        ..model("Table 4", Brown, (16384, 128), Some((1024, 32)), state_dropout, Some(valid))
    };
    vec![
        table_3(Brown, (16384, 32), (1024, 8), 0.5, 137.0),
        table_3(Brown, (16384, 64), (1024, 16), 0.5, 138.0),
        table_3(Brown, (16384, 128), (1024, 32), 0.5, 134.0),
        table_3(Brown, (16384, 256), (1024, 64), 0.5, 136.0),
        table_3(Unconstrained, (1024, NONE), (256, NONE), 0.0, 180.0),
        table_3(Brown, (1024, 4), (256, 4), 0.0, 182.0),
        table_3(Brown, (1024, 8), (256, 8), 0.0, 194.0),
        table_3(Uniform, (8192, 64), (256, 16), 0.5, 150.0),
        table_3(Brown, (8192, 64), (256, 16), 0.5, 142.0),
        table_3(Uniform, (16384, 128), (512, 32), 0.5, 146.0),
        figure_3(1024, None, None),
        figure_3(2048, Some(256), None),
        figure_3(4096, Some(512), None),
        figure_3(8192, None, None),
        figure_3(16384, Some(1024), Some(136.0)),
        figure_3(32768, Some(2048), Some(125.0)),
        table_4(Neural, 0.5, 136.0, 122.0),
        table_4(Neural, 0.0, 145.0, 89.0),
        table_4(Scalar, 0.5, 169.0, 119.0),
    ]
}

impl Model {
    fn sizes(&self, quick: bool) -> Option<(usize, usize)> {
        if quick { self.quick } else { Some(self.full) }
    }

    fn params(&self, (n_states, n_clusters): (usize, usize), quick: bool) -> HmmParams {
        let is_scalar = self.parameterization == Parameterization::Scalar;
        HmmParams {
            n_states,
            n_clusters,
            constraint: self.constraint,
            parameterization: self.parameterization,
            learning: Learning::Gradient,
            state_dropout: self.state_dropout,
            // A number of its own gets few gradients, where a network gets one from every token.
            learning_rate: if is_scalar { 0.1 } else { HmmParams::default().learning_rate },
            dim: if quick { 64 } else { 256 },
            epochs: if quick { 4 } else { 35 },
            ..HmmParams::default()
        }
    }
}

/// `16384 states, Brown 128`: the usual is not said.
fn name(params: &HmmParams) -> String {
    let constraint = match params.constraint {
        Constraint::Brown => format!("Brown {}", params.n_clusters),
        Constraint::Uniform => format!("uniform {}", params.n_clusters),
        Constraint::None => "no constraint".to_owned(),
    };
    let scalar = if params.parameterization == Parameterization::Scalar { ", scalar" } else { "" };
    let dropout = if params.state_dropout > 0.0 { "" } else { ", no dropout" };
    format!("{} states, {constraint}{scalar}{dropout}", params.n_states)
}

/// Perplexities of a model.
struct Figures {
    train: f64,
    valid: f64,
}

pub(crate) fn ablate(
    data: &Path,
    quick: bool,
    resume: bool,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let (ptb, kept) = (PennTreebank::read(data)?, KeptModels::new(resume));
    let mut clusters = BTreeMap::new();
    // Some models are part of several tables.
    let mut known: Vec<(HmmParams, Figures)> = Vec::new();
    let mut rows = Vec::new();
    let models = models();
    let wanted: Vec<_> = models.iter().filter_map(|m| Some((m, m.sizes(quick)?))).collect();
    for (i, &(model, sizes)) in wanted.iter().enumerate() {
        let params = model.params(sizes, quick);
        if !known.iter().any(|(other, _)| *other == params) {
            note(&format!("{}/{}: {}", i + 1, wanted.len(), name(&params)));
            let clusters = match params.constraint {
                Constraint::Brown => Some(cluster(&ptb, params.n_clusters, &mut clusters)?),
                Constraint::Uniform | Constraint::None => None,
            };
            let figures = fit(&params, &ptb, clusters, &kept, note)?;
            note(&format!("  train {:.2}, valid {:.2}", figures.train, figures.valid));
            known.push((params.clone(), figures));
        }
        let Some((_, figures)) = known.iter().find(|(other, _)| *other == params) else { continue };
        let mut row = |part: &str, paper: Option<f64>, ours| {
            let column = format!("{}, {part}", model.table);
            rows.push(Row { row: name(&params), column, paper: paper.filter(|_| !quick), ours });
        };
        row("valid", model.valid, figures.valid);
        if model.train.is_some() {
            row("train", model.train, figures.train);
        }
    }
    Ok(rows)
}

/// Brown clusters of the training text, each number of them found once.
fn cluster<'a>(
    ptb: &PennTreebank,
    n_clusters: usize,
    known: &'a mut BTreeMap<usize, WordClusters>,
) -> Result<&'a WordClusters> {
    Ok(match known.entry(n_clusters) {
        Entry::Occupied(found) => found.into_mut(),
        Entry::Vacant(place) => {
            let params = BrownParams { n_clusters, ..BrownParams::default() }.validate()?;
            let brown = Brown::fit(&params, &ptb.train, &mut unwatched)?;
            place.insert(brown.clusters().clone())
        }
    })
}

fn fit(
    params: &HmmParams,
    ptb: &PennTreebank,
    clusters: Option<&WordClusters>,
    kept: &KeptModels,
    note: &mut dyn FnMut(&str),
) -> Result<Figures> {
    let training = Training {
        corpus: &ptb.train,
        valid: Some(&ptb.valid),
        clusters,
        tags: None,
        device: Device::Cpu,
    };
    let measured = kept.figures((params, &training), ["train", "valid"], note, |hmm, _| {
        // That of the best epoch, on its own mini-batches.
        let train = hmm.facts().get("train_perplexity").and_then(|value| value.as_f64());
        [train.unwrap_or(f64::NAN), perplexity(hmm, &ptb.valid).perplexity()]
    });
    let [train, valid] = measured?;
    Ok(Figures { train, valid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_can_be_trained_in_both_runs() {
        for quick in [true, false] {
            for model in models() {
                let Some(sizes) = model.sizes(quick) else { continue };
                let params = model.params(sizes, quick);
                assert!(params.check().is_ok(), "{}", name(&params));
                let words = name(&params);
                assert!(!words.is_empty() && words.len() < 48, "{words}");
            }
        }
    }

    #[test]
    fn every_table_has_a_first_look() {
        for table in ["Table 3", "Figure 3", "Table 4"] {
            let of_table = models().into_iter().filter(|model| model.table == table);
            assert!(of_table.filter(|model| model.quick.is_some()).count() >= 3, "{table}");
        }
    }
}
