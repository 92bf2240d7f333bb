//! Perplexity of very large HMMs (Chiu & Rush 2020, Table 1), and of larger ones.

use super::kept_models::{Earlier, KeptModels, Training};
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::{Context, Result};
use latens::brown::{Algorithm, Brown};
use latens::corpus::{Corpus, Inputs, Preprocessing, Sentences, VocabLimits};
use latens::hmm::{HmmParams, Memory};
use latens::model::Fit;
use latens::tasks::perplexity;
use std::path::Path;

pub(crate) const PTB: Experiment = Experiment {
    name: "hmm-ptb",
    about: "perplexity of very large HMMs on the Penn Treebank",
    run: |data, effort, note| ptb(data, effort, Earlier::Ignore, note),
};

pub(crate) const WIKITEXT_2: Experiment = Experiment {
    name: "hmm-wikitext2",
    about: "perplexity of a very large HMM on WikiText-2",
    run: |data, effort, note| wikitext_2(data, effort, Earlier::Ignore, note),
};

/// A training corpus, with its validation and test text.
struct Text<'a> {
    train: &'a Corpus,
    parts: [(&'static str, &'a Sentences); 2],
}

/// A model, and the validation and test perplexity of the paper.
struct Model {
    params: HmmParams,
    clusters: Algorithm,
    papers: [Option<f64>; 2],
}

pub(crate) fn ptb(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let ptb = PennTreebank::read(data)?;
    let text =
        Text { train: &ptb.train, parts: [("PTB valid", &ptb.valid), ("PTB test", &ptb.test)] };
    let params = params((32768, 128), 0.5, 35).learning_rate(0.004).batch_tokens(600);
    let larger = params
        .clone()
        .n_states(65536)
        .state_dropout(0.625)
        .weight_decay(0.01)
        .memory(Memory::Carry)
        .epochs(36);
    let models = [
        Model { params, clusters: Algorithm::Brown, papers: [Some(125.0), Some(115.8)] },
        Model { params: larger, clusters: Algorithm::Exchange, papers: [None; 2] },
    ];
    rows(&text, &models, effort, earlier, note)
}

pub(crate) fn wikitext_2(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let file = |part: &str| Inputs::new([data.join(format!("wikitext-2/wiki.{part}.tokens"))]);
    let train = Corpus::read(&file("train"), &Preprocessing::default(), &VocabLimits::default())
        .context("the folder of `--data` must contain the folder `wikitext-2`")?;
    let (valid, test) = (train.lexicon.read(&file("valid"))?, train.lexicon.read(&file("test"))?);
    let parts = [("WikiText-2 valid", &valid), ("WikiText-2 test", &test)];
    let params =
        params((32768, 128), 0.5, 28).learning_rate(0.004).weight_decay(0.003).batch_tokens(1200);
    let papers = [Some(167.0), None];
    let models = [Model { params, clusters: Algorithm::Exchange, papers }];
    rows(&Text { train: &train, parts }, &models, effort, earlier, note)
}

fn params((n_states, n_clusters): (usize, usize), state_dropout: f64, epochs: usize) -> HmmParams {
    HmmParams::default()
        .n_states(n_states)
        .n_clusters(n_clusters)
        .state_dropout(state_dropout)
        .epochs(epochs)
}

/// Parameters of a quick run, small enough for the CPU.
fn quick_params(params: &HmmParams) -> HmmParams {
    params
        .clone()
        .n_states(params.n_states / 128)
        .n_clusters(32)
        .dim(64)
        .epochs(3)
        .batch_tokens(2048)
}

fn rows(
    text: &Text<'_>,
    models: &[Model],
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let kept = KeptModels::new(earlier);
    let mut rows = Vec::new();
    for Model { params, clusters, papers } in models {
        let params = if effort.is_quick() { quick_params(params) } else { params.clone() };
        let mut row = format!("{} states", params.n_states);
        if *clusters == Algorithm::Exchange {
            row.push_str(", exchange");
        }
        if params.memory == Memory::Carry {
            row.push_str(", running text");
        }
        note(&row);
        let brown =
            Brown::params().n_clusters(params.n_clusters).algorithm(*clusters).fit(text.train)?;
        let (valid, clusters) = (text.parts[0].1, Some(brown.clusters()));
        let training = Training { corpus: text.train, valid, clusters, teacher: None };
        let names = text.parts.map(|(column, _)| column);
        let figures = kept.figures((&params, &training), names, note, |hmm, note| {
            text.parts.map(|(column, part)| {
                let ours = perplexity(hmm, part).perplexity();
                note(&format!("  {column}: {ours:.2}"));
                ours
            })
        })?;
        for ((column, paper), ours) in names.into_iter().zip(papers).zip(figures) {
            let paper = paper.filter(|_| effort == Effort::Full);
            rows.push(Row::new(row.clone(), column, paper, ours));
        }
    }
    Ok(rows)
}
