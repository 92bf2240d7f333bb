use crate::learn::trainer::{from_rows, to_rows};
use crate::linalg::panel::Panel;
use crate::model::Lds;
use crate::params::LdsParams;
use crate::system::canonical::Canonical;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use std::path::Path;

impl Lds {
    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let (n, dim) = (self.mu.len(), self.dim());
        let (transition, words) = (to_rows(&self.dynamics.a), self.words.to_rows());
        let (filtered, smoothed) = (to_rows(&self.filtered_moment), to_rows(&self.smoothed_moment));
        ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .array("transition", &[dim, dim], &transition)
            .array("words", &[n, dim], &words)
            .array("word_probs", &[n], &self.mu)
            .array("word_counts", &[n], &self.counts)
            .array("filtered_moment", &[dim, dim], &filtered)
            .array("smoothed_moment", &[dim, dim], &smoothed)
            .save(path)
    }

    /// Opens a model file.
    pub fn open(path: &Path) -> Result<Lds, FileError> {
        Lds::from_file(&ModelFile::open(path)?)
    }

    /// The model in an open file.
    pub fn from_file(file: &ModelFile) -> Result<Lds, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<LdsParams>()?, file.lexicon()?);
        let (n, dim) = (lexicon.vocab.len(), params.dim);
        let square = |name| -> Result<_, FileError> {
            Ok(from_rows(&file.finite_array::<f64>(name, &[dim, dim])?, dim))
        };
        let mu = file.finite_array::<f64>("word_probs", &[n])?.to_vec();
        // Below this a word's vector could not be whitened in single precision.
        if mu.iter().any(|&mu| !(1e-30..=1.0).contains(&mu)) {
            return Err(file.invalid("a word has no probability"));
        }
        let counts = file.array::<u64>("word_counts", &[n])?.to_vec();
        let words = file.finite_array::<f32>("words", &[n, dim])?;
        let model = Canonical::restored(square("transition")?, Panel::from_rows(n, dim, &words));
        let moments = [square("filtered_moment")?, square("smoothed_moment")?];
        let facts = file.header().training.clone();
        Lds::new(params, lexicon, facts, (mu, counts), model, moments)
            .map_err(|error| file.invalid(error))
    }
}
