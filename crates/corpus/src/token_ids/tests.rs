//! Arrays of token ids in files.

use super::names::TokenNames;
use crate::corpus::Corpus;
use crate::error::ReadError;
use crate::words::word_id::WordId;
use std::fs;
use std::path::{Path, PathBuf};

const BPE: &str = r#"{
  "model": {"type": "BPE", "vocab": {"<|endoftext|>": 0, "Ġthe": 1, "Ġd": 2, "og": 3, "<unk>": 4, "\n": 5}},
  "added_tokens": [
    {"id": 0, "content": "<|endoftext|>", "special": true},
    {"id": 6, "content": "<pad>", "special": true},
    {"id": 7, "content": "<tool>", "special": false}
  ]
}"#;

/// A `.npy` file.
fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
}

fn int16(values: &[i16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    pub(super) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(super) fn names(&self, end: Option<&str>) -> TokenNames {
        TokenNames::open(self.write("tokenizer.json", BPE.as_bytes()), end).unwrap()
    }
}

pub(super) fn sentences(corpus: &Corpus) -> Vec<String> {
    let vocab = &corpus.lexicon.vocab;
    let text = |sentence: &[WordId]| {
        let words: Vec<&str> = sentence.iter().map(|&word| vocab.word(word)).collect();
        words.join(" ")
    };
    corpus.sentences.iter().map(text).collect()
}

pub(super) fn read(path: &Path, names: TokenNames) -> Result<Corpus, ReadError> {
    Corpus::reader().token_names(names).read_file(path)
}

#[test]
fn sequences_end_with_rows_and_with_the_end_token() {
    let folder = Folder::new();
    // A token at the beginning that also ends texts, padding, labels that are left out, and two texts in a row.
    let rows = [0, 1, 2, 3, 0, 6, 3, 0, 4, -100, 1, 5, 2, 3, 7, 6];
    let path = folder.write("ids.npy", &npy("<i2", "(2, 8)", &int16(&rows)));
    let corpus = read(&path, folder.names(None)).unwrap();
    assert_eq!(
        sentences(&corpus),
        ["Ġthe Ġd og <eos>", "og <eos>", "<unk> Ġthe <unk> Ġd og <tool> <eos>"]
    );
    let flat = folder.write("flat.npy", &npy("|u1", "(5,)", &[1, 3, 0, 3, 1]));
    let corpus = read(&flat, folder.names(None)).unwrap();
    assert_eq!(sentences(&corpus), ["Ġthe og <eos>", "og Ġthe <eos>"]);
    let corpus = read(&flat, folder.names(Some("og"))).unwrap();
    assert_eq!(sentences(&corpus), ["Ġthe <eos>", "Ġthe <eos>"]);
}

#[test]
fn all_types_of_integers_are_read() {
    let folder = Folder::new();
    for (descr, size) in [
        ("|u1", 1),
        ("|i1", 1),
        ("<u2", 2),
        ("<i2", 2),
        ("<u4", 4),
        ("<i4", 4),
        ("<u8", 8),
        ("<i8", 8),
    ] {
        let bytes: Vec<u8> =
            [1u64, 3].iter().flat_map(|id| id.to_le_bytes()[..size].to_vec()).collect();
        let path = folder.write("ids.npy", &npy(descr, "(2,)", &bytes));
        assert_eq!(sentences(&read(&path, folder.names(None)).unwrap()), ["Ġthe og <eos>"]);
    }
}

#[test]
fn archives_are_read_array_by_array() {
    use std::io::Write;
    let folder = Folder::new();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    // Extensions are recognized in any case.
    for (name, ids) in [("b.npy", [1, 3]), ("notes.txt", [9, 9]), ("a.npy", [3, 2])] {
        zip.start_file(name, stored).unwrap();
        zip.write_all(&npy("<i2", "(1, 2)", &int16(&ids))).unwrap();
    }
    let path = folder.write("IDS.NPZ", &zip.finish().unwrap().into_inner());
    let corpus = read(&path, folder.names(None)).unwrap();
    assert_eq!(sentences(&corpus), ["Ġthe og <eos>", "og Ġd <eos>"]);
}

#[test]
fn vocabularies_of_unigram_tokenizers_are_lists() {
    let folder = Folder::new();
    let unigram = r#"{"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁the", -1.5], ["</s>", -2]]}}"#;
    let names = TokenNames::open(folder.write("t.json", unigram.as_bytes()), None).unwrap();
    let path = folder.write("ids.npy", &npy("|u1", "(4,)", &[1, 0, 2, 1]));
    assert_eq!(sentences(&read(&path, names).unwrap()), ["▁the <unk> <eos>", "▁the <eos>"]);
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new();
    let problem = |bytes: &[u8]| {
        let error = read(&folder.write("ids.npy", bytes), folder.names(None)).unwrap_err();
        format!(
            "{error}: {}",
            std::error::Error::source(&error).map_or(String::new(), |e| e.to_string())
        )
    };
    for (bytes, expected) in [
        (npy("<f4", "(2,)", &[0; 8]), "its elements are `<f4`, expected little-endian integers"),
        (npy("<i2", "(2, 2, 2)", &[0; 16]), "it has 3 dimensions"),
        (npy("<i2", "(3,)", &int16(&[1, 2])), "it is truncated"),
        (npy("<i2", "(1,)", &int16(&[9])), "the tokenizer has no token with the id 9"),
        (npy("<i2", "(18446744073709551615, 2)", &[]), "its shape is too large"),
        (npy(">i4", "(2,)", &[0; 8]), "expected little-endian integers"),
        (b"hello".to_vec(), "it is not a `.npy` file"),
    ] {
        assert!(problem(&bytes).contains(expected), "{}", problem(&bytes));
    }
    let path = folder.write("ids.npy", &npy("|u1", "(1,)", &[1]));
    let error = Corpus::reader().read_file(&path).unwrap_err();
    assert!(matches!(error, ReadError::NoTokenNames { .. }), "{error}");
    let error = TokenNames::open(folder.write("t.json", b"{}"), None).unwrap_err();
    assert!(error.to_string().contains("is not a tokenizer"), "{error}");
    let error = TokenNames::open(folder.0.path().join("tokenizer.json"), Some("nope"));
    assert!(error.unwrap_err().to_string().contains("it has no token `nope`"));
    // A sequence without an end has a limit, too.
    let long = npy("|u1", "(100000,)", &[1; 100_000]);
    let reader = Corpus::reader().token_names(folder.names(None)).max_line(1000);
    let error = reader.read_file(folder.write("long.npy", &long)).unwrap_err();
    assert!(matches!(error, ReadError::TooLong { .. }), "{error}");
}

#[test]
fn names_are_not_normalized_and_ids_are_unique() {
    let folder = Folder::new();
    let tokenizer = "{\"model\": {\"vocab\": {\"e\u{301}\": 0, \"\u{e9}\": 1}}}";
    let names = TokenNames::open(folder.write("t.json", tokenizer.as_bytes()), None).unwrap();
    let path = folder.write("ids.npy", &npy("|u1", "(2,)", &[0, 1]));
    assert_eq!(sentences(&read(&path, names).unwrap()), ["e\u{301} \u{e9} <eos>"]);
    let twice = r#"{"model": {"vocab": {"a": 0, "b": 0}}}"#;
    let error = TokenNames::open(folder.write("t.json", twice.as_bytes()), None).unwrap_err();
    assert!(error.to_string().contains("two tokens have the id 0"), "{error}");
}

#[test]
fn rows_without_elements_and_columns_before_rows_are_refused() {
    let folder = Folder::new();
    let empty = folder.write("empty.npy", &npy("|u1", "(0, 4)", &[]));
    let error = read(&empty, folder.names(None)).unwrap_err();
    assert!(matches!(error, ReadError::Empty { .. } | ReadError::NoWords { .. }), "{error}");
    let mut bytes = npy("|u1", "(2, 2)", &[1; 4]);
    let at = bytes.windows(5).position(|part| part == b"False").unwrap();
    bytes[at..at + 5].copy_from_slice(b"True ");
    let error = read(&folder.write("f.npy", &bytes), folder.names(None)).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("column-major"), "{source}");
}
