pub(crate) mod tagger;
pub(crate) mod word_scores;
pub(crate) mod file;
