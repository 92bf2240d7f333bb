//! The arguments that several commands share, as they are typed.

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
    pub(crate) fn inputs(&self, files: &[PathBuf]) -> Inputs {
        let fields: Vec<Field> = self.fields.iter().map(|&field| field.into()).collect();
        let format = match (self.format, fields.is_empty()) {
            // Naming fields says that these are documents.
            (Some(FormatArg::Docs) | None, false) => Some(Format::Docs(fields)),
            (Some(FormatArg::Docs), true) => Some(Format::Docs(vec![Field::Text])),
            (Some(FormatArg::Lines), _) => Some(Format::Lines),
            (Some(FormatArg::Conll), _) => Some(Format::Conll),
            (Some(FormatArg::Conllu), _) => Some(Format::Conllu),
            (Some(FormatArg::Jsonl), _) => Some(Format::Jsonl),
            (None, true) => None,
        };
        let invalid = match self.invalid {
            InvalidArg::Error => Invalid::Error,
            InvalidArg::Replace => Invalid::Replace,
        };
        Inputs { paths: files.to_vec(), format, invalid }
    }
}

/// What becomes of the words of a text before they are counted.
#[derive(Args)]
pub(crate) struct WordArgs {
    /// Where a word ends: at blanks, or at Unicode word boundaries with punctuation split off
    #[arg(long, value_enum, help_heading = "Words")]
    pub(crate) tokenize: Option<TokenizeArg>,
    /// Make all letters small
    #[arg(long, help_heading = "Words")]
    pub(crate) lowercase: bool,
    /// What becomes of digits: stay, each becomes 0, or a whole number becomes `<num>`
    #[arg(long, value_enum, help_heading = "Words")]
    pub(crate) digits: Option<DigitsArg>,
    /// Words seen fewer times become `<unk>` [default: 1]
    #[arg(long, value_name = "N", help_heading = "Words")]
    pub(crate) min_count: Option<u64>,
    /// The most words to keep, `<unk>` and `<eos>` among them; 0 keeps all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Words")]
    pub(crate) max_vocab: Option<usize>,
    /// Take the words, and what becomes of them, from a file that `latens vocab` wrote
    #[arg(
        long,
        value_name = "VOCAB",
        help_heading = "Words",
        conflicts_with_all = ["tokenize", "lowercase", "digits", "min_count", "max_vocab"]
    )]
    pub(crate) vocab: Option<PathBuf>,
}

impl WordArgs {
    pub(crate) fn preprocessing(&self) -> Preprocessing {
        let tokenize = match self.tokenize {
            None | Some(TokenizeArg::Blanks) => Tokenize::Blanks,
            Some(TokenizeArg::Words) => Tokenize::Words,
        };
        let digits = match self.digits {
            None | Some(DigitsArg::Keep) => Digits::Keep,
            Some(DigitsArg::Zero) => Digits::Zero,
            Some(DigitsArg::Num) => Digits::Num,
        };
        Preprocessing { tokenize, lowercase: self.lowercase, digits }
    }

    pub(crate) fn limits(&self) -> VocabLimits {
        let default = VocabLimits::default();
        VocabLimits {
            min_count: self.min_count.unwrap_or(default.min_count),
            max_vocab: self.max_vocab.unwrap_or(default.max_vocab),
        }
    }
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

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TokenizeArg {
    Blanks,
    Words,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DigitsArg {
    Keep,
    Zero,
    Num,
}
