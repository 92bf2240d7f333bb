//! Taggers that move from newswire to biomedical text, with representations learned from both (Nepal & Yates 2013,
//! Tables 1 and 2).
//!
//! The paper's texts are not the same as ours: it learns tags from sections 02–21 of the Penn Treebank and tests on 561
//! sentences of MEDLINE (Table 1), and tests chunks on 198 sentences of the Open American National Corpus (Table 2); its
//! representations are of other WSJ and MEDLINE text. We test on GENIA. So our figures are for the order of the rows.

use crate::cache::cache_folder;
use crate::experiment::{Experiment, Row};
use crate::tagging::runner::{Representation, Runner, learn};
use anyhow::{Context, Result};
use latens::brown::BrownParams;
use latens::corpus::{Format, Inputs, Preprocessing, TaggedSentence, TaggedSentences, VocabLimits};
use latens::fhmm::FhmmParams;
use latens::hmm::{Constraint, HmmParams, Parameterization};
use latens::model::Tagger;
use latens::store::write_atomically;
use latens::tasks::tagging::{
    FeatureTagger, Span, TaggerParams, compare, evaluate, spans, tag_all,
};
use latens::word2vec::Word2vecParams;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) const PARTS_OF_SPEECH: Experiment = Experiment {
    name: "fhmm-pos",
    about: "errors of part-of-speech tagging, newswire to biomedical text, in percent",
    run: parts_of_speech,
};

pub(crate) const CHUNKS: Experiment = Experiment {
    name: "fhmm-chunk",
    about: "noun phrases found, newswire to biomedical text, in percent",
    run: chunks,
};

/// The rows of the paper's tables, with its errors (Table 1: all, OOV, rare) and its recall, precision and F1 (Table 2:
/// the same three each).
const PAPER: [(&str, [f64; 3], [f64; 9]); 8] = [
    ("BASELINE", [10.5, 32.2, 28.0], [87.0, 90.0, 88.0, 78.0, 89.0, 83.0, 80.0, 89.0, 84.0]),
    ("FHMM-1-10", [10.4, 31.7, 27.8], [87.0, 90.0, 88.0, 77.0, 88.0, 82.0, 78.0, 88.0, 83.0]),
    ("FHMM-3-10", [10.2, 30.6, 26.6], [88.0, 90.0, 89.0, 80.0, 90.0, 85.0, 82.0, 90.0, 85.0]),
    ("FHMM-5-10", [9.7, 29.7, 25.2], [90.0, 91.0, 90.0, 83.0, 90.0, 86.0, 83.0, 91.0, 87.0]),
    ("FHMM-POST-5-10", [9.7, 28.4, 24.8], [90.0, 91.0, 90.0, 85.0, 91.0, 88.0, 86.0, 92.0, 89.0]),
    ("HMM-80", [10.1, 30.7, 26.4], [87.0, 90.0, 88.0, 77.0, 87.0, 82.0, 79.0, 87.0, 83.0]),
    ("BROWN-1000", [9.9, 30.2, 25.8], [87.0, 90.0, 89.0, 79.0, 90.0, 84.0, 80.0, 90.0, 85.0]),
    ("EMBEDDINGS-50", [10.2, 30.3, 26.3], [89.0, 90.0, 89.0, 86.0, 90.0, 88.0, 86.0, 90.0, 88.0]),
];

/// How much is learned from, and how long.
struct Size {
    keep_sentences: usize,
    epochs: usize,
    batch_sentences: Option<usize>,
    n_clusters: usize,
    n_iterations: usize,
}

impl Size {
    fn new(quick: bool) -> Size {
        if quick {
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

    /// The representation of each row.
    fn representations(&self) -> [Representation; 8] {
        let fhmm = |n_layers, features| {
            let params = FhmmParams {
                n_layers,
                n_states: 10,
                epochs: self.epochs,
                batch_sentences: self.batch_sentences,
                ..FhmmParams::default()
            };
            Representation::Fhmm(params, features)
        };
        let hmm = HmmParams {
            n_states: 80,
            constraint: Constraint::None,
            parameterization: Parameterization::Scalar,
            epochs: 5 * self.epochs,
            ..HmmParams::default()
        };
        let (n_clusters, dim) = (self.n_clusters, 50);
        [
            Representation::Words,
            fhmm(1, "viterbi"),
            fhmm(3, "viterbi"),
            fhmm(5, "viterbi"),
            fhmm(5, "posterior"),
            Representation::Hmm(hmm, "state"),
            Representation::Brown(BrownParams { n_clusters, ..BrownParams::default() }),
            Representation::Word2vec(Word2vecParams { dim, ..Word2vecParams::default() }),
        ]
    }
}

/// A text to learn tags from, one to test on, and where the tags are.
struct Transfer {
    source: TaggedSentences,
    target: TaggedSentences,
    column: usize,
    pos_column: Option<usize>,
}

/// What a row of the table is made from: the texts, the tagger, and the row's place.
type Measure = fn(&Transfer, &FeatureTagger, usize) -> Result<Vec<(String, Option<f64>, f64)>>;

fn parts_of_speech(data: &Path, quick: bool, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut source = vec![data.join("ptb-pos/wsj.train.txt")];
    if !quick {
        source.push(data.join("conll2000/train.txt"));
    }
    let transfer = Transfer {
        source: read(source)?,
        target: read(vec![data.join("bio-pos/genia.test.txt")])?,
        column: 1,
        pos_column: None,
    };
    table(data, quick, &transfer, errors, note)
}

fn chunks(data: &Path, quick: bool, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let source = noun_phrases(&read(vec![data.join("conll2000/train.txt")])?)?;
    let transfer = Transfer {
        source: read(vec![source])?,
        target: read(vec![data.join("bio-pos/genia.test.txt")])?,
        column: 2,
        pos_column: Some(1),
    };
    table(data, quick, &transfer, phrases, note)
}

fn read(paths: Vec<PathBuf>) -> Result<TaggedSentences> {
    let inputs = Inputs { format: Some(Format::Conll), ..Inputs::new(paths) };
    TaggedSentences::read(&inputs).context(
        "the folder of `--data` must have the folders `ptb-pos`, `conll2000` and `bio-pos`",
    )
}

/// Writes a text whose chunks are noun phrases alone, and says where.
fn noun_phrases(text: &TaggedSentences) -> Result<PathBuf> {
    let folder = cache_folder();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot keep text in `{}`", folder.display()))?;
    let path = folder.join("noun-phrases.conll");
    let mut out = String::new();
    for sentence in text.iter() {
        for i in 0..sentence.len() {
            let row = sentence.row(i);
            let [word, pos, chunk] = row[..] else { anyhow::bail!("chunks are in column 3") };
            let chunk = if chunk.ends_with("-NP") { chunk } else { "O" };
            out += &format!("{word} {pos} {chunk}\n");
        }
        out.push('\n');
    }
    write_atomically(&path, |file| file.write_all(out.as_bytes()))?;
    Ok(path)
}

/// All rows: representations are learned, taggers with them, and each is compared with the one without.
fn table(
    data: &Path,
    quick: bool,
    transfer: &Transfer,
    measure: Measure,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let size = Size::new(quick);
    let unlabeled = [
        "unlabeled-news/reuters21578.sents.txt",
        "bio-unlabeled/medline.sents.txt",
        "bio-unlabeled/trials.sents.txt",
    ];
    let runner = Runner {
        data,
        unlabeled: Inputs::new(unlabeled.map(|file| data.join(file))),
        preprocessing: Preprocessing::default(),
        limits: VocabLimits { min_count: 2, ..VocabLimits::default() },
        keep_sentences: Some(size.keep_sentences),
        cache: cache_folder(),
    };
    let (mut rows, mut baseline) = (Vec::new(), None);
    for (i, representation) in size.representations().iter().enumerate() {
        let name = PAPER[i].0;
        note(&format!("{name}: representation"));
        let encoder = runner.encoder(representation)?;
        note(&format!("{name}: tagger"));
        let Transfer { ref source, column, pos_column, .. } = *transfer;
        let params =
            TaggerParams { pos_column, n_iterations: size.n_iterations, ..TaggerParams::default() };
        let encoders = encoder.as_deref().map(|path| (path, representation.features()));
        let tagger = learn(source, column, params, encoders)?;
        for (column, paper, ours) in measure(transfer, &tagger, i)? {
            note(&format!("{name}: {column} {ours:.2}"));
            rows.push(Row { row: name.to_owned(), column, paper, ours });
        }
        match &baseline {
            None => baseline = Some(tagger),
            Some(baseline) => {
                let compared = compare([baseline, &tagger], &transfer.target, column)?;
                let column = "p against BASELINE".to_owned();
                rows.push(Row {
                    row: name.to_owned(),
                    column,
                    paper: None,
                    ours: compared.p_value,
                });
            }
        }
    }
    Ok(rows)
}

/// Table 1: the share of wrong tags of all words, of words never seen, and of words seen at most twice.
fn errors(
    transfer: &Transfer,
    tagger: &FeatureTagger,
    row: usize,
) -> Result<Vec<(String, Option<f64>, f64)>> {
    let scores = evaluate(tagger, &transfer.target, transfer.column)?;
    let shares = [Some(scores.accuracy), scores.oov_accuracy, scores.rare_accuracy];
    let columns = ["All", "OOV", "Rare"].into_iter().zip(shares).enumerate();
    let error = |(i, (name, share)): (usize, (&str, Option<f64>))| {
        let ours = share.map_or(f64::NAN, |share| 100.0 * (1.0 - share));
        (format!("{name} error"), Some(PAPER[row].1[i]), ours)
    };
    Ok(columns.map(error).collect())
}

/// Table 2: recall, precision and F1 of phrases; of all, of those that begin with a word never seen, and of those that
/// begin with one seen at most twice.
fn phrases(
    transfer: &Transfer,
    tagger: &FeatureTagger,
    row: usize,
) -> Result<Vec<(String, Option<f64>, f64)>> {
    let found = tag_all(tagger, &transfer.target)?;
    let mut columns = Vec::new();
    for (i, (name, most)) in [("All", u64::MAX), ("OOV", 0), ("Rare", 2)].into_iter().enumerate() {
        let counts = |sentence: TaggedSentence<'_>, span: &Span<'_>| {
            tagger.n_seen(sentence.word(span.words.start)) <= most
        };
        let (mut n_true, mut n_found, mut n_right) = (0, 0, 0);
        for (sentence, found) in transfer.target.iter().zip(&found) {
            let truth = sentence.column(transfer.column).context("every word has a chunk")?;
            let of = |tags| spans(tags).into_iter().filter(|span| counts(sentence, span));
            let truth: HashSet<Span<'_>> = of(&truth).collect();
            let found: HashSet<Span<'_>> = of(found).collect();
            n_true += truth.len();
            n_found += found.len();
            n_right += truth.intersection(&found).count();
        }
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let figures = [
            ("R", percent(n_right, n_true)),
            ("P", percent(n_right, n_found)),
            ("F1", percent(2 * n_right, n_true + n_found)),
        ];
        for (j, (figure, ours)) in figures.into_iter().enumerate() {
            columns.push((format!("{name} {figure}"), Some(PAPER[row].2[3 * i + j]), ours));
        }
    }
    Ok(columns)
}
