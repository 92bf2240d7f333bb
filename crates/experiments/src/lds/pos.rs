//! Part-of-speech tagging with linear dynamical systems and word2vec (Belanger & Kakade 2015, Table 2).
//!
//! The paper uses the standard sections of the Penn Treebank. Only a tenth of them and the texts of CoNLL-2000 are freely
//! available, so our figures are for other, smaller texts.

use super::representations::{em, p_value, read, runner, ssid, word2vec};
use crate::experiment::{Effort, Experiment, Row};
use crate::tagging::representation::Representation;
use crate::tagging::runner::learn;
use anyhow::{Context, Result};
use latens::corpus::TaggedSentences;
use latens::tasks::tagging::{FeatureTagger, Kind, TaggerParams, correct_tokens};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lds-pos",
    about: "part-of-speech tagging (accuracy, %) with linear dynamical systems and word2vec; p is the p-value of \
            McNemar's exact test",
    run,
};

/// Column of the tags.
const COLUMN: usize = 1;

/// A corpus with one tag set.
struct Text {
    name: String,
    /// Training, development and test text.
    parts: [TaggedSentences; 3],
    /// Whether the tags are the twelve universal ones.
    universal: bool,
}

/// A column of the table: a tagger with a representation, and the accuracy of the paper with universal and with Penn
/// Treebank tags.
struct Column {
    name: &'static str,
    tagger: Tagger,
    representation: Representation,
    paper: Option<[f64; 2]>,
}

#[derive(Clone, Copy, PartialEq)]
enum Tagger {
    /// A network of 25 hidden units with a window of this many words on either side.
    Local(usize),
    /// A conditional random field with lexical features.
    Lexical,
}

/// Columns to compare.
const PAIRS: [[&str; 2]; 10] = [
    ["EM smoothed", "SSID smoothed"],
    ["EM type+smoothed", "SSID type+smoothed"],
    ["EM type+smoothed", "EM type"],
    ["EM type", "W2V"],
    ["EM smoothed", "W2V"],
    ["EM type+smoothed", "W2V"],
    ["EM type+smoothed", "W2V ±1"],
    ["Lex+EM", "Lex"],
    ["Lex+W2V", "Lex"],
    ["Lex+EM", "Lex+W2V"],
];

fn columns(effort: Effort) -> Vec<Column> {
    let column =
        |name, tagger, representation, paper| Column { name, tagger, representation, paper };
    let local = |name, representation, paper| column(name, Tagger::Local(0), representation, paper);
    vec![
        local("W2V", word2vec(effort), Some([95.00, 92.58])),
        column("W2V ±1", Tagger::Local(1), word2vec(effort), None),
        local("SSID smoothed", ssid("smoothed", effort), Some([89.26, 83.00])),
        local("SSID type+smoothed", ssid("type+smoothed", effort), None),
        local("EM type", em("type", effort), None),
        local("EM filtered", em("filtered", effort), None),
        local("EM smoothed", em("smoothed", effort), Some([96.44, 94.30])),
        local("EM type+smoothed", em("type+smoothed", effort), None),
        column("Lex", Tagger::Lexical, Representation::Words, Some([97.97, 97.28])),
        column("Lex+EM", Tagger::Lexical, em("type+smoothed", effort), Some([98.05, 97.32])),
        column("Lex+W2V", Tagger::Lexical, word2vec(effort), Some([98.02, 97.35])),
    ]
}

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let (runner, columns) = (runner(data, effort)?, columns(effort));
    let encoders = columns.iter().map(|column| {
        note(&format!("fitting {}", column.name));
        runner.encoder(&column.representation)
    });
    let encoders = encoders.collect::<Result<Vec<Option<PathBuf>>>>()?;
    let mut rows = Vec::new();
    for text in texts(data)? {
        let mut found: HashMap<&str, Vec<bool>> = HashMap::new();
        for (column, encoder) in columns.iter().zip(&encoders) {
            note(&format!("fitting a tagger with {} on {}", column.name, text.name));
            let tagger = column.fit(&text.parts[0], encoder.as_deref(), effort)?;
            let paper = column.paper.map(|[u, p]| if text.universal { u } else { p });
            let measured = text.measure(&tagger, column.name, paper, &mut found)?;
            note(&format!("dev {:.2}, test {:.2}", measured[0].ours, measured[1].ours));
            rows.extend(measured);
        }
        rows.extend(PAIRS.map(|[first, second]| {
            Row::new(
                format!("p: {first} ≠ {second}"),
                format!("{} test", text.name),
                None,
                p_value(&found[first], &found[second]),
            )
        }));
    }
    Ok(rows)
}

impl Column {
    fn fit(
        &self,
        text: &TaggedSentences,
        encoder: Option<&Path>,
        effort: Effort,
    ) -> Result<FeatureTagger> {
        let encoder = encoder.map(|path| (path, self.representation.features()));
        learn(text, COLUMN, self.tagger.params(effort), encoder)
    }
}

impl Tagger {
    fn params(self, effort: Effort) -> TaggerParams {
        let n_iterations = if effort.is_quick() { 30 } else { 80 };
        let usual = FeatureTagger::params().n_iterations(n_iterations).window(0);
        match self {
            // Words that almost always have the same tag.
            Tagger::Local(window) => {
                let words = ["and", "the", "of", "to", "a", "in"].map(str::to_owned);
                usual.kind(Kind::Local).window(window).direct_words(words.to_vec())
            }
            Tagger::Lexical => usual,
        }
    }
}

impl Text {
    /// Accuracy on the development and the test text. Adds the correctness of each token of the test text to `found`.
    fn measure<'a>(
        &self,
        tagger: &FeatureTagger,
        name: &'a str,
        paper: Option<f64>,
        found: &mut HashMap<&'a str, Vec<bool>>,
    ) -> Result<[Row; 2]> {
        let [dev, test] =
            [&self.parts[1], &self.parts[2]].map(|part| correct_tokens(tagger, part, COLUMN));
        let (dev, test) = (dev?, test?);
        let row = |correct: &[bool], part: &str, paper: Option<f64>| {
            Row::new(
                name,
                format!("{} {part}", self.name),
                paper,
                100.0 * correct.iter().filter(|&&correct| correct).count() as f64
                    / correct.len() as f64,
            )
        };
        let rows = [row(&dev, "dev", None), row(&test, "test", paper)];
        found.insert(name, test);
        Ok(rows)
    }
}

/// Both corpora with both tag sets.
fn texts(data: &Path) -> Result<Vec<Text>> {
    /// Number of training sentences of CoNLL-2000 held out as its development text.
    const HELD_OUT: usize = 1000;
    let conll = |name: &str| read(&data.join("conll2000").join(name));
    let (train, test) = (conll("train.txt")?, conll("test.txt")?);
    let end = train.len().saturating_sub(HELD_OUT);
    let conll = [train.part(0..end), train.part(end..train.len()), test];
    let [train, dev, test] = ["train", "dev", "test"]
        .map(|part| read(&data.join("ptb-pos").join(format!("wsj.{part}.txt"))));
    let map = data.join("ptb-pos").join("en-ptb.map");
    let map = fs::read_to_string(&map)
        .with_context(|| format!("cannot read the universal tag set `{}`", map.display()))?;
    let map: HashMap<&str, &str> = map.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut texts = Vec::new();
    for (name, parts) in [("CoNLL-2000", conll), ("WSJ sample", [train?, dev?, test?])] {
        let coarse = |part: &TaggedSentences| {
            part.with_column(COLUMN, |tag| map.get(tag).copied().unwrap_or("X"))
        };
        let universal = [0, 1, 2].map(|part| coarse(&parts[part]));
        texts.push(Text { name: format!("{name} U"), parts: universal, universal: true });
        texts.push(Text { name: format!("{name} P"), parts, universal: false });
    }
    Ok(texts)
}
