//! The model as any [`Model`], and its file.

use crate::distribution::Distribution;
use crate::fitted::encoder::Features;
use crate::fitted::model::Fhmm;
use crate::inference::smoother::Smoother;
use crate::params::FhmmParams;
use crate::shape::Shape;
use crate::word_rows::{MISSING, WordRows};
use latens_corpus::{Lexicon, WordId};
use latens_model::{FileError, Model, ModelFile, ModelWriter, TokenEncoder};
use latens_store::StringTable;
use serde_json::{Map, Value};
use std::path::Path;

impl Model for Fhmm {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a factorial hidden Markov model"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        let Distribution { shape, base, start, transition, theta } = self.smoother.distribution();
        let Shape { n_layers, n_states, n_words } = *shape;
        let signatures: StringTable = self.rows.signatures.iter().collect();
        let ends: Vec<u64> = signatures.ends().collect();
        let letters = signatures.letters().as_bytes().to_vec();
        ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .array("rows", &[self.rows.of_word.len()], &self.rows.of_word)
            .owned_array("signatures.ends", &[ends.len()], ends)
            .owned_array("signatures.letters", &[letters.len()], letters)
            .array("base", &[n_words], base)
            .array("start", &[n_layers, n_states], start)
            .array("transition", &[n_layers, n_states, n_states], transition)
            .array("scores", &[n_words, n_layers, n_states], theta)
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(self)
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        Features::ALL.map(|(kind, _)| kind).to_vec()
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        let (_, features) = *Features::ALL.iter().find(|(name, _)| *name == kind)?;
        Some(Box::new(Fhmm::encoder(self, features)))
    }

    fn word_id(&self, word: &str) -> WordId {
        Fhmm::word_id(self, word)
    }
}

impl Fhmm {
    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Fhmm, FileError> {
        Fhmm::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Fhmm, FileError> {
        file.expect_kind(Self::KIND)?;
        let params = file.parameters::<FhmmParams>()?;
        let (lexicon, facts) = (file.lexicon()?, file.header().training.clone());
        let (n_layers, n_states) = (params.n_layers, params.n_states);
        let n_words = file.vector::<f32>("base")?.len();
        let shape = Shape { n_layers, n_states, n_words };
        let rows = read_rows(file, lexicon.vocab.len(), n_words)?;
        let finite = |name: &str, shape: &[usize]| -> Result<Vec<f32>, FileError> {
            Ok(file.finite_array::<f32>(name, shape)?.to_vec())
        };
        let distribution = Distribution {
            shape,
            base: finite("base", &[n_words])?,
            start: finite("start", &[n_layers, n_states])?,
            transition: finite("transition", &[n_layers, n_states, n_states])?,
            theta: finite("scores", &[n_words, n_layers, n_states])?,
        };
        let smoother = Smoother::new(distribution, params.chosen_inference());
        if let Some(problem) = smoother.problem() {
            return Err(file.invalid(problem));
        }
        Ok(Fhmm { params, lexicon, facts, rows, smoother })
    }
}

fn read_rows(file: &ModelFile, n_vocab: usize, n_rows: usize) -> Result<WordRows, FileError> {
    let of_word = file.array::<u32>("rows", &[n_vocab])?.to_vec();
    let (letters, ends) =
        (file.vector::<u8>("signatures.letters")?, file.vector::<u64>("signatures.ends")?);
    let signatures = StringTable::from_arrays(&letters, &ends)
        .ok_or_else(|| file.invalid("the arrays of signatures are inconsistent"))?;
    let signatures: Vec<String> = signatures.iter().map(str::to_owned).collect();
    let in_order = signatures.windows(2).all(|pair| pair[0] < pair[1]);
    let known = of_word.iter().all(|&row| row == MISSING || (row as usize) < n_rows);
    if !in_order || !known || signatures.len() > n_rows || n_rows == 0 {
        return Err(file.invalid("the rows of words are inconsistent"));
    }
    Ok(WordRows { of_word, signatures, n_rows })
}
