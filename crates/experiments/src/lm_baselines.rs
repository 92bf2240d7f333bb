//! Perplexities of the language models that the HMM papers compare with (Chiu & Rush 2020, Table 1).

use crate::penn_treebank::PennTreebank;
use crate::{Experiment, Row};
use anyhow::Result;
use latens::corpus::{Corpus, Sentences};
use latens::model::{LanguageModel, Params, unwatched};
use latens::ngram::{Ngram, NgramParams};
use latens::tasks::perplexity;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lm-baselines",
    about: "perplexity of n-gram language models on the Penn Treebank",
    run,
};

/// Cache weights and sizes to choose from, on the validation text.
const CACHE_WEIGHTS: [f64; 4] = [0.05, 0.1, 0.15, 0.2];
const CACHE_SIZES: [usize; 4] = [250, 500, 1000, 2000];

fn run(data: &Path, quick: bool, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let ptb = PennTreebank::read(data)?;
    note("estimating the 5-gram model");
    let model = fit(&ptb.train, NgramParams::default())?;
    let mut rows = rows("KN-5", &model, &ptb, Some(141.2));
    note("choosing the cache on the validation text");
    let mut best = (f64::INFINITY, NgramParams::default());
    let (weights, sizes) = if quick {
        (&CACHE_WEIGHTS[1..2], &CACHE_SIZES[1..2])
    } else {
        (&CACHE_WEIGHTS[..], &CACHE_SIZES[..])
    };
    for (&cache_weight, &cache_size) in
        weights.iter().flat_map(|w| sizes.iter().map(move |s| (w, s)))
    {
        let params = NgramParams { cache_weight, cache_size, ..NgramParams::default() };
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
    Ok(rows)
}

fn fit(train: &Corpus, params: NgramParams) -> Result<Ngram> {
    Ok(Ngram::fit(&params.validate()?, train, &mut unwatched)?)
}

fn rows(name: &str, model: &dyn LanguageModel, ptb: &PennTreebank, paper: Option<f64>) -> Vec<Row> {
    let row = |column: &str, text: &Sentences, paper| Row {
        row: name.to_owned(),
        column: column.to_owned(),
        paper,
        ours: perplexity(model, text).perplexity(),
    };
    vec![row("PTB valid", &ptb.valid, None), row("PTB test", &ptb.test, paper)]
}
