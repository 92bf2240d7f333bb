//! The unlabeled text and the representations of the tagging experiments (Belanger & Kakade 2015, §7).
//!
//! The paper uses a billion words of news; about 7 million words of news and Wikipedia are freely available. As in the
//! paper, case is kept and all numbers are one token, and the pseudo-counts, the number of EM iterations and the word2vec
//! algorithm were chosen on development text.

use crate::cache::cache_folder;
use crate::experiment::Effort;
use crate::tagging::representation::Representation;
use crate::tagging::runner::Runner;
use anyhow::{Context, Result};
use latens::brown::{self, BrownParams};
use latens::corpus::{Digits, Format, Inputs, Preprocessing, TaggedSentences, VocabLimits};
use latens::lds::LdsParams;
use latens::store::write_atomically;
use latens::tasks::tagging::Comparison;
use latens::word2vec::{self, Word2vecParams};
use std::fs;
use std::io::Write;
use std::path::Path;

/// A runner on the unlabeled text.
pub(crate) fn runner(data: &Path, effort: Effort) -> Result<Runner<'_>> {
    let cache = cache_folder();
    let keeping = || format!("cannot keep models in `{}`", cache.display());
    fs::create_dir_all(&cache).with_context(keeping)?;
    let words = cache.join("conll2000.train.words.txt");
    let tagged = read(&data.join("conll2000").join("train.txt"))?;
    write_atomically(&words, |out| {
        tagged.iter().try_for_each(|sentence| writeln!(out, "{}", sentence.words().join(" ")))
    })?;
    let mut paths = vec![words];
    if effort == Effort::Full {
        paths.push(data.join("unlabeled-news").join("reuters21578.sents.txt"));
        paths.push(data.join("unlabeled-wiki").join("enwiki.sents.txt"));
        paths.push(data.join("wikitext-2").join("wiki.train.tokens"));
    }
    Ok(Runner {
        data,
        unlabeled: Inputs::new(paths).format(Format::Lines),
        preprocessing: Preprocessing::default().digits(Digits::Num),
        keep_sentences: None,
        limits: VocabLimits {
            min_count: if effort.is_quick() { 2 } else { 5 },
            ..VocabLimits::default()
        },
        cache,
    })
}

/// Reads a text in CoNLL format.
pub(crate) fn read(path: &Path) -> Result<TaggedSentences> {
    let inputs = Inputs::new([path]).format(Format::Conll);
    TaggedSentences::read(&inputs).context(
        "the folder of `--data` must contain the folders `conll2000`, `conll2003` and `ptb-pos`",
    )
}

/// Skip-gram vectors. The paper uses CBOW with the same window, which is worse on so little text.
pub(crate) fn word2vec(effort: Effort) -> Representation {
    let algorithm = word2vec::Algorithm::SkipGram;
    let (dim, epochs) = if effort.is_quick() { (50, 3) } else { (200, 5) };
    Representation::Word2vec(
        Word2vecParams::default().algorithm(algorithm).dim(dim).epochs(epochs).window(3),
    )
}

/// A linear dynamical system from subspace identification alone.
pub(crate) fn ssid(features: &'static str, effort: Effort) -> Representation {
    Representation::Lds(lds_params(effort).n_iterations(0), features)
}

/// A linear dynamical system after EM.
pub(crate) fn em(features: &'static str, effort: Effort) -> Representation {
    Representation::Lds(lds_params(effort), features)
}

fn lds_params(effort: Effort) -> LdsParams {
    let (dim, n_iterations, pseudo_counts) =
        if effort.is_quick() { (50, 3, 20.0) } else { (200, 10, 300.0) };
    LdsParams::default().dim(dim).n_iterations(n_iterations).pseudo_counts(pseudo_counts)
}

pub(crate) fn brown(effort: Effort) -> Representation {
    let n_clusters = if effort.is_quick() { 64 } else { 500 };
    let params = BrownParams::default().n_clusters(n_clusters).n_iterations(5);
    Representation::Brown(params.algorithm(brown::Algorithm::Exchange))
}

/// p-value of McNemar's exact test.
pub(crate) fn p_value(first: &[bool], second: &[bool]) -> f64 {
    Comparison::of(first.iter().copied().zip(second.iter().copied())).p_value
}
