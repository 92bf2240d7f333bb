//! Fits and scores taggers with representations of words.
//!
//! Representations are learned once and kept in a folder. Their file names are hashes of parameters and corpus.

use super::representation::Representation;
use super::task::Task;
use crate::experiment::Row;
use anyhow::{Context, Result};
use latens::corpus::{Corpus, Inputs, Preprocessing, TaggedSentences, VocabLimits};
use latens::fhmm::frequent_sentences;
use latens::model::{Fit, fingerprint};
use latens::tasks::tagging::{FeatureTagger, TaggerInputs, TaggerParams, evaluate};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs taggers on tasks, with representations learned from one corpus.
pub(crate) struct Runner<'a> {
    /// Folder of the corpora.
    pub(crate) data: &'a Path,
    /// Text without tags from which representations are learned.
    pub(crate) unlabeled: Inputs,
    pub(crate) preprocessing: Preprocessing,
    pub(crate) limits: VocabLimits,
    /// Number of sentences to learn from, those with the most frequent words; `None` for all.
    pub(crate) keep_sentences: Option<usize>,
    /// Folder in which representations are kept.
    pub(crate) cache: PathBuf,
}

impl Runner<'_> {
    /// Scores each tagger with each representation on each task, in percent: F1 of spans, or accuracy.
    pub(crate) fn rows(
        &self,
        representations: &[(&str, Representation)],
        tasks: &[Task],
        taggers: &[(&str, TaggerParams)],
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let encoders = representations.iter().map(|(name, representation)| {
            note(&format!("fitting {name}"));
            self.encoder(representation)
        });
        let encoders = encoders.collect::<Result<Vec<_>>>()?;
        for task in tasks {
            for (tagger, params) in taggers {
                for ((name, representation), encoder) in representations.iter().zip(&encoders) {
                    let row = format!("{tagger}, {name}");
                    note(&format!("fitting {row} on {}", task.name));
                    let fitted = self.fit(task, params, encoder.as_deref(), representation)?;
                    for (part, column) in [(1, "dev"), (2, "test")] {
                        let text = TaggedSentences::read(&task.inputs(self.data, part))?;
                        let scores = evaluate(&fitted, &text, task.column)?;
                        let ours = 100.0 * scores.spans.map_or(scores.accuracy, |spans| spans.f1);
                        let column = format!("{} {column}", task.name);
                        note(&format!("{row} on {column}: {ours:.2}"));
                        rows.push(Row::new(row.clone(), column, None, ours));
                    }
                }
            }
        }
        Ok(rows)
    }

    fn fit(
        &self,
        task: &Task,
        params: &TaggerParams,
        encoder: Option<&Path>,
        representation: &Representation,
    ) -> Result<FeatureTagger> {
        let text = TaggedSentences::read(&task.inputs(self.data, 0)).with_context(|| {
            format!("the folder of `--data` must contain the folder `{}`", task.folder)
        })?;
        let encoders = encoder.map(|path| (path, representation.features()));
        let params = params.clone().pos_column(task.pos_column);
        learn(&text, task.column, params, encoders)
    }

    /// Path of the model of a representation, which is fitted unless the file exists.
    pub(crate) fn encoder(&self, representation: &Representation) -> Result<Option<PathBuf>> {
        let Some((kind, params)) = representation.kind_and_params()? else { return Ok(None) };
        let corpus = self.corpus(representation)?;
        let tokens = corpus.sentences.tokens().iter().map(|word| word.0);
        let words = u64::to_le_bytes(corpus.lexicon.vocab.fingerprint()).map(u32::from);
        let hash = fingerprint(tokens.chain(words).chain(params.bytes().map(u32::from)));
        let path = self.cache.join(format!("{hash:016x}.{kind}"));
        if latens::open(&path).is_ok() {
            return Ok(Some(path));
        }
        let keeping = || format!("cannot keep models in `{}`", self.cache.display());
        fs::create_dir_all(&self.cache).with_context(keeping)?;
        representation.fit_and_save(&corpus, &path)?;
        Ok(Some(path))
    }

    /// The corpus from which a representation is learned.
    fn corpus(&self, representation: &Representation) -> Result<Corpus> {
        // A factorial model represents rare words by their form, so it needs them.
        let keeps_rare = matches!(representation, Representation::Fhmm(..));
        let limits = if keeps_rare { VocabLimits::default() } else { self.limits };
        let Some(n) = self.keep_sentences else {
            return Ok(Corpus::read(&self.unlabeled, &self.preprocessing, &limits)?);
        };
        // Frequencies are those of the whole vocabulary.
        let whole = Corpus::read(&self.unlabeled, &self.preprocessing, &VocabLimits::default())?;
        let kept = frequent_sentences(&whole, n);
        Ok(if keeps_rare { kept } else { kept.limited(&limits) })
    }
}

/// Fits a tagger to one column of a text, with encoders given by path and kind of features.
pub(crate) fn learn<'a>(
    text: &TaggedSentences,
    column: usize,
    params: TaggerParams,
    encoders: impl IntoIterator<Item = (&'a Path, Option<&'a str>)>,
) -> Result<FeatureTagger> {
    let mut inputs = TaggerInputs::default().column(column);
    for (path, features) in encoders {
        inputs = inputs.encoder(latens::open_encoder(path, features)?);
    }
    Ok(params.with(inputs).fit(text)?)
}
