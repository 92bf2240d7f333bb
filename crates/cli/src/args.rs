//! Command-line arguments that several commands share.

use crate::choice::choice;
use crate::errors::hinted;
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use latens::corpus::{
    Columns, Digits, Field, Format, Inputs, Invalid, Normalize, Preprocessing, TokenNames,
    Tokenize, VocabLimits,
};
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

/// The arguments of this run. Those of the process begin with an interpreter where Python runs the program.
static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the arguments of this run for [`all`].
pub(crate) fn keep(arguments: Vec<OsString>) -> &'static [OsString] {
    ARGUMENTS.get_or_init(|| arguments)
}

/// The arguments of this run, the name of the program first.
#[cfg(feature = "reproduce")]
pub(crate) fn all() -> &'static [OsString] {
    ARGUMENTS.get().map(Vec::as_slice).unwrap_or_default()
}

/// Options of all commands.
#[derive(Args)]
pub(crate) struct Common {
    /// Number of threads, 1 to 1024 [default: all cores]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024),
        help_heading = "Global options"
    )]
    pub(crate) threads: Option<u16>,
    /// Random seed
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Global options"
    )]
    pub(crate) seed: u64,
    /// Print no progress and no messages except errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Print the result as one JSON object
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

/// Text input.
#[derive(Args)]
pub(crate) struct TextArgs {
    /// Text files; `-` reads standard input, `.gz` and `.zst` are decompressed
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

/// Documents as input.
#[derive(Args)]
pub(crate) struct DocumentArgs {
    /// Documents: CSV, TSV or JSONL files, text with one document per line, or folders with one document per file; `-`
    /// reads standard input, `.gz` and `.zst` are decompressed
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

impl DocumentArgs {
    pub(crate) fn inputs(&self) -> Result<Inputs> {
        self.reading.document_inputs(&self.files)
    }
}

/// Options for reading text files.
#[derive(Args)]
pub(crate) struct ReadingArgs {
    /// Format of the text files [default: by the file's extension, else lines]
    #[arg(long, value_enum, help_heading = "Reading text")]
    pub(crate) format: Option<FormatArg>,
    /// Tab-separated fields of the format `docs`, e.g., `label,split,text`
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "NAMES",
        help_heading = "Reading text"
    )]
    pub(crate) fields: Vec<FieldArg>,
    /// Column of a table, or key of JSON objects, with the text [default: text, or the only column]
    #[arg(long, value_name = "NAME", help_heading = "Reading text")]
    pub(crate) text_column: Option<String>,
    /// Column or key with the identifier of a document [default: id, if there is one]
    #[arg(long, value_name = "NAME", help_heading = "Reading text")]
    pub(crate) id_column: Option<String>,
    /// Column or key with the label of a document [default: label, if there is one]
    #[arg(long, value_name = "NAME", help_heading = "Reading text")]
    pub(crate) label_column: Option<String>,
    /// Hugging Face `tokenizer.json` that maps token ids to tokens, for arrays of token ids (`.npy`, `.npz`, `.arrow`)
    #[arg(long, value_name = "FILE", help_heading = "Reading text")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// Token that ends a sequence in arrays of token ids [default: `<|endoftext|>`, `</s>`, …, the first that exists]
    #[arg(long, value_name = "TOKEN", requires = "tokenizer", help_heading = "Reading text")]
    pub(crate) end_token: Option<String>,
    /// Treatment of bytes that are not valid UTF-8
    #[arg(long, value_enum, default_value_t, help_heading = "Reading text")]
    pub(crate) invalid: InvalidArg,
    /// Maximum length of a line, or of a sentence with one token per line, in bytes or with a unit (K, M, G)
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256M",
        value_parser = parse_size,
        help_heading = "Reading text"
    )]
    pub(crate) max_line: usize,
}

/// Parses a number of bytes with an optional unit, such as `4096`, `64K`, `256M` or `1GiB`.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err("expected a number of bytes, or a number with the unit K, M or G".into()),
    };
    let number = number.parse::<usize>().ok().filter(|&number| number > 0);
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "must be at least 1 byte and less than 2^64 bytes".into())
}

impl ReadingArgs {
    pub(crate) fn inputs(&self, files: &[PathBuf]) -> Result<Inputs> {
        let (format, invalid, max_line) = (self.format()?, self.invalid.into(), self.max_line);
        let mut columns = Columns::default();
        columns.text = self.text_column.clone();
        columns.id = self.id_column.clone();
        columns.label = self.label_column.clone();
        let has_columns =
            |format: &Format| matches!(format, Format::Csv | Format::Tsv | Format::Jsonl);
        let is_other = |path: &PathBuf| !has_columns(&Format::of_path(path));
        if columns != Columns::default()
            && format.as_ref().map_or(files.iter().any(is_other), |format| !has_columns(format))
        {
            return Err(hinted(
                "`--text-column`, `--id-column` and `--label-column` need a table with a header, or JSON objects",
                "set the format with `--format csv`, `--format tsv` or `--format jsonl`",
            ));
        }
        let is_text = |path: &PathBuf| Format::of_path(path) != Format::Ids;
        if self.tokenizer.is_some()
            && format.as_ref().map_or(files.iter().any(is_text), |format| *format != Format::Ids)
        {
            return Err(hinted(
                "`--tokenizer` needs arrays of token ids",
                "pass files that end in `.npy`, `.npz` or `.arrow`, or set `--format ids`",
            ));
        }
        let end = self.end_token.as_deref();
        let names = self.tokenizer.as_ref().map(|path| TokenNames::open(path, end)).transpose()?;
        let inputs = Inputs::new(files).format(format).columns(columns).token_names(names);
        Ok(inputs.invalid(invalid).max_line(max_line))
    }

    /// Inputs that may be folders, in which every file is one document.
    pub(crate) fn document_inputs(&self, files: &[PathBuf]) -> Result<Inputs> {
        Ok(self.inputs(files)?.folders(true))
    }

    fn format(&self) -> Result<Option<Format>> {
        let fields = self.fields()?;
        let format = match (self.format, fields) {
            // `--fields` implies the format `docs`.
            (Some(FormatArg::Docs) | None, Some(fields)) => Format::Docs(fields),
            (Some(_), Some(_)) => bail!("`--fields` requires the format `docs`"),
            (Some(FormatArg::Docs), None) => Format::Docs(vec![Field::Text]),
            (Some(FormatArg::Lines), None) => Format::Lines,
            (Some(FormatArg::Conll), None) => Format::Conll,
            (Some(FormatArg::Conllu), None) => Format::Conllu,
            (Some(FormatArg::Jsonl), None) => Format::Jsonl,
            (Some(FormatArg::Csv), None) => Format::Csv,
            (Some(FormatArg::Tsv), None) => Format::Tsv,
            (Some(FormatArg::Ids), None) => Format::Ids,
            (None, None) => return Ok(None),
        };
        Ok(Some(format))
    }

    /// The fields of `--fields`, if given.
    fn fields(&self) -> Result<Option<Vec<Field>>> {
        if self.fields.is_empty() {
            return Ok(None);
        }
        let fields: Vec<Field> = self.fields.iter().map(|&field| field.into()).collect();
        let count = |field| fields.iter().filter(|&&found| found == field).count();
        ensure!(count(Field::Text) == 1, "`--fields` must contain `text` exactly once");
        ensure!(count(Field::Id) <= 1, "`--fields` contains `id` more than once");
        ensure!(count(Field::Label) <= 1, "`--fields` contains `label` more than once");
        ensure!(count(Field::Split) <= 1, "`--fields` contains `split` more than once");
        Ok(Some(fields))
    }
}

/// Preprocessing of text before words are counted.
#[derive(Args)]
pub(crate) struct PreprocessingArgs {
    /// Tokenization of text
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    tokenize: TokenizeArg,
    /// Convert text to lowercase
    #[arg(long, help_heading = "Words")]
    lowercase: bool,
    /// Treatment of digits
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    digits: DigitsArg,
    /// Unicode normalization
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    normalize: NormalizeArg,
}

impl PreprocessingArgs {
    pub(crate) fn preprocessing(&self) -> Preprocessing {
        Preprocessing::default()
            .tokenize(self.tokenize.into())
            .lowercase(self.lowercase)
            .digits(self.digits.into())
            .normalize(self.normalize.into())
    }
}

/// Limits of a vocabulary that is learned from text.
#[derive(Args)]
pub(crate) struct LearnedWordArgs {
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    /// Minimum number of occurrences of a word; rarer words become `<unk>`. `train hmm` uses 2 on text without `<unk>`
    /// [default: 1]
    #[arg(long, value_name = "N", help_heading = "Words")]
    pub(crate) min_count: Option<u64>,
    /// Maximum size of the vocabulary, including `<unk>` and `<eos>`; 0 means no limit
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
        let min_count = self.min_count.unwrap_or(VocabLimits::default().min_count);
        VocabLimits { min_count, max_vocab: self.max_vocab }
    }
}

/// A vocabulary that is learned from the text or read from a file.
#[derive(Args)]
pub(crate) struct WordArgs {
    #[command(flatten)]
    pub(crate) learned: LearnedWordArgs,
    /// Use the vocabulary and preprocessing of a file written by `latens vocab`
    #[arg(
        long,
        value_name = "VOCAB",
        help_heading = "Words",
        conflicts_with_all = ["tokenize", "lowercase", "digits", "normalize", "min_count", "max_vocab"]
    )]
    pub(crate) vocab: Option<PathBuf>,
}

/// A model whose features a tagger uses, with the kind of features: `news.hmm:posterior`.
#[derive(Clone)]
pub(crate) struct EncoderArg {
    pub(crate) path: PathBuf,
    pub(crate) kind: Option<String>,
}

impl FromStr for EncoderArg {
    type Err = Infallible;

    /// Splits `news.hmm:posterior` into `news.hmm` and `posterior`, unless a file of the whole name exists.
    fn from_str(name: &str) -> Result<EncoderArg, Infallible> {
        Ok(match name.rsplit_once(':') {
            Some((path, kind)) if !PathBuf::from(name).exists() => {
                EncoderArg { path: path.into(), kind: Some(kind.to_owned()) }
            }
            _ => EncoderArg { path: name.into(), kind: None },
        })
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    /// One sentence per line; a blank line is an empty sentence
    Lines,
    /// One document per line, optionally with tab-separated fields
    Docs,
    /// One token per line in whitespace-separated columns; the word is in the first column
    Conll,
    /// Universal Dependencies (CoNLL-U)
    Conllu,
    /// One JSON object per line with `text` and optionally `id`, `label` and `tags`
    Jsonl,
    /// Comma-separated values with a header (RFC 4180), one document per row
    Csv,
    /// Tab-separated values: with a header, or without one and with two columns, label and text
    Tsv,
    /// Arrays of token ids (`.npy`, `.npz`, `.arrow`), read with `--tokenizer`
    Ids,
}

choice!(pub(crate) FieldArg for Field {
    Id "Identifier of the document",
    Label "Class or title of the document",
    Split "Part of the corpus to which the document belongs",
    Text "Text of the document",
    Skip "Ignored field",
});
choice!(#[derive(Default)] pub(crate) InvalidArg for Invalid {
    #[default] Error "Report the position and stop",
    Replace "Replace them with U+FFFD",
});
choice!(#[derive(Default)] pub(crate) TokenizeArg for Tokenize {
    #[default] #[value(name = "whitespace", alias = "blanks")] Whitespace "Split at whitespace",
    Words "Split at Unicode word boundaries and separate punctuation",
    Tweets "Like `words`, but keep hashtags, mentions and URLs whole",
    #[cfg_attr(not(feature = "segmentation"), value(skip))]
    Dictionary "Like `words`, but split Chinese, Japanese, Thai, Lao, Khmer and Burmese text into words with dictionaries",
});
choice!(#[derive(Default)] pub(crate) NormalizeArg for Normalize {
    #[default] Nfc "Compose characters and their accents (NFC)",
    Nfkc "Also replace compatibility characters such as ligatures and full-width letters (NFKC)",
    None "Keep text as it is",
});
choice!(#[derive(Default)] pub(crate) DigitsArg for Digits {
    #[default] Keep "Keep digits",
    Zero "Replace every digit with 0",
    Num "Replace every number with `<num>`",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        let sizes =
            [("1", 1), ("4096b", 4096), ("64K", 1 << 16), ("256MiB", 1 << 28), ("1g", 1 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "M", "-1", "1.5M", "1T", "99999999999G", "1 M"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
