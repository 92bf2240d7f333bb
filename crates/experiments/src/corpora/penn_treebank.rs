//! The Penn Treebank as T. Mikolov prepared it for language models.

use anyhow::{Context, Result};
use latens::corpus::{Corpus, Inputs, Preprocessing, Sentences, VocabLimits};
use std::path::Path;

/// Its three parts, with the words of the first.
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
                .context("the folder of `--data` must have the folder `ptb-lm`")?;
        let valid = train.lexicon.read(&file("valid"))?;
        let test = train.lexicon.read(&file("test"))?;
        Ok(PennTreebank { train, valid, test })
    }
}
