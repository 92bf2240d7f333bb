use crate::linalg::dense::{square_from_row_major, to_row_major};
use crate::linalg::panel::Panel;
use crate::model::{Lds, LdsParts};
use crate::params::LdsParams;
use crate::system::canonical::Canonical;
use latens_math::linalg::Mat;
use latens_model::{FileError, ModelFile, ModelWriter};
use std::path::Path;

impl Lds {
    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.file_contents().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Lds, FileError> {
        Lds::from_file(&ModelFile::open(path)?)
    }

    /// The contents of the model file.
    pub(crate) fn file_contents(&self) -> ModelWriter<'_> {
        let (n, dim) = (self.mu.len(), self.dim());
        let rows = |x: &Mat<f64>| to_row_major::<f64>(x);
        ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .owned_array("transition", &[dim, dim], rows(&self.dynamics.a))
            .owned_array("words", &[n, dim], self.words.to_rows())
            .array("word_probs", &[n], &self.mu)
            .array("word_counts", &[n], &self.counts)
            .owned_array("filtered_moment", &[dim, dim], rows(&self.filtered_moment))
            .owned_array("smoothed_moment", &[dim, dim], rows(&self.smoothed_moment))
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Lds, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<LdsParams>()?, file.lexicon()?);
        let (n, dim) = (lexicon.vocab.len(), params.dim);
        let square = |name| -> Result<_, FileError> {
            Ok(square_from_row_major(&file.finite_array::<f64>(name, &[dim, dim])?, dim))
        };
        let mu = file.finite_array::<f64>("word_probs", &[n])?.to_vec();
        // Below 1e-30 the vector of a word could not be whitened in single precision.
        if let Some(word) = mu.iter().position(|mu| !(1e-30..=1.0).contains(mu)) {
            let problem = format!("the probability of word {word} is {}", mu[word]);
            return Err(file.invalid(format!("{problem}, must be in 1e-30..=1")));
        }
        let counts = file.array::<u64>("word_counts", &[n])?.to_vec();
        let words = file.finite_array::<f32>("words", &[n, dim])?;
        let system = Canonical::restored(square("transition")?, Panel::from_rows(n, dim, &words));
        if !system.is_contraction().map_err(|error| file.invalid(error))? {
            return Err(file.invalid("a singular value of `transition` or `words` is above 1"));
        }
        let lds = Lds::new(LdsParts {
            filtered_moment: square("filtered_moment")?,
            smoothed_moment: square("smoothed_moment")?,
            facts: file.header().training.clone(),
            params,
            lexicon,
            mu,
            counts,
            system,
        })
        .map_err(|error| file.invalid(error))?;
        if lds.step_matrices.are_moderate() {
            Ok(lds)
        } else {
            Err(file.invalid("its moments are so extreme that states overflow"))
        }
    }
}
