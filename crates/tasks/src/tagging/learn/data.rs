//! Training data of a tagger.

use crate::tagging::features::encoder::Encoder;
use latens_corpus::{Preprocessing, TaggedSentences};

/// Training data of a tagger.
pub(crate) struct TaggedTraining<'a> {
    /// Tagged text.
    pub(crate) text: &'a TaggedSentences,
    /// Column of the tags, counted from 0.
    pub(crate) column: usize,
    /// Preprocessing that splits plain text into words like those of the tagged text.
    pub(crate) preprocessing: Preprocessing,
}

/// Additional inputs of a tagger.
///
/// ```
/// use latens_corpus::{Inputs, TaggedSentences};
/// use latens_model::{Fit, Tagger};
/// use latens_tasks::tagging::{FeatureTagger, TaggerInputs};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("dogs.conll");
/// # std::fs::write(&path, "the D O\ndog N B-ANIMAL\nbarks V O\n")?;
/// let text = TaggedSentences::read(&Inputs::new([path]))?;
/// let spans = FeatureTagger::params().pos_column(1).with(TaggerInputs::default().column(2)).fit(&text)?;
/// assert_eq!(spans.tags(), ["O", "B-ANIMAL", "I-ANIMAL"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct TaggerInputs {
    /// Column of the tags, counted from 0. The default is 1, the column after the words.
    pub column: usize,
    /// Preprocessing that splits plain text into words like those of the tagged text.
    pub preprocessing: Preprocessing,
    /// Encoders, which become part of the tagger.
    pub encoders: Vec<Encoder>,
    /// Development set, with the same columns. Training ends when the score on it no longer improves, and the weights
    /// with the best score are kept: the F1 of spans, or the accuracy.
    pub dev: Option<TaggedSentences>,
    /// Number of consecutive evaluations on the development set without a better score after which training stops; 0
    /// never stops early. The tagger is evaluated every 10 iterations of L-BFGS, or after every epoch of a perceptron.
    /// Default: 3.
    pub patience: usize,
}

impl Default for TaggerInputs {
    fn default() -> TaggerInputs {
        let preprocessing = Preprocessing::default();
        TaggerInputs { column: 1, preprocessing, encoders: Vec::new(), dev: None, patience: 3 }
    }
}

impl TaggerInputs {
    /// Sets the column of the tags, counted from 0.
    #[must_use]
    pub fn column(mut self, column: usize) -> Self {
        self.column = column;
        self
    }

    /// Sets the preprocessing of plain text.
    #[must_use]
    pub fn preprocessing(mut self, preprocessing: Preprocessing) -> Self {
        self.preprocessing = preprocessing;
        self
    }

    /// Sets the development set.
    #[must_use]
    pub fn dev(mut self, dev: TaggedSentences) -> Self {
        self.dev = Some(dev);
        self
    }

    /// Adds an encoder.
    #[must_use]
    pub fn encoder(mut self, encoder: Encoder) -> Self {
        self.encoders.push(encoder);
        self
    }
}
