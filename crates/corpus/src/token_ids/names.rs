//! The names of token ids, from the `tokenizer.json` of Hugging Face.

use crate::error::ReadError;
use crate::words::vocab::{EOS, UNK};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Names of tokens that end a text, in the order in which they are looked for.
const ENDS: [&str; 6] =
    ["<|endoftext|>", "</s>", "<|end_of_text|>", "<|im_end|>", "<eos>", "[SEP]"];

/// Names of tokens that stand for unknown text.
const UNKNOWN: [&str; 3] = ["<unk>", "[UNK]", "<|unk|>"];

/// The names of token ids.
///
/// One token ends a text. Other special tokens, such as padding, are not part of a text. Pieces of words and bytes are words
/// like any other.
#[derive(Clone, Debug)]
pub struct TokenNames {
    tokens: Arc<HashMap<u32, Token>>,
    end: Option<u32>,
    fingerprint: u64,
}

/// What a token id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// Special, and not part of a text.
    Special,
}

/// The parts of `tokenizer.json` that are used.
#[derive(Deserialize)]
struct TokenizerFile {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(Deserialize)]
struct Model {
    vocab: FileVocab,
}

/// The vocabulary of BPE, WordPiece and WordLevel is an object; that of Unigram a list of names with scores.
#[derive(Deserialize)]
#[serde(untagged)]
enum FileVocab {
    Ids(HashMap<String, u32>),
    Scores(Vec<(String, f64)>),
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

impl TokenNames {
    /// Reads a `tokenizer.json`. `end` names the token that ends a text; without it, that token is the first of the usual ones
    /// that the tokenizer has.
    pub fn open(path: impl AsRef<Path>, end: Option<&str>) -> Result<TokenNames, ReadError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|source| ReadError::Io { file: file.clone(), source })?;
        TokenNames::from_json(&text, end)
            .map_err(|problem| ReadError::NotATokenizer { file, problem })
    }

    /// Reads the text of a `tokenizer.json`.
    fn from_json(text: &str, end: Option<&str>) -> Result<TokenNames, String> {
        let file: TokenizerFile = serde_json::from_str(text).map_err(|error| {
            format!("expected `model.vocab` and `added_tokens` of a `tokenizer.json` ({error})")
        })?;
        let ids: Vec<(String, u32)> = match file.model.vocab {
            FileVocab::Ids(ids) => ids.into_iter().collect(),
            FileVocab::Scores(names) => names.into_iter().map(|(name, _)| name).zip(0..).collect(),
        };
        let mut tokens = HashMap::new();
        let mut id_of = HashMap::new();
        for (name, id) in ids {
            if tokens.insert(id, word(&name)).is_some() {
                return Err(format!("two tokens have the id {id}"));
            }
            id_of.insert(name, id);
        }
        for AddedToken { id, content, special } in file.added_tokens {
            let is_special = special && !UNKNOWN.contains(&content.as_str());
            tokens.insert(id, if is_special { Token::Special } else { word(&content) });
            id_of.insert(content, id);
        }
        let end = match end {
            None => ENDS.iter().find_map(|&name| id_of.get(name).copied()),
            Some(name) => {
                Some(*id_of.get(name).ok_or_else(|| format!("it has no token `{name}`"))?)
            }
        };
        let fingerprint = xxh3_64(text.as_bytes()) ^ end.map_or(0, |id| u64::from(id) + 1);
        Ok(TokenNames { tokens: Arc::new(tokens), end, fingerprint })
    }

    /// A hash of the file and the end token.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// What an id stands for; `None` if the tokenizer does not know it.
    pub(crate) fn get(&self, id: u32) -> Option<&Token> {
        self.tokens.get(&id)
    }

    /// Whether an id ends a text.
    pub(crate) fn is_end(&self, id: u32) -> bool {
        self.end == Some(id)
    }
}

/// A token as a word. Words cannot be empty or contain line breaks, and two names have a meaning of their own.
fn word(name: &str) -> Token {
    let is_impossible = name.is_empty() || name.contains(['\t', '\n', '\r', '\0']) || name == EOS;
    let is_unknown = is_impossible || UNKNOWN.contains(&name);
    Token::Word(if is_unknown { UNK } else { name }.to_owned())
}
