//! Perplexity of the language models that HMMs are compared with (Chiu & Rush 2020, Table 1).

use super::kept_models::Earlier;
use super::language;
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::corpus::{Corpus, Inputs, Preprocessing, Sentences, VocabLimits};
use latens::model::{Device, Fit, LanguageModel};
use latens::neural::{NeuralParams, usable_device};
use latens::ngram::{Ngram, NgramParams};
use latens::tasks::perplexity;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lm-baselines",
    about: "perplexity of n-gram, neural and hidden Markov language models on the Penn Treebank and WikiText-2",
    run,
};

/// Cache weights and sizes, chosen on the validation text.
const CACHE_WEIGHTS: [f64; 4] = [0.05, 0.1, 0.15, 0.2];
const CACHE_SIZES: [usize; 4] = [250, 500, 1000, 2000];

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let ptb = PennTreebank::read(data)?;
    note("fitting the 5-gram model");
    let model = fit(&ptb.train, NgramParams::default())?;
    let mut rows = rows("KN-5", &model, &ptb, Some(141.2));
    note("choosing the cache on the validation text");
    let mut best = (f64::INFINITY, NgramParams::default());
    let (weights, sizes) = if effort.is_quick() {
        (&CACHE_WEIGHTS[1..2], &CACHE_SIZES[1..2])
    } else {
        (&CACHE_WEIGHTS[..], &CACHE_SIZES[..])
    };
    for (&cache_weight, &cache_size) in
        weights.iter().flat_map(|w| sizes.iter().map(move |s| (w, s)))
    {
        let params = NgramParams::default().cache_weight(cache_weight).cache_size(cache_size);
        let with_cache = model.with_cache(cache_weight, cache_size)?;
        let valid = perplexity(&with_cache, &ptb.valid).perplexity();
        if valid < best.0 {
            best = (valid, params);
        }
    }
    let NgramParams { cache_weight, cache_size, .. } = best.1;
    note(&format!("cache of {cache_size} words with weight {cache_weight}"));
    rows.extend(self::rows(
        "KN-5 + cache",
        &model.with_cache(cache_weight, cache_size)?,
        &ptb,
        Some(125.7),
    ));
    let ptb = Text { name: "PTB", train: ptb.train, valid: ptb.valid, test: ptb.test };
    rows.extend(neural_rows(ptb, effort, [(163.0, 151.0), (f64::NAN, 124.7), (93.6, 88.8)], note)?);
    if let Some(text) = read_wikitext(data)? {
        note("fitting the 5-gram model of WikiText-2");
        let model = fit(&text.train, NgramParams::default())?;
        rows.extend(text.rows("KN-5", &model, (f64::NAN, f64::NAN)));
        let papers = [(209.0, f64::NAN), (f64::NAN, f64::NAN), (125.0, f64::NAN)];
        rows.extend(neural_rows(text, effort, papers, note)?);
    }
    rows.extend(hmm_rows(data, effort, note)?);
    Ok(rows)
}

/// Very large HMMs. Models of earlier runs are reused.
fn hmm_rows(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    if effort == Effort::Full && usable_device() == Device::Cpu {
        note("skipping hidden Markov models of 32,768 states: they need a CUDA device");
        return Ok(Vec::new());
    }
    let mut rows = language::ptb(data, effort, Earlier::Reuse, note)?;
    if data.join("wikitext-2").exists() {
        rows.extend(language::wikitext_2(data, effort, Earlier::Reuse, note)?);
    }
    for row in &mut rows {
        row.row = format!("HMM, {}", row.row);
    }
    Ok(rows)
}

/// A training corpus, with its validation and test text.
struct Text {
    name: &'static str,
    train: Corpus,
    valid: Sentences,
    test: Sentences,
}

impl Text {
    /// Perplexities beside those of the paper; NaN where the paper has none.
    fn rows(&self, row: &str, model: &dyn LanguageModel, paper: (f64, f64)) -> Vec<Row> {
        let row = |part: &str, text: &Sentences, paper: f64| {
            Row::new(
                row,
                format!("{} {part}", self.name),
                Some(paper).filter(|paper| !paper.is_nan()),
                perplexity(model, text).perplexity(),
            )
        };
        vec![row("valid", &self.valid, paper.0), row("test", &self.test, paper.1)]
    }
}

/// Reads WikiText-2, if the folder contains it.
fn read_wikitext(data: &Path) -> Result<Option<Text>> {
    let file = |part: &str| data.join(format!("wikitext-2/wiki.{part}.tokens"));
    if !file("train").exists() {
        return Ok(None);
    }
    let inputs = |part: &str| Inputs::new([file(part)]);
    let train = Corpus::read(&inputs("train"), &Preprocessing::default(), &VocabLimits::default())?;
    let (valid, test) =
        (train.lexicon.read(&inputs("valid"))?, train.lexicon.read(&inputs("test"))?);
    Ok(Some(Text { name: "WikiText-2", train, valid, test }))
}

/// Feed-forward, recurrent and LSTM models; `papers` has the validation and test perplexity of the paper for each.
fn neural_rows(
    mut text: Text,
    effort: Effort,
    papers: [(f64, f64); 3],
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let models = [
        ("FF 4-gram", NeuralParams::ff()),
        ("RNN", NeuralParams::rnn()),
        ("LSTM of 2 layers", NeuralParams::lstm()),
    ];
    if effort.is_quick() {
        let n = text.train.sentences.len().min(3000);
        text.train.sentences = text.train.sentences.slice(0..n);
    }
    let mut rows = Vec::new();
    for ((name, mut params), paper) in models.into_iter().zip(papers) {
        if effort.is_quick() {
            params = params.dim(50).epochs(3);
        }
        let name = &format!("{name}, {}", params.dim);
        note(&format!("{}: {name}", text.name));
        let model = params.valid(&text.valid).device(usable_device()).fit(&text.train)?;
        rows.push(Row::new(
            name,
            format!("{} weights, millions", text.name),
            None,
            model.n_weights() as f64 / 1e6,
        ));
        rows.extend(text.rows(name, &model, paper));
    }
    if effort.is_quick() {
        // The models of a quick run are not comparable with those of the paper.
        rows.iter_mut().for_each(|row| row.paper = None);
    }
    Ok(rows)
}

fn fit(train: &Corpus, params: NgramParams) -> Result<Ngram> {
    Ok(params.fit(train)?)
}

fn rows(name: &str, model: &dyn LanguageModel, ptb: &PennTreebank, paper: Option<f64>) -> Vec<Row> {
    let row = |column: &str, text: &Sentences, paper| {
        Row::new(name, column, paper, perplexity(model, text).perplexity())
    };
    vec![row("PTB valid", &ptb.valid, None), row("PTB test", &ptb.test, paper)]
}
