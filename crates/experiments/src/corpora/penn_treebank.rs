//! The Penn Treebank, as preprocessed by T. Mikolov for language models.

use anyhow::{Context, Result};
use latens::corpus::{Corpus, Inputs, Preprocessing, Sentences, VocabLimits};
use std::path::Path;

/// The three parts, encoded with the vocabulary of the training text.
pub(crate) struct PennTreebank {
    pub(crate) train: Corpus,
    pub(crate) valid: Sentences,
    pub(crate) test: Sentences,
}

impl PennTreebank {
    pub(crate) fn read(data: &Path) -> Result<PennTreebank> {
        let file = |part: &str| Inputs::new([data.join(format!("ptb-lm/ptb.{part}.txt"))]);
        let train =
            Corpus::read(&file("train"), &Preprocessing::default(), &VocabLimits::default())
                .context("the folder of `--data` must contain the folder `ptb-lm`")?;
        let valid = train.lexicon.read(&file("valid"))?;
        let test = train.lexicon.read(&file("test"))?;
        Ok(PennTreebank { train, valid, test })
    }
}
