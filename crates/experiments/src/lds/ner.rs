//! Named-entity recognition with Brown clusters, word2vec and linear dynamical systems (Belanger & Kakade 2015, Table 3).

use super::representations::{brown, em, p_value, read, runner, word2vec};
use crate::experiment::{Effort, Experiment, Row};
use crate::tagging::representation::Representation;
use crate::tagging::runner::learn;
use anyhow::Result;
use latens::tasks::tagging::{FeatureTagger, Scheme, TaggerParams, correct_tokens, evaluate};
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "lds-ner",
    about: "named-entity recognition (CoNLL-2003, F1 in %) with Brown clusters, word2vec and linear dynamical systems; \
            p is the p-value of McNemar's exact test on tokens",
    run,
};

/// Column of the tags.
const COLUMN: usize = 3;

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let runner = runner(data, effort)?;
    let file = |name: &str| read(&data.join("conll2003").join(name));
    let [train, dev, test] = [file("train.txt")?, file("valid.txt")?, file("test.txt")?];
    let columns = [
        ("Lex", Representation::Words, [93.90, 89.34]),
        ("Lex+Brown", brown(effort), [93.79, 89.76]),
        ("Lex+W2V", word2vec(effort), [94.14, 90.00]),
        ("Lex+LDS", em("type+smoothed", effort), [94.21, 89.9]),
    ];
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for (name, representation, paper) in &columns {
        note(&format!("fitting {name}"));
        let encoder = runner.encoder(representation)?;
        let encoder = encoder.as_deref().map(|path| (path, representation.features()));
        let tagger = learn(&train, COLUMN, params(effort), encoder)?;
        for (text, part, paper) in [(&dev, "dev", paper[0]), (&test, "test", paper[1])] {
            let scores = evaluate(&tagger, text, COLUMN)?;
            let f1 = scores.spans.map_or(0.0, |spans| spans.f1);
            note(&format!("{part} {:.2}", 100.0 * f1));
            let (row, paper) = ((*name).to_owned(), Some(paper));
            rows.push(Row::new(row, part, paper, 100.0 * f1));
        }
        found.push((*name, correct_tokens(&tagger, &test, COLUMN)?));
    }
    for (i, (second, theirs)) in found.iter().enumerate() {
        for (first, ours) in &found[i + 1..] {
            let (row, column) = (format!("p: {first} ≠ {second}"), "test".to_owned());
            rows.push(Row::new(row, column, None, p_value(ours, theirs)));
        }
    }
    Ok(rows)
}

fn params(effort: Effort) -> TaggerParams {
    let n_iterations = if effort.is_quick() { 30 } else { 100 };
    FeatureTagger::params().n_iterations(n_iterations).spans(Scheme::Bioes).scale(0.15)
}
