use crate::model::Neural;
use crate::network::definition::Network;
use crate::params::{Architecture, NeuralParams};
use latens_model::{FileError, Model, ModelFile};
use std::path::Path;

impl Neural {
    /// The kinds of these models in model files.
    pub const KINDS: [&str; 3] = ["ff", "rnn", "lstm"];

    /// Writes the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Neural, FileError> {
        Neural::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Neural, FileError> {
        let kinds = [Architecture::Ff, Architecture::Rnn, Architecture::Lstm];
        let kind = kinds.into_iter().map(Architecture::kind).find(|kind| *kind == file.kind());
        file.expect_kind(kind.unwrap_or(Architecture::Lstm.kind()))?;
        let (params, lexicon) = (file.parameters::<NeuralParams>()?, file.lexicon()?);
        if params.architecture.kind() != file.kind() {
            return Err(file.invalid("its parameters belong to another kind of model"));
        }
        let network = Network::new(&params, lexicon.vocab.len());
        let mut weights = vec![0.0; network.layout.len()];
        for (name, shape, range) in network.layout.entries() {
            weights[range].copy_from_slice(&file.finite_array::<f32>(name, shape)?);
        }
        if !network.is_bounded(&weights) {
            return Err(file.invalid("its weights are so large that probabilities overflow"));
        }
        let facts = file.header().training.clone();
        Ok(Neural { params, lexicon, facts, network, weights })
    }
}
