//! What a page shows: models, logs, and documents with topics.

use crate::args::ReadingArgs;
use crate::commands::topics::trend::read_by_column;
use crate::errors::hinted;
use crate::output::Output;
use crate::reading::watched;
use anyhow::{Result, ensure};
use clap::Args;
use latens::corpus::Documents;
use latens::model::Model;
use latens::tasks::trend::{Bin, trend};
use latens_explorer::{Explorer, OpenError, ShownDocuments};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct ShownArgs {
    /// Model files, and logs of training runs (`--log`); other files are skipped
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// Documents to show with topic models: CSV, TSV or JSONL files, text with one document per line, or folders; may be
    /// given several times
    #[arg(long, value_name = "FILE")]
    documents: Vec<PathBuf>,
    /// Column or key of the documents whose values are compared, e.g., `year`; `label` is the label of documents
    #[arg(long, value_name = "COLUMN", requires = "documents")]
    by: Option<String>,
    /// Group values: `year`, `month` or `decade` of dates such as 2024-05-17, or the width of intervals of numbers
    #[arg(long, value_name = "BIN", requires = "by")]
    bin: Option<Bin>,
    #[command(flatten)]
    reading: ReadingArgs,
}

impl ShownArgs {
    /// Opens all files.
    pub(super) fn open(&self, output: &Output) -> Result<Explorer> {
        let (mut explorer, mut skipped) = (Explorer::default(), Vec::new());
        for path in &self.models {
            match explorer.open(path) {
                Ok(()) => {}
                Err(OpenError::Neither { path }) => skipped.push(path),
                Err(error) => return Err(error.into()),
            }
        }
        note_skipped(&skipped, output);
        if explorer.is_empty() {
            return Err(hinted(
                "none of the files is a model or a training log",
                "train a model, e.g., `latens demo -o demo`, and show it with `latens explore demo/demo.lda`",
            ));
        }
        self.add_documents(&mut explorer, output)?;
        Ok(explorer)
    }

    fn add_documents(&self, explorer: &mut Explorer, output: &Output) -> Result<()> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let topics = explorer.models().filter(|(_, model)| model.as_topic_model().is_some());
        let shown: Result<Vec<(usize, ShownDocuments)>> =
            topics.map(|(item, model)| Ok((item, self.documents_of(model, output)?))).collect();
        let shown = shown?;
        ensure!(!shown.is_empty(), "`--documents` needs a topic model; there is none");
        shown.into_iter().for_each(|(item, documents)| explorer.set_documents(item, documents));
        Ok(())
    }

    /// The documents with the topics of a model.
    fn documents_of(&self, model: &dyn Model, output: &Output) -> Result<ShownDocuments> {
        let inputs = self.reading.document_inputs(&self.documents)?;
        let infer = |documents: Documents| {
            ShownDocuments::new(model, documents).expect("the model has topics")
        };
        let Some(by) = &self.by else {
            let inputs = watched(inputs, output);
            return Ok(infer(Documents::read_with(&inputs, model.lexicon())?));
        };
        let has_column = self.reading.label_column.is_some();
        let (documents, values) = read_by_column(inputs, by, has_column, model.lexicon(), output)?;
        let shown = infer(documents);
        let groups = trend(&values, &shown.mixtures(), self.bin).map_err(|error| {
            let hint = "omit `--bin` to compare the values as they are";
            hinted(format!("cannot group the column `{by}`: {error}"), hint)
        })?;
        Ok(shown.with_trend(by, groups))
    }
}

/// Says in one line which files are not shown.
fn note_skipped(paths: &[PathBuf], output: &Output) {
    /// Number of files that are named.
    const N_NAMED: usize = 3;
    let named: Vec<String> =
        paths.iter().take(N_NAMED).map(|path| format!("`{}`", path.display())).collect();
    let more = paths.len() - named.len();
    let listed = match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    };
    match paths.len() {
        0 => {}
        1 => output.note(&format!("skipped {listed}: not a model or a training log")),
        n => output
            .note(&format!("skipped {n} files that are not models or training logs: {listed}")),
    }
}
