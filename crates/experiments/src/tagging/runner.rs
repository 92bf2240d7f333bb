//! What all experiments with taggers share: representations of words × tasks × taggers. Representations are learned
//! once, and kept in a folder under a name that is a hash of all that they are made of.

use crate::experiment::Row;
use anyhow::{Context, Result};
use latens::brown::{Brown, BrownParams};
use latens::corpus::{Corpus, Format, Inputs, Preprocessing, TaggedSentences, VocabLimits};
use latens::fhmm::{Fhmm, FhmmParams, frequent_sentences};
use latens::hmm::{Constraint, Hmm, HmmParams, Training, text_to_cluster};
use latens::lds::{Lds, LdsParams};
use latens::model::{Device, Params, fingerprint, unwatched};
use latens::tasks::tagging::{FeatureTagger, TaggedTraining, TaggerParams, evaluate};
use latens::word2vec::{Word2vec, Word2vecParams};
use std::fs;
use std::path::{Path, PathBuf};

/// A tagged text in three parts.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) folder: &'static str,
    /// The files to learn from, to choose by, and to report on.
    pub(crate) files: [&'static str; 3],
    pub(crate) format: Format,
    /// The columns of the tags and of parts of speech to look at, counted from 0.
    pub(crate) column: usize,
    pub(crate) pos_column: Option<usize>,
}

/// What is known of words before a tagger learns.
pub(crate) enum Representation {
    /// Nothing but their letters.
    Words,
    /// Brown clusters.
    Brown(BrownParams),
    /// Features of this kind of a hidden Markov model, with its clusters of words.
    Hmm(HmmParams, &'static str),
    /// Vectors of word2vec.
    Word2vec(Word2vecParams),
    /// Features of this kind of a linear dynamical system.
    Lds(LdsParams, &'static str),
    /// Features of this kind of a factorial hidden Markov model.
    Fhmm(FhmmParams, &'static str),
}

/// Runs taggers on tasks with representations that are learned from one text.
pub(crate) struct Runner<'a> {
    pub(crate) data: &'a Path,
    /// The text without tags that representations are learned from.
    pub(crate) unlabeled: Inputs,
    pub(crate) preprocessing: Preprocessing,
    pub(crate) limits: VocabLimits,
    /// How many sentences of it, those of frequent words, are learned from; all if not given.
    pub(crate) keep_sentences: Option<usize>,
    /// Where representations are kept.
    pub(crate) cache: PathBuf,
}

impl Task {
    pub(crate) fn inputs(&self, data: &Path, part: usize) -> Inputs {
        let path = data.join(self.folder).join(self.files[part]);
        Inputs { format: Some(self.format.clone()), ..Inputs::new([path]) }
    }
}

impl Runner<'_> {
    /// A figure in percent for each representation on each task: F1 of spans, or the share of right tags.
    pub(crate) fn rows(
        &self,
        representations: &[(&str, Representation)],
        tasks: &[Task],
        taggers: &[(&str, TaggerParams)],
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let encoders = representations.iter().map(|(name, representation)| {
            note(&format!("learn {name}"));
            self.encoder(representation)
        });
        let encoders = encoders.collect::<Result<Vec<_>>>()?;
        for task in tasks {
            for (tagger, params) in taggers {
                for ((name, representation), encoder) in representations.iter().zip(&encoders) {
                    let row = format!("{tagger}, {name}");
                    note(&format!("{row} on {}", task.name));
                    let fitted = self.fit(task, params, encoder.as_deref(), representation)?;
                    for (part, column) in [(1, "dev"), (2, "test")] {
                        let text = TaggedSentences::read(&task.inputs(self.data, part))?;
                        let scores = evaluate(&fitted, &text, task.column)?;
                        let ours = 100.0 * scores.spans.map_or(scores.accuracy, |spans| spans.f1);
                        let column = format!("{} {column}", task.name);
                        note(&format!("{row} on {column}: {ours:.2}"));
                        rows.push(Row { row: row.clone(), column, paper: None, ours });
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
            format!("the folder of `--data` must have the folder `{}`", task.folder)
        })?;
        let encoders = encoder.map(|path| (path, representation.features()));
        let params = TaggerParams { pos_column: task.pos_column, ..params.clone() };
        learn(&text, task.column, params, encoders)
    }

    /// The file of a representation, which is learned unless it was before.
    pub(crate) fn encoder(&self, representation: &Representation) -> Result<Option<PathBuf>> {
        let (kind, params) = match representation {
            Representation::Words => return Ok(None),
            Representation::Brown(params) => (Brown::KIND, serde_json::to_string(params)?),
            Representation::Hmm(params, _) => (Hmm::KIND, serde_json::to_string(params)?),
            Representation::Word2vec(params) => (Word2vec::KIND, serde_json::to_string(params)?),
            Representation::Lds(params, _) => (Lds::KIND, serde_json::to_string(params)?),
            Representation::Fhmm(params, _) => (Fhmm::KIND, serde_json::to_string(params)?),
        };
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
        match representation {
            Representation::Words => {}
            Representation::Brown(params) => fit_brown(params, &corpus)?.save(&path)?,
            Representation::Hmm(params, _) => fit_hmm(params, &corpus)?.save(&path)?,
            Representation::Fhmm(params, _) => {
                let params = params.clone().validate()?;
                Fhmm::fit(&params, &corpus, None, &mut unwatched)?.save(&path)?;
            }
            Representation::Word2vec(params) => {
                let params = params.clone().validate()?;
                Word2vec::fit(&params, &corpus, &mut unwatched)?.save(&path)?;
            }
            Representation::Lds(params, _) => fit_lds(params, &corpus)?.save(&path)?,
        }
        Ok(Some(path))
    }

    /// The text that a representation is learned from.
    fn corpus(&self, representation: &Representation) -> Result<Corpus> {
        // A factorial model knows rare words by their looks, and so must see them.
        let keeps_rare = matches!(representation, Representation::Fhmm(..));
        let limits = if keeps_rare { VocabLimits::default() } else { self.limits };
        let Some(n) = self.keep_sentences else {
            return Ok(Corpus::read(&self.unlabeled, &self.preprocessing, &limits)?);
        };
        // Which words are frequent is told by all words.
        let whole = Corpus::read(&self.unlabeled, &self.preprocessing, &VocabLimits::default())?;
        let kept = frequent_sentences(&whole, n);
        Ok(if keeps_rare { kept } else { kept.limited(&limits) })
    }
}

impl Representation {
    /// The kind of features; `None` where a model has one only.
    pub(crate) fn features(&self) -> Option<&'static str> {
        match self {
            Representation::Hmm(_, features)
            | Representation::Lds(_, features)
            | Representation::Fhmm(_, features) => Some(features),
            Representation::Words | Representation::Brown(_) | Representation::Word2vec(_) => None,
        }
    }
}

/// Learns a tagger of one column of a text, with features of these encoders.
pub(crate) fn learn<'a>(
    text: &TaggedSentences,
    column: usize,
    params: TaggerParams,
    encoders: impl IntoIterator<Item = (&'a Path, Option<&'a str>)>,
) -> Result<FeatureTagger> {
    let encoders =
        encoders.into_iter().map(|(path, features)| latens::open_encoder(path, features));
    let encoders = encoders.collect::<Result<Vec<_>, _>>()?;
    let training = TaggedTraining { text, column, preprocessing: Preprocessing::default() };
    Ok(FeatureTagger::fit(&params.validate()?, &training, encoders, &mut unwatched)?)
}

fn fit_lds(params: &LdsParams, corpus: &Corpus) -> Result<Lds> {
    let params = params.clone().validate()?;
    let training = latens::lds::Training::of(&params, corpus, None, &mut unwatched)?;
    Ok(Lds::fit(&params, training, &mut unwatched)?)
}

fn fit_brown(params: &BrownParams, corpus: &Corpus) -> Result<Brown> {
    Ok(Brown::fit(&params.clone().validate()?, corpus, &mut unwatched)?)
}

fn fit_hmm(params: &HmmParams, corpus: &Corpus) -> Result<Hmm> {
    let mut clusters = None;
    if params.constraint == Constraint::Brown {
        let text = text_to_cluster(params, corpus);
        let brown = BrownParams { n_clusters: params.n_clusters, ..BrownParams::default() };
        let brown = fit_brown(&brown, &text)?;
        clusters = Some(brown.clusters().for_words(&text.lexicon.vocab, &corpus.lexicon.vocab));
    }
    let training = Training {
        corpus,
        valid: None,
        clusters: clusters.as_ref(),
        tags: None,
        device: Device::Cpu,
    };
    Ok(Hmm::fit(&params.clone().validate()?, &training, &mut unwatched)?)
}
