//! Domain adaptation of taggers from newswire to biomedical text, with representations learned from both (Nepal & Yates
//! 2013, Tables 1 and 2).
//!
//! The texts differ from those of the paper. It trains on sections 02–21 of the Penn Treebank, tests tags on 561 sentences
//! of MEDLINE (Table 1) and chunks on 198 sentences of the Open American National Corpus (Table 2), and learns
//! representations from other WSJ and MEDLINE text. We test on GENIA. The experiment compares the order of the rows, not
//! absolute figures.

use super::measures::{Figure, Measure, Transfer, errors, phrases};
use super::paper::PAPER;
use crate::cache::cache_folder;
use crate::experiment::{Effort, Experiment, Row};
use crate::tagging::representation::Representation;
use crate::tagging::runner::{Runner, learn};
use anyhow::{Context, Result};
use latens::brown::BrownParams;
use latens::corpus::{Format, Inputs, Preprocessing, TaggedSentences, VocabLimits};
use latens::fhmm::{FhmmParams, MStep};
use latens::hmm::{Constraint, HmmParams, Parameterization};
use latens::store::write_atomically;
use latens::tasks::tagging::{FeatureTagger, compare};
use latens::word2vec::Word2vecParams;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) const PARTS_OF_SPEECH: Experiment = Experiment {
    name: "fhmm-pos",
    about: "part-of-speech tagging from newswire to biomedical text (error rate, %)",
    run: parts_of_speech,
};

pub(crate) const CHUNKS: Experiment = Experiment {
    name: "fhmm-chunk",
    about: "noun-phrase chunking from newswire to biomedical text (recall, precision and F1, %)",
    run: chunks,
};

/// Settings of a full and of a quick run.
pub(super) struct Size {
    pub(super) keep_sentences: usize,
    pub(super) epochs: usize,
    pub(super) batch_sentences: Option<usize>,
    pub(super) n_clusters: usize,
    pub(super) n_iterations: usize,
}

impl Size {
    pub(super) fn new(effort: Effort) -> Size {
        if effort.is_quick() {
            let (keep_sentences, epochs, n_clusters, n_iterations) = (4000, 3, 100, 25);
            return Size {
                keep_sentences,
                epochs,
                batch_sentences: Some(150),
                n_clusters,
                n_iterations,
            };
        }
        let (keep_sentences, epochs, n_clusters, n_iterations) = (112_824, 5, 1000, 100);
        Size { keep_sentences, epochs, batch_sentences: None, n_clusters, n_iterations }
    }

    /// Representation of each row.
    pub(super) fn representations(&self, m_step: MStep, seed: u64) -> [Representation; 8] {
        let fhmm = |n_layers, features| {
            let params = FhmmParams::default()
                .n_layers(n_layers)
                .n_states(10)
                .m_step(m_step)
                .seed(seed)
                .epochs(self.epochs)
                .batch_sentences(self.batch_sentences);
            Representation::Fhmm(params, features)
        };
        let hmm = HmmParams::default()
            .n_states(80)
            .constraint(Constraint::None)
            .parameterization(Parameterization::Scalar)
            .seed(seed)
            .epochs(5 * self.epochs);
        let (n_clusters, dim) = (self.n_clusters, 50);
        [
            Representation::Words,
            fhmm(1, "viterbi"),
            fhmm(3, "viterbi"),
            fhmm(5, "viterbi"),
            fhmm(5, "posterior"),
            Representation::Hmm(hmm, "state"),
            Representation::Brown(BrownParams::default().n_clusters(n_clusters)),
            Representation::Word2vec(Word2vecParams::default().dim(dim).seed(seed)),
        ]
    }
}

fn parts_of_speech(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    table(data, effort, &tags(data, effort)?, errors, note)
}

fn chunks(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    table(data, effort, &noun_phrases(data)?, phrases, note)
}

/// The task of Table 1.
pub(super) fn tags(data: &Path, effort: Effort) -> Result<Transfer> {
    let mut source = vec![data.join("ptb-pos/wsj.train.txt")];
    if effort == Effort::Full {
        source.push(data.join("conll2000/train.txt"));
    }
    let target = target(data, "test")?;
    Ok(Transfer { source: read(source)?, target, column: 1, pos_column: None })
}

/// The task of Table 2.
pub(super) fn noun_phrases(data: &Path) -> Result<Transfer> {
    let source = only_noun_phrases(&read(vec![data.join("conll2000/train.txt")])?)?;
    let target = target(data, "test")?;
    Ok(Transfer { source: read(vec![source])?, target, column: 2, pos_column: Some(1) })
}

/// Text of the target domain.
pub(super) fn target(data: &Path, part: &str) -> Result<TaggedSentences> {
    read(vec![data.join(format!("bio-pos/genia.{part}.txt"))])
}

fn read(paths: Vec<PathBuf>) -> Result<TaggedSentences> {
    let inputs = Inputs::new(paths).format(Format::Conll);
    TaggedSentences::read(&inputs).context(
        "the folder of `--data` must contain the folders `ptb-pos`, `conll2000` and `bio-pos`",
    )
}

/// Writes a copy of a text with only its noun phrases as chunks and returns its path.
fn only_noun_phrases(text: &TaggedSentences) -> Result<PathBuf> {
    let folder = cache_folder();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot write to `{}`", folder.display()))?;
    let path = folder.join("noun-phrases.conll");
    let mut out = String::new();
    for sentence in text.iter() {
        for i in 0..sentence.len() {
            let row = sentence.row(i);
            let [word, pos, chunk] = row[..] else {
                anyhow::bail!("the text must have three columns, with chunks in the third")
            };
            let chunk = if chunk.ends_with("-NP") { chunk } else { "O" };
            out += &format!("{word} {pos} {chunk}\n");
        }
        out.push('\n');
    }
    write_atomically(&path, |file| file.write_all(out.as_bytes()))?;
    Ok(path)
}

/// Learns representations from text of both domains.
pub(super) fn runner<'a>(data: &'a Path, size: &Size) -> Runner<'a> {
    let unlabeled = [
        "unlabeled-news/reuters21578.sents.txt",
        "bio-unlabeled/medline.sents.txt",
        "bio-unlabeled/trials.sents.txt",
    ];
    Runner {
        data,
        unlabeled: Inputs::new(unlabeled.map(|file| data.join(file))),
        preprocessing: Preprocessing::default(),
        limits: VocabLimits { min_count: 2, ..VocabLimits::default() },
        keep_sentences: Some(size.keep_sentences),
        cache: cache_folder(),
    }
}

/// All rows: fits a representation and a tagger for each, and compares the tagger with the baseline.
fn table(
    data: &Path,
    effort: Effort,
    transfer: &Transfer,
    measure: Measure,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let size = Size::new(effort);
    let runner = runner(data, &size);
    let (mut rows, mut baseline) = (Vec::new(), None);
    for (i, representation) in size.representations(MStep::Layers, 1).iter().enumerate() {
        let name = PAPER[i].0;
        note(&format!("{name}: fitting the representation"));
        let encoder = runner.encoder(representation)?;
        note(&format!("{name}: fitting the tagger"));
        let Transfer { ref source, column, pos_column, .. } = *transfer;
        let params = FeatureTagger::params().pos_column(pos_column).n_iterations(size.n_iterations);
        let encoders = encoder.as_deref().map(|path| (path, representation.features()));
        let tagger = learn(source, column, params, encoders)?;
        for Figure { column, paper, ours } in measure(transfer, &tagger, i)? {
            note(&format!("{name}: {column} {ours:.2}"));
            rows.push(Row::new(name, column, paper, ours));
        }
        match &baseline {
            None => baseline = Some(tagger),
            Some(baseline) => {
                let compared = compare([baseline, &tagger], &transfer.target, column)?;
                let column = "p against BASELINE".to_owned();
                rows.push(Row::new(name, column, None, compared.p_value));
            }
        }
    }
    Ok(rows)
}
