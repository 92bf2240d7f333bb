//! Tagged text as it is written: columns, CoNLL-U or JSON.

use latens::corpus::{Layout, TextToTag};
use latens::model::Matrix;
use latens::tasks::tagging::{are_chunk_tags, spans};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Universal parts of speech (universaldependencies.org/u/pos).
const UPOS: [&str; 17] = [
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
];

/// Columns of CoNLL-U, counted from 0, that a tagger may fill: LEMMA, UPOS, XPOS, FEATS, DEPREL, DEPS and MISC.
const LEMMA: usize = 2;
const UPOS_COLUMN: usize = 3;
const XPOS_COLUMN: usize = 4;
const HEAD: usize = 6;
const MISC: usize = 9;

/// What a tagger predicts for a sentence.
pub(super) struct Predicted<'t> {
    pub(super) tags: Vec<&'t str>,
    /// Posterior probability of each of `tags`.
    pub(super) probs: Option<Vec<f32>>,
    /// Posterior probabilities: words × tags.
    pub(super) marginals: Option<Matrix<f32>>,
    /// The most probable sequences, with their log probabilities.
    pub(super) n_best: Vec<(Vec<&'t str>, f64)>,
}

/// Where the tags go.
pub(super) struct Target {
    /// Cell of CoNLL-U; `None` for an attribute of MISC.
    cell: Option<usize>,
    /// Value of the new column in lines that are not tokens.
    filler: &'static str,
    /// Number of sequences to write, if more than one may be written.
    n_best: Option<usize>,
}

impl Target {
    /// `learned` is the column, counted from 0, that the tagger was trained on, possibly in another format.
    pub(super) fn new(learned: Option<usize>, tags: &[String], n_best: Option<usize>) -> Target {
        let are_spans = are_chunk_tags(tags.iter().map(String::as_str));
        // Columns 1 to 3 and 7 of CoNLL-U identify the word and its head.
        let cell = learned.filter(|&column| column > LEMMA && column != HEAD && column <= MISC);
        let are_upos = tags.iter().all(|tag| UPOS.contains(&tag.as_str()));
        let usual = if are_upos { UPOS_COLUMN } else { XPOS_COLUMN };
        let cell = cell.or((!are_spans).then_some(usual));
        Target { cell, filler: if are_spans { "O" } else { "-X-" }, n_best }
    }
}

/// Writes tagged text in the format of the input; plain text becomes columns.
pub(super) fn write_tagged(
    text: &TextToTag,
    predicted: &[Predicted<'_>],
    target: &Target,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, (layout, predicted)) in text.layouts.iter().zip(predicted).enumerate() {
        let sentence = text.sentences.get(i);
        let row = |token: usize| -> String {
            let mut row = sentence.row(token);
            let sequences = predicted.n_best.iter().map(|(tags, _)| tags[token]);
            match target.n_best {
                None => row.push(predicted.tags[token]),
                // A short sentence may have fewer sequences.
                Some(n) => row.extend(sequences.chain(std::iter::repeat("_")).take(n)),
            }
            let mut row = row.join("\t");
            if let Some(probs) = &predicted.probs {
                row += &format!("\t{:.4}", probs[token]);
            }
            row
        };
        match layout {
            Layout::Conllu(lines) => {
                for (line, token) in lines {
                    match token {
                        Some(token) => {
                            writeln!(out, "{}", conllu_line(line, *token, predicted, target))?
                        }
                        None => writeln!(out, "{line}")?,
                    }
                }
            }
            Layout::Conll(lines) => {
                for (line, token) in lines {
                    match token {
                        Some(token) => writeln!(out, "{}", row(*token))?,
                        None => writeln!(out, "{}", filled(line, target))?,
                    }
                }
            }
            _ => (0..sentence.len()).try_for_each(|token| writeln!(out, "{}", row(token)))?,
        }
        writeln!(out)?;
    }
    // The lines after the last sentence end with a blank one.
    text.rest.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A line of columns that is not a token, such as `-DOCSTART-`, with as many columns as tokens have.
fn filled(line: &str, target: &Target) -> String {
    let cells: Vec<&str> = line.split_ascii_whitespace().collect();
    let n_new = if cells.is_empty() { 0 } else { target.n_best.unwrap_or(1) };
    [cells, vec![target.filler; n_new]].concat().join("\t")
}

fn conllu_line(line: &str, token: usize, predicted: &Predicted<'_>, target: &Target) -> String {
    let mut cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
    let tag = predicted.tags[token];
    match target.cell {
        Some(cell) => cells[cell] = tag.to_owned(),
        None => cells[MISC] = with_attribute(&cells[MISC], "Tag", tag),
    }
    if let Some(probs) = &predicted.probs {
        cells[MISC] = with_attribute(&cells[MISC], "TagProb", &format!("{:.4}", probs[token]));
    }
    cells.join("\t")
}

/// Sets an attribute in a list such as `SpaceAfter=No|Tag=B-PER`; `_` is the empty list.
fn with_attribute(list: &str, name: &str, value: &str) -> String {
    let is_other = |fact: &&str| *fact != "_" && fact.split('=').next() != Some(name);
    let mut facts: Vec<String> = list.split('|').filter(is_other).map(str::to_owned).collect();
    facts.push(format!("{name}={value}"));
    facts.join("|")
}

/// A sentence as a JSON object. Offsets count Unicode characters.
pub(super) fn json_sentence(
    text: &TextToTag,
    sentence_idx: usize,
    predicted: &Predicted<'_>,
    names: &[String],
) -> Value {
    let source = text.source_text(sentence_idx);
    let mut object = Map::new();
    object.insert("text".into(), json!(source.text));
    object.insert("words".into(), json!(text.sentences.get(sentence_idx).words()));
    object.insert("tags".into(), json!(predicted.tags));
    if are_chunk_tags(names.iter().map(String::as_str)) {
        let span = |span: latens::tasks::tagging::Span<'_>| {
            let (start, end) =
                (source.words[span.words.start].start, source.words[span.words.end - 1].end);
            let covered: String = source.text.chars().skip(start).take(end - start).collect();
            json!({
                "type": span.kind, "start": start, "end": end, "text": covered,
                "first_word": span.words.start, "n_words": span.words.len(),
            })
        };
        let found: Vec<Value> = spans(&predicted.tags).into_iter().map(span).collect();
        object.insert("spans".into(), found.into());
    }
    if let Some(marginals) = &predicted.marginals {
        let row = |row: &[f32]| -> Value {
            names
                .iter()
                .zip(row)
                .map(|(name, &p)| (name.clone(), json!(p)))
                .collect::<Map<_, _>>()
                .into()
        };
        object.insert("marginals".into(), marginals.rows().map(row).collect::<Vec<_>>().into());
    }
    if !predicted.n_best.is_empty() {
        let sequence =
            |(tags, log_prob): &(Vec<&str>, f64)| json!({ "tags": tags, "log_prob": log_prob });
        object.insert("n_best".into(), predicted.n_best.iter().map(sequence).collect());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_to_the_column_that_conllu_has_for_them() {
        let cell = |learned: Option<usize>, tags: &[&str]| {
            let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
            Target::new(learned, &tags, None).cell
        };
        assert_eq!(cell(Some(3), &["NOUN"]), Some(3));
        assert_eq!(cell(Some(4), &["NN"]), Some(4));
        assert_eq!(cell(Some(7), &["nsubj"]), Some(7));
        // Learned from other columns than those of CoNLL-U.
        assert_eq!(cell(Some(1), &["NOUN", "VERB"]), Some(3));
        assert_eq!(cell(Some(1), &["NN", "VB"]), Some(4));
        assert_eq!(cell(None, &["NN"]), Some(4));
        assert_eq!(cell(Some(2), &["B-PER", "I-PER", "O"]), None);
        assert_eq!(cell(Some(6), &["NN"]), Some(4));
        assert_eq!(cell(Some(20), &["NN"]), Some(4));
    }

    #[test]
    fn attributes_replace_the_same_attribute() {
        assert_eq!(with_attribute("_", "Tag", "O"), "Tag=O");
        assert_eq!(with_attribute("SpaceAfter=No", "Tag", "O"), "SpaceAfter=No|Tag=O");
        assert_eq!(with_attribute("Tag=B-X|A=1", "Tag", "O"), "A=1|Tag=O");
    }
}
