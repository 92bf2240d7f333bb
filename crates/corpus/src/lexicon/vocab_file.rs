//! The vocabulary file: a lexicon as text that people and other programs can read.
//!
//! The first line is [`MAGIC`] followed by preprocessing and limits as JSON. Then there is one line per
//! word: the word, a tab and its count.

use crate::cleaning::rules::Cleaning;
use crate::error::ReadError;
use crate::input::lines::{LineError, LineReader};
use crate::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{Vocab, VocabLimits};
use latens_store::{StorageError, StringTable, write_atomically};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

const MAGIC: &str = "# latens vocab 1 ";

impl Lexicon {
    /// Writes the lexicon to a vocabulary file: text with one line per word, the word and its count
    /// separated by a tab. The first line stores preprocessing and limits.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), StorageError> {
        write_atomically(path.as_ref(), |out| write(self, out))
    }

    /// Opens a vocabulary file that [`Lexicon::save`] wrote.
    pub fn open(path: impl AsRef<Path>) -> Result<Lexicon, ReadError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let parsed = File::open(path)
            .map_err(LineError::Io)
            .and_then(|input| parse(&mut BufReader::with_capacity(1 << 16, input)));
        parsed.map_err(|error| match error {
            LineError::Io(source) => ReadError::Io { file, source },
            LineError::Line { .. } => {
                ReadError::NotAVocabulary { file, problem: error.to_string() }
            }
        })
    }
}

fn write(lexicon: &Lexicon, out: &mut dyn Write) -> io::Result<()> {
    let Lexicon { preprocessing, limits, cleaning, .. } = lexicon;
    let header = if cleaning.is_empty() {
        serde_json::to_string(&(preprocessing, limits))?
    } else {
        serde_json::to_string(&(preprocessing, limits, cleaning))?
    };
    writeln!(out, "{MAGIC}{header}")?;
    for (word, count) in lexicon.vocab.words().zip(lexicon.vocab.counts()) {
        writeln!(out, "{word}\t{count}")?;
    }
    Ok(())
}

fn parse(input: &mut dyn BufRead) -> Result<Lexicon, LineError> {
    let mut lines = LineReader::new(input);
    let problem = |line: u64, problem: String| LineError::Line { line, problem };
    let header = lines.next_line()?.and_then(|line| line.strip_prefix(MAGIC.as_bytes()));
    let Some(header) = header else {
        return Err(problem(1, format!("it does not start with `{}`", MAGIC.trim())));
    };
    let invalid = |error: serde_json::Error| problem(1, format!("invalid settings: {error}"));
    let settings: Vec<serde_json::Value> = serde_json::from_slice(header).map_err(invalid)?;
    let cleaning: Cleaning = match settings.get(2) {
        Some(cleaning) => Cleaning::deserialize(cleaning).map_err(invalid)?,
        None => Cleaning::default(),
    };
    let two = serde_json::Value::from_iter(settings.into_iter().take(2));
    let (preprocessing, limits): (Preprocessing, VocabLimits) =
        serde_json::from_value(two).map_err(invalid)?;
    let (mut words, mut counts) = (StringTable::default(), Vec::new());
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next_str()? else { break };
        let entry = line.split_once('\t').and_then(|(w, count)| Some((w, count.parse().ok()?)));
        let Some((word, count)) = entry else {
            return Err(problem(number, "it is not a word, a tab and a count".to_owned()));
        };
        if words.intern(word) as usize != counts.len() {
            return Err(problem(number, format!("the word `{word}` is a duplicate")));
        }
        counts.push(count);
    }
    let vocab = Vocab::from_parts(words.iter(), counts)
        .map_err(|error| problem(lines.number().min(2), error.to_string()))?;
    Ok(Lexicon { preprocessing, limits, vocab, cleaning })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn lexicon() -> Lexicon {
        let limits = VocabLimits { min_count: 2, max_vocab: 9 };
        let preprocessing = Preprocessing { lowercase: true, ..Preprocessing::default() };
        let vocab = Vocab::from_counts([("a", 3), ("#", 2), ("é", 2)], &limits);
        Lexicon::new(preprocessing, limits, vocab)
    }

    #[test]
    fn an_opened_file_has_the_lexicon_that_was_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.vocab");
        let lexicon = lexicon();
        lexicon.save(&path).unwrap();
        let opened = Lexicon::open(&path).unwrap();
        assert_eq!(opened.preprocessing, lexicon.preprocessing);
        assert_eq!(opened.limits, lexicon.limits);
        assert_eq!(opened.vocab.fingerprint(), lexicon.vocab.fingerprint());
        assert_eq!(opened.vocab.counts(), lexicon.vocab.counts());
    }

    #[test]
    fn the_bytes_of_the_file_do_not_change_between_versions() {
        let mut text = Vec::new();
        write(&lexicon(), &mut text).unwrap();
        let header = r##"[{"tokenize":"blanks","lowercase":true,"digits":"keep","normalize":"nfc"},{"min_count":2,"max_vocab":9}]"##;
        let words = "<unk>\t0\n<eos>\t0\na\t3\n#\t2\né\t2\n";
        assert_eq!(String::from_utf8(text).unwrap(), format!("{MAGIC}{header}\n{words}"));
        // A file of 0.1.0, which normalized nothing.
        let old = format!("{MAGIC}{}\n{words}", header.replace(",\"normalize\":\"nfc\"", ""));
        let read = parse(&mut old.as_bytes()).unwrap();
        assert_eq!(read.preprocessing.normalize, crate::Normalize::None);
    }

    #[test]
    fn other_files_are_refused_with_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        let twice = "# latens vocab 1 [{},{}]\n<unk>\t0\n<eos>\t0\na\t1\nb\t1\na\t1\n";
        fs::write(&path, twice).unwrap();
        let message = Lexicon::open(&path).unwrap_err().to_string();
        assert!(message.ends_with("line 6: the word `a` is a duplicate"), "{message}");
        let texts = [
            "",
            "a\t1\n",
            "\0\0",
            "# latens vocab 1 [{},{}]\n<unk>\t0\n",
            "# latens vocab 1 {}\n",
            "# latens vocab 1 [{},{}]\na\n",
        ];
        for text in texts {
            fs::write(&path, text).unwrap();
            let message = Lexicon::open(&path).unwrap_err().to_string();
            let expected = format!("`{}` is not a vocabulary file: ", path.display());
            assert!(message.starts_with(&expected), "{text:?}: {message}");
        }
        let absent = Lexicon::open(folder.path().join("absent")).unwrap_err();
        assert!(matches!(absent, ReadError::Io { .. }));
    }
}
