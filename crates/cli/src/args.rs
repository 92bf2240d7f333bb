//! The arguments that several commands share, as they are typed.

use crate::paths::refuse_second_stdin;
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use latens::corpus::{
    Digits, Field, Format, Inputs, Invalid, Preprocessing, Tokenize, VocabLimits,
};
use std::path::PathBuf;

/// What every command understands.
#[derive(Args)]
pub(crate) struct Common {
    /// How many threads to use, 1 to 1024 [default: all cores]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024),
        help_heading = "Everywhere"
    )]
    pub(crate) threads: Option<u16>,
    /// Where random choices begin: the same seed gives the same result
    #[arg(long, global = true, value_name = "N", default_value_t = 1, help_heading = "Everywhere")]
    pub(crate) seed: u64,
    /// Show no progress and no messages but errors
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,
    /// Print the result as one JSON object
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
}

/// Text to read.
#[derive(Args)]
pub(crate) struct TextArgs {
    /// Text files; `-` is the standard input, `.gz` and `.zst` are decompressed
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

impl TextArgs {
    pub(crate) fn inputs(&self) -> Result<Inputs> {
        self.reading.inputs(&self.files)
    }
}

/// How text files are read.
#[derive(Args)]
pub(crate) struct ReadingArgs {
    /// How sentences or documents are written [default: by the file's extension, else lines]
    #[arg(long, value_enum, help_heading = "Reading text")]
    pub(crate) format: Option<FormatArg>,
    /// The tab-separated fields of the format `docs`, e.g., `label,split,text`
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "NAMES",
        help_heading = "Reading text"
    )]
    pub(crate) fields: Vec<FieldArg>,
    /// What to do with bytes that are no UTF-8
    #[arg(long, value_enum, default_value_t, help_heading = "Reading text")]
    pub(crate) invalid: InvalidArg,
}

impl ReadingArgs {
    pub(crate) fn inputs(&self, files: &[PathBuf]) -> Result<Inputs> {
        refuse_second_stdin(files)?;
        let invalid = match self.invalid {
            InvalidArg::Error => Invalid::Error,
            InvalidArg::Replace => Invalid::Replace,
        };
        Ok(Inputs { paths: files.to_vec(), format: self.format()?, invalid, watch: None })
    }

    fn format(&self) -> Result<Option<Format>> {
        let fields = self.fields()?;
        let format = match (self.format, fields) {
            // Naming fields says that these are documents.
            (Some(FormatArg::Docs) | None, Some(fields)) => Format::Docs(fields),
            (Some(_), Some(_)) => bail!("`--fields` is for the format `docs` only"),
            (Some(FormatArg::Docs), None) => Format::Docs(vec![Field::Text]),
            (Some(FormatArg::Lines), None) => Format::Lines,
            (Some(FormatArg::Conll), None) => Format::Conll,
            (Some(FormatArg::Conllu), None) => Format::Conllu,
            (Some(FormatArg::Jsonl), None) => Format::Jsonl,
            (None, None) => return Ok(None),
        };
        Ok(Some(format))
    }

    /// The fields of documents, if they were named.
    fn fields(&self) -> Result<Option<Vec<Field>>> {
        if self.fields.is_empty() {
            return Ok(None);
        }
        let fields: Vec<Field> = self.fields.iter().map(|&field| field.into()).collect();
        let count = |field| fields.iter().filter(|&&found| found == field).count();
        ensure!(count(Field::Text) == 1, "`--fields` must name `text` exactly once");
        ensure!(count(Field::Label) <= 1, "`--fields` names `label` twice");
        ensure!(count(Field::Split) <= 1, "`--fields` names `split` twice");
        Ok(Some(fields))
    }
}

/// What becomes of the letters of a text before words are counted.
#[derive(Args)]
pub(crate) struct PreprocessingArgs {
    /// Where a word ends: at blanks, or at Unicode word boundaries with punctuation split off
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    tokenize: TokenizeArg,
    /// Make all letters small
    #[arg(long, help_heading = "Words")]
    lowercase: bool,
    /// What becomes of digits: stay, each becomes 0, or a number becomes `<num>`
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    digits: DigitsArg,
}

impl PreprocessingArgs {
    pub(crate) fn preprocessing(&self) -> Preprocessing {
        let tokenize = self.tokenize.into();
        let digits = match self.digits {
            DigitsArg::Keep => Digits::Keep,
            DigitsArg::Zero => Digits::Zero,
            DigitsArg::Num => Digits::Num,
        };
        Preprocessing { tokenize, lowercase: self.lowercase, digits }
    }
}

/// Which words of a text to learn.
#[derive(Args)]
pub(crate) struct LearnedWordArgs {
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    /// Words seen fewer times become `<unk>`
    #[arg(
        long,
        value_name = "N",
        default_value_t = VocabLimits::default().min_count,
        help_heading = "Words"
    )]
    min_count: u64,
    /// The most words to keep, `<unk>` and `<eos>` among them; 0 keeps all
    #[arg(
        long,
        value_name = "N",
        default_value_t = VocabLimits::default().max_vocab,
        help_heading = "Words"
    )]
    max_vocab: usize,
}

impl LearnedWordArgs {
    pub(crate) fn preprocessing(&self) -> Preprocessing {
        self.preprocessing.preprocessing()
    }

    pub(crate) fn limits(&self) -> VocabLimits {
        VocabLimits { min_count: self.min_count, max_vocab: self.max_vocab }
    }
}

/// Words to learn from the text, or words that were learned before.
#[derive(Args)]
pub(crate) struct WordArgs {
    #[command(flatten)]
    pub(crate) learned: LearnedWordArgs,
    /// Take the words, and what becomes of them, from a file that `latens vocab` wrote
    #[arg(
        long,
        value_name = "VOCAB",
        help_heading = "Words",
        conflicts_with_all = ["tokenize", "lowercase", "digits", "min_count", "max_vocab"]
    )]
    pub(crate) vocab: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    /// One sentence a line; a blank line is a sentence without words
    Lines,
    /// One document a line, perhaps after tab-separated fields
    Docs,
    /// One token a line in blank-separated columns, the word first
    Conll,
    /// Universal Dependencies
    Conllu,
    /// One JSON object a line with `text`, perhaps `label` and `tags`
    Jsonl,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FieldArg {
    Label,
    Split,
    Text,
    Skip,
}

impl From<FieldArg> for Field {
    fn from(field: FieldArg) -> Field {
        match field {
            FieldArg::Label => Field::Label,
            FieldArg::Split => Field::Split,
            FieldArg::Text => Field::Text,
            FieldArg::Skip => Field::Skip,
        }
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum InvalidArg {
    /// Refuse the file and say where they are
    #[default]
    Error,
    /// Read U+FFFD in their place
    Replace,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum TokenizeArg {
    #[default]
    Blanks,
    Words,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum DigitsArg {
    #[default]
    Keep,
    Zero,
    Num,
}

impl From<TokenizeArg> for Tokenize {
    fn from(tokenize: TokenizeArg) -> Tokenize {
        match tokenize {
            TokenizeArg::Blanks => Tokenize::Blanks,
            TokenizeArg::Words => Tokenize::Words,
        }
    }
}
