use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A limit on the number of documents that contain a word.
///
/// As text and in JSON, an integer is a number of documents and a decimal number a share: `5`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DocumentFrequency {
    /// A number of documents.
    Count(u64),
    /// A share of all documents, between 0 and 1.
    Share(f64),
}

impl DocumentFrequency {
    /// No lower limit: a word may be in a single document.
    pub const ONE: DocumentFrequency = DocumentFrequency::Count(1);
    /// No upper limit: a word may be in all documents.
    pub const ALL: DocumentFrequency = DocumentFrequency::Share(1.0);

    /// The limit as a number of documents, out of `n_documents`.
    pub(crate) fn of(self, n_documents: u64) -> f64 {
        match self {
            DocumentFrequency::Count(count) => count as f64,
            DocumentFrequency::Share(share) => share * n_documents as f64,
        }
    }
}

impl FromStr for DocumentFrequency {
    type Err = String;

    fn from_str(text: &str) -> Result<DocumentFrequency, String> {
        if let Ok(count) = text.parse() {
            return Ok(DocumentFrequency::Count(count));
        }
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(DocumentFrequency::Share(share)),
            _ => Err("expected a number of documents, or a fraction from 0.0 to 1.0 with a decimal point".into()),
        }
    }
}

impl fmt::Display for DocumentFrequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocumentFrequency::Count(count) => write!(f, "{count}"),
            DocumentFrequency::Share(share) => write!(f, "{share:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_counts_and_decimal_numbers_are_shares() {
        let parsed = ["5", "1", "1.0", "0.25"].map(|text| text.parse::<DocumentFrequency>());
        let expected = [
            DocumentFrequency::Count(5),
            DocumentFrequency::ONE,
            DocumentFrequency::ALL,
            DocumentFrequency::Share(0.25),
        ];
        assert_eq!(parsed, expected.map(Ok));
        for text in ["1.5", "-1", "-0.1", "nan", "x", ""] {
            assert!(text.parse::<DocumentFrequency>().is_err(), "{text}");
        }
        for limit in expected {
            assert_eq!(limit.to_string().parse(), Ok(limit));
            let json = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<DocumentFrequency>(&json).unwrap(), limit);
        }
    }
}
