use crate::model::Brown;
use crate::params::BrownParams;
use latens_model::{FileError, ModelFile, ModelWriter, WordClusters};
use latens_store::StringTable;
use std::path::Path;

/// Marks a word without a cluster in the array `clusters`.
const NO_CLUSTER: u32 = u32::MAX;

impl Brown {
    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.file_contents().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Brown, FileError> {
        Brown::from_file(&ModelFile::open(path)?)
    }

    /// The contents of the model file.
    pub(crate) fn file_contents(&self) -> ModelWriter<'_> {
        let of_word = self.clusters().of_word().iter();
        let of_word: Vec<u32> = of_word.map(|cluster| cluster.unwrap_or(NO_CLUSTER)).collect();
        let paths: StringTable = self.clusters().paths().iter().collect();
        let ends: Vec<u64> = paths.ends().collect();
        let letters = paths.letters().as_bytes().to_vec();
        ModelWriter::new(Self::KIND, self.fitted_with())
            .lexicon(self.lexicon())
            .facts(self.facts())
            .owned_array("clusters", &[of_word.len()], of_word)
            .owned_array("paths.ends", &[ends.len()], ends)
            .owned_array("paths.letters", &[letters.len()], letters)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Brown, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<BrownParams>()?, file.lexicon()?);
        let of_word = file.array::<u32>("clusters", &[lexicon.vocab.len()])?;
        let of_word = of_word.iter().map(|&cluster| (cluster != NO_CLUSTER).then_some(cluster));
        let (ends, letters) = (file.vector("paths.ends")?, file.vector("paths.letters")?);
        let paths = StringTable::from_arrays(&letters, &ends)
            .ok_or_else(|| file.invalid("`paths.ends` and `paths.letters` do not match"))?;
        let paths = paths.iter().map(str::to_owned).collect();
        let clusters =
            WordClusters::new(of_word.collect(), paths).map_err(|error| file.invalid(error))?;
        Ok(Brown::new(params, lexicon, clusters, file.header().training.clone()))
    }
}
