//! Ablations of very large HMMs (Chiu & Rush 2020, Tables 3 and 4, Figure 3).

use super::kept_models::{Earlier, KeptModels, Training};
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::brown::Brown;
use latens::hmm::{Constraint, HmmParams, Learning, Parameterization};
use latens::model::{Fit, WordClusters};
use latens::tasks::perplexity;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hmm-ablation",
    about: "ablations of HMMs on the Penn Treebank (perplexity): clusters, constraints, states, dropout, networks",
    run: |data, effort, note| ablate(data, effort, Earlier::Ignore, note),
};

/// One model of a table.
struct Model {
    table: &'static str,
    constraint: Constraint,
    parameterization: Parameterization,
    /// Sizes of the paper.
    full: Sizes,
    /// Sizes of a quick run; `None` if it skips the model.
    quick: Option<Sizes>,
    state_dropout: f64,
    /// Validation and training perplexity of the paper.
    valid: Option<f64>,
    train: Option<f64>,
}

/// Numbers of states and clusters.
#[derive(Clone, Copy)]
struct Sizes {
    n_states: usize,
    n_clusters: usize,
}

const fn sizes(n_states: usize, n_clusters: usize) -> Sizes {
    Sizes { n_states, n_clusters }
}

/// Number of clusters without a constraint.
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
        model("Figure 3", Brown, sizes(n_states, 128), quick.map(|n| sizes(n, 32)), 0.5, valid)
    };
    let table_4 = |parameterization, state_dropout, valid, train| Model {
        parameterization,
        train: Some(train),
        ..model(
            "Table 4",
            Brown,
            sizes(16384, 128),
            Some(sizes(1024, 32)),
            state_dropout,
            Some(valid),
        )
    };
    vec![
        table_3(Brown, sizes(16384, 32), sizes(1024, 8), 0.5, 137.0),
        table_3(Brown, sizes(16384, 64), sizes(1024, 16), 0.5, 138.0),
        table_3(Brown, sizes(16384, 128), sizes(1024, 32), 0.5, 134.0),
        table_3(Brown, sizes(16384, 256), sizes(1024, 64), 0.5, 136.0),
        table_3(Unconstrained, sizes(1024, NONE), sizes(256, NONE), 0.0, 180.0),
        table_3(Brown, sizes(1024, 4), sizes(256, 4), 0.0, 182.0),
        table_3(Brown, sizes(1024, 8), sizes(256, 8), 0.0, 194.0),
        table_3(Uniform, sizes(8192, 64), sizes(256, 16), 0.5, 150.0),
        table_3(Brown, sizes(8192, 64), sizes(256, 16), 0.5, 142.0),
        table_3(Uniform, sizes(16384, 128), sizes(512, 32), 0.5, 146.0),
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
    fn sizes(&self, effort: Effort) -> Option<Sizes> {
        if effort.is_quick() { self.quick } else { Some(self.full) }
    }

    fn params(&self, Sizes { n_states, n_clusters }: Sizes, effort: Effort) -> HmmParams {
        let is_scalar = self.parameterization == Parameterization::Scalar;
        // A scalar parameter gets few gradients, whereas a network gets one from every token.
        let learning_rate = if is_scalar { 0.1 } else { HmmParams::default().learning_rate };
        HmmParams::default()
            .n_states(n_states)
            .n_clusters(n_clusters)
            .constraint(self.constraint)
            .parameterization(self.parameterization)
            .learning(Learning::Gradient)
            .state_dropout(self.state_dropout)
            .learning_rate(learning_rate)
            .dim(if effort.is_quick() { 64 } else { 256 })
            .epochs(if effort.is_quick() { 4 } else { 35 })
    }
}

/// Name of a row, e.g., `16384 states, Brown 128`. Neural parameterization and dropout are not mentioned.
fn name(params: &HmmParams) -> String {
    let constraint = match params.constraint {
        Constraint::Brown => format!("Brown {}", params.n_clusters),
        Constraint::Uniform => format!("uniform {}", params.n_clusters),
        Constraint::None => "no constraint".to_owned(),
    };
    let scalar = if params.parameterization == Parameterization::Scalar { ", scalar" } else { "" };
    let dropout = if params.state_dropout != Some(0.0) { "" } else { ", no dropout" };
    format!("{} states, {constraint}{scalar}{dropout}", params.n_states)
}

/// Training and validation perplexity of a model.
struct Figures {
    train: f64,
    valid: f64,
}

pub(crate) fn ablate(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let (ptb, kept) = (PennTreebank::read(data)?, KeptModels::new(earlier));
    let mut clusters = BTreeMap::new();
    // Some models appear in several tables.
    let mut known: Vec<(HmmParams, Figures)> = Vec::new();
    let mut rows = Vec::new();
    let models = models();
    let wanted: Vec<_> = models.iter().filter_map(|m| Some((m, m.sizes(effort)?))).collect();
    for (i, &(model, sizes)) in wanted.iter().enumerate() {
        let params = model.params(sizes, effort);
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
            rows.push(Row::new(
                name(&params),
                column,
                paper.filter(|_| effort == Effort::Full),
                ours,
            ));
        };
        row("valid", model.valid, figures.valid);
        if model.train.is_some() {
            row("train", model.train, figures.train);
        }
    }
    Ok(rows)
}

/// Brown clusters of the training text, computed once per number of clusters.
fn cluster<'a>(
    ptb: &PennTreebank,
    n_clusters: usize,
    known: &'a mut BTreeMap<usize, WordClusters>,
) -> Result<&'a WordClusters> {
    Ok(match known.entry(n_clusters) {
        Entry::Occupied(found) => found.into_mut(),
        Entry::Vacant(entry) => {
            let brown = Brown::params().n_clusters(n_clusters).fit(&ptb.train)?;
            entry.insert(brown.clusters().clone())
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
    let training = Training { corpus: &ptb.train, valid: &ptb.valid, clusters, teacher: None };
    let measured = kept.figures((params, &training), ["train", "valid"], note, |hmm, _| {
        // Perplexity of the mini-batches of the best epoch.
        let train = hmm.facts().get("train_perplexity").and_then(|value| value.as_f64());
        [train.unwrap_or(f64::NAN), perplexity(hmm, &ptb.valid).perplexity()]
    });
    let [train, valid] = measured?;
    Ok(Figures { train, valid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens::model::Params;

    #[test]
    fn all_parameters_are_valid_in_full_and_quick_runs() {
        for effort in [Effort::Quick, Effort::Full] {
            for model in models() {
                let Some(sizes) = model.sizes(effort) else { continue };
                let params = model.params(sizes, effort);
                assert!(params.check().is_ok(), "{}", name(&params));
                let words = name(&params);
                assert!(!words.is_empty() && words.len() < 48, "{words}");
            }
        }
    }

    #[test]
    fn every_table_has_at_least_three_models_in_a_quick_run() {
        for table in ["Table 3", "Figure 3", "Table 4"] {
            let of_table = models().into_iter().filter(|model| model.table == table);
            assert!(of_table.filter(|model| model.quick.is_some()).count() >= 3, "{table}");
        }
    }
}
