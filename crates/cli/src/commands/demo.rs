mod files;
mod result;
mod sequences;
mod topics;
mod words;

use self::files::model_file;
use self::result::ModelResult;
use crate::args::Common;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use latens::brown::Brown;
use latens::corpus::embedded::{self, Split};
use latens::fhmm::Fhmm;
use latens::hmm::Hmm;
use latens::lda::{Glda, Lda};
use latens::lds::Lds;
use latens::model::file::inspect;
use latens::ngram::Ngram;
use latens::store::write_atomically;
use latens::word2vec::Word2vec;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train small models on the embedded corpus and show what they learn
///
/// Needs no input. With `-o`, the models are kept, and the corpus is written as text files in several formats.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the models and the corpus in this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Train only these models, e.g., `ngram,lda`
    #[arg(long, value_delimiter = ',', value_name = "MODEL,...", value_parser = parts())]
    only: Vec<String>,
}

/// A part of the demo: a model, how it is trained with a random seed and saved in a folder, and the command that trains one on
/// other text.
struct Part {
    model: &'static str,
    run: fn(&Path, u64) -> Result<ModelResult>,
    command: &'static str,
}

/// The models in the order of the output.
const PARTS: &[Part] = &[
    Part {
        model: Ngram::KIND,
        run: sequences::ngram,
        command: "train ngram news.txt -o news.ngram",
    },
    Part { model: Brown::KIND, run: words::brown, command: "train brown news.txt -o news.brown" },
    Part {
        model: Hmm::KIND,
        run: sequences::hidden_markov,
        command: "train hmm news.txt -o news.hmm",
    },
    Part {
        model: Word2vec::KIND,
        run: words::word_vectors,
        command: "train word2vec news.txt -o news.word2vec",
    },
    Part { model: Lds::KIND, run: words::dynamical, command: "train lds news.txt -o news.lds" },
    Part {
        model: Lda::KIND,
        run: topics::words,
        command: "train lda documents.csv --text-column text -o documents.lda",
    },
    Part {
        model: Glda::KIND,
        run: topics::vectors,
        command: "train glda documents.csv --text-column text --vectors news.word2vec -o documents.glda",
    },
    Part {
        model: Fhmm::KIND,
        run: sequences::factorial,
        command: "train fhmm news.txt -o news.fhmm",
    },
];

/// The names of the parts, for `--only`.
fn parts() -> PossibleValuesParser {
    PARTS.iter().map(|part| part.model).collect::<Vec<_>>().into()
}

#[derive(Serialize)]
struct DemoResult {
    models: Vec<ModelResult>,
}

pub(crate) fn run(args: &DemoArgs, common: &Common, output: &Output) -> Result<()> {
    let temporary;
    let folder = match &args.output {
        Some(folder) => {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
            folder.as_path()
        }
        None => {
            temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
            temporary.path()
        }
    };
    write_corpus(folder)?;
    let is_wanted =
        |part: &&Part| args.only.is_empty() || args.only.iter().any(|m| m == part.model);
    let parts: Vec<&Part> = PARTS.iter().filter(is_wanted).collect();
    let models = parts.iter().map(|part| (part.run)(folder, common.seed));
    let result = DemoResult { models: models.collect::<Result<_>>()? };
    output.result(&result, |out| {
        writeln!(
            out,
            "The embedded corpus: {} short documents on ten subjects, from astronomy to sailing.",
            embedded::documents().len()
        )?;
        for (part, model) in parts.iter().zip(&result.models) {
            write!(out, "\n{}  on your own text: latens {}\n", model.text, part.command)?;
        }
        match &args.output {
            Some(folder) => writeln!(
                out,
                "\nThe models and the corpus are in `{0}`. Try:\n  latens sample {0}/demo.ngram\n  \
                 latens perplexity {0}/demo.ngram {0}/valid.txt\n  \
                 latens vocab {0}/documents.tsv --fields label,split,text --tokenize words -o \
                 {0}/words.vocab",
                folder.display()
            ),
            None => writeln!(out, "\n`latens demo -o DIR` keeps the models and the corpus."),
        }
    })
}

/// The embedded corpus as files: their names and contents.
fn corpus_files() -> Vec<(String, String)> {
    let mut files = vec![("documents.tsv".to_owned(), embedded::docs())];
    for split in Split::ALL {
        files.push((format!("{}.txt", split.name()), embedded::text(split)));
        files.push((format!("{}.conll", split.name()), embedded::tagged(split)));
    }
    files
}

fn write_corpus(folder: &Path) -> Result<()> {
    let files = corpus_files();
    refuse_other_files(folder, &files)?;
    for (name, text) in files {
        write_atomically(folder.join(name), |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Rejects a folder with files that the demo would overwrite, except those of an earlier demo.
fn refuse_other_files(folder: &Path, texts: &[(String, String)]) -> Result<()> {
    let is_other_text = |(name, text): &&(String, String)| {
        let path = folder.join(name);
        path.exists() && fs::read(path).ok().as_deref() != Some(text.as_bytes())
    };
    let is_other_model = |path: &PathBuf| path.exists() && inspect(path).is_err();
    let other_text = texts.iter().find(is_other_text).map(|(name, _)| folder.join(name));
    let mut models = PARTS.iter().map(|part| model_file(folder, part.model));
    match other_text.or_else(|| models.find(is_other_model)) {
        Some(path) => Err(hinted(
            format!("`{}` exists and was not written by `latens demo`", path.display()),
            "choose a new folder with `-o`",
        )),
        None => Ok(()),
    }
}
