//! Models that take long to train, kept in the cache folder.
//!
//! Each finished model is saved with its measurements. During training a checkpoint is saved every few epochs, so that an
//! interrupted run can resume.

use crate::cache::cache_folder;
use anyhow::{Context, Result};
use latens::corpus::{Corpus, Sentences};
use latens::hmm::{Hmm, HmmInputs, HmmParams, Teacher};
use latens::model::{
    Checkpoint, CheckpointPace, Device, Fit, FitError, Params, Progress, WordClusters,
    data_fingerprint, fingerprint,
};
use latens::neural::{Neural, NeuralParams};
use latens::store::write_atomically;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Whether a run uses the models, measurements and checkpoints of earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Reuse them.
    Reuse,
    /// Ignore and overwrite them.
    Ignore,
}

/// What a model is fitted to.
#[derive(Clone, Copy)]
pub(crate) struct Training<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) valid: &'a Sentences,
    pub(crate) clusters: Option<&'a WordClusters>,
    /// A language model that draws text besides the corpus.
    pub(crate) teacher: Option<&'a Teacher<'a>>,
}

/// The folder of kept models.
pub(crate) struct KeptModels {
    folder: PathBuf,
    earlier: Earlier,
    /// Device for training. The CPU is used if the device is unavailable or does not support the model.
    device: Device,
    /// Why the last model was trained on the CPU. Reported once.
    why_cpu: RefCell<String>,
}

impl KeptModels {
    pub(crate) fn new(earlier: Earlier) -> KeptModels {
        KeptModels {
            folder: cache_folder(),
            earlier,
            device: Device::Cuda,
            why_cpu: RefCell::default(),
        }
    }

    /// Returns named measurements of a model: those of an earlier run, or else of the model, which is fitted if needed.
    pub(crate) fn figures<const N: usize>(
        &self,
        (params, training): (&HmmParams, &Training<'_>),
        names: [&str; N],
        note: &mut dyn FnMut(&str),
        measure: impl FnOnce(&Hmm, &mut dyn FnMut(&str)) -> [f64; N],
    ) -> Result<[f64; N]> {
        let path = self.path(params, training)?.with_extension("json");
        if let (Earlier::Reuse, Some(figures)) = (self.earlier, read_figures(&path, names)) {
            note(&format!("  reusing `{}`", path.display()));
            return Ok(figures);
        }
        // Remove measurements of an earlier model: an interrupted run must not leave them beside the new model.
        let _ = fs::remove_file(&path);
        let figures = measure(&self.hmm(params, training, note)?, note);
        let named: BTreeMap<_, _> = names.into_iter().zip(figures).collect();
        let json = serde_json::to_string(&named)?;
        write_atomically(&path, |out| out.write_all(json.as_bytes()))?;
        Ok(figures)
    }

    /// Path of a model.
    fn path(&self, params: &HmmParams, training: &Training<'_>) -> Result<PathBuf> {
        params.check()?;
        Ok(self.folder.join(format!("{:016x}.hmm", hash(params, training)?)))
    }

    /// Opens a kept model, or fits it, on a CUDA device if possible.
    pub(crate) fn hmm(
        &self,
        params: &HmmParams,
        training: &Training<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Hmm> {
        let path = self.path(params, training)?;
        if let Some(hmm) = self.reused(&path, |path| Hmm::open(path).ok(), note) {
            return Ok(hmm);
        }
        let mut inputs = HmmInputs::default();
        (inputs.clusters, inputs.teacher) = (training.clusters, training.teacher);
        let hmm = self.fitted(&path, |run| {
            run.fit((params, params.epochs), inputs, (training.corpus, training.valid), note)
        })?;
        hmm.save(&path).with_context(|| self.keeping())?;
        let _ = fs::remove_file(checkpoint_of(&path));
        Ok(hmm)
    }

    /// Opens a kept network, or fits it, on a CUDA device if possible.
    pub(crate) fn network(
        &self,
        params: &NeuralParams,
        (corpus, valid): (&Corpus, &Sentences),
        note: &mut dyn FnMut(&str),
    ) -> Result<Neural> {
        params.check()?;
        let training = Training { corpus, valid, clusters: None, teacher: None };
        let name = format!("{:016x}.{}", hash(params, &training)?, params.architecture.kind());
        let path = self.folder.join(name);
        if let Some(network) = self.reused(&path, |path| Neural::open(path).ok(), note) {
            return Ok(network);
        }
        let network = self.fitted(&path, |run| {
            run.fit((params, params.epochs), Default::default(), (corpus, valid), note)
        })?;
        network.save(&path).with_context(|| self.keeping())?;
        let _ = fs::remove_file(checkpoint_of(&path));
        Ok(network)
    }

    fn keeping(&self) -> String {
        format!("cannot keep models in `{}`", self.folder.display())
    }

    /// A model of an earlier run, if it is to be reused.
    fn reused<M>(
        &self,
        path: &Path,
        open: impl Fn(&Path) -> Option<M>,
        note: &mut dyn FnMut(&str),
    ) -> Option<M> {
        let model = open(path).filter(|_| self.earlier == Earlier::Reuse)?;
        note(&format!("  reusing `{}`", path.display()));
        Some(model)
    }

    /// Calls `fit` for the device, and for the CPU if the device is unavailable or does not support this model.
    fn fitted<M>(
        &self,
        path: &Path,
        mut fit: impl FnMut(&KeptRun<'_>) -> Result<M, FitError>,
    ) -> Result<M> {
        fs::create_dir_all(&self.folder).with_context(|| self.keeping())?;
        let checkpoint = checkpoint_of(path);
        let begun = match self.earlier {
            Earlier::Reuse => Checkpoint::open(&checkpoint).ok(),
            Earlier::Ignore => None,
        };
        let run = |device, why_cpu| KeptRun {
            device,
            begun: begun.as_ref(),
            checkpoint: &checkpoint,
            why_cpu,
        };
        match fit(&run(self.device, None)) {
            Err(cause @ (FitError::Device { .. } | FitError::Params(_))) => {
                let cause = cause.to_string();
                let is_new = self.why_cpu.replace(cause.clone()) != cause;
                Ok(fit(&run(Device::Cpu, is_new.then_some(cause)))?)
            }
            fitted => Ok(fitted?),
        }
    }
}

/// Path of the checkpoint of a model.
fn checkpoint_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// A training run that saves checkpoints.
struct KeptRun<'a> {
    device: Device,
    begun: Option<&'a Checkpoint>,
    checkpoint: &'a Path,
    /// Why it is on the CPU, if that is to be told.
    why_cpu: Option<String>,
}

/// Measurements of an earlier run, if all names are there.
fn read_figures<const N: usize>(path: &Path, names: [&str; N]) -> Option<[f64; N]> {
    let figures: BTreeMap<String, f64> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let known = names.into_iter().filter_map(|name| figures.get(name).copied());
    known.collect::<Vec<_>>().try_into().ok()
}

/// Hash of parameters and training data.
fn hash(params: &impl Serialize, training: &Training<'_>) -> Result<u64> {
    let vocab = &training.corpus.lexicon.vocab;
    let clusters = training.clusters.map(|clusters| format!("{clusters:?}")).unwrap_or_default();
    let words = serde_json::to_string(params)? + &clusters;
    let texts = [&training.corpus.sentences, training.valid];
    let texts = texts.into_iter().map(|text| data_fingerprint(vocab, text));
    let texts = texts.chain(training.teacher.map(Teacher::fingerprint));
    let numbers = texts.flat_map(|hash| [hash as u32, (hash >> 32) as u32]);
    Ok(fingerprint(numbers.chain(words.bytes().map(u32::from))))
}

impl KeptRun<'_> {
    fn fit<P: Fit<Data = Corpus, Error = FitError> + Clone>(
        &self,
        (params, n_epochs): (&P, usize),
        inputs: P::Inputs<'_>,
        (corpus, valid): (&Corpus, &Sentences),
        note: &mut dyn FnMut(&str),
    ) -> Result<P::Model, FitError> {
        if let Some(cause) = &self.why_cpu {
            note(&format!("  training on the CPU: {cause}"));
        }
        let path = self.checkpoint;
        let (mut unsaved, mut pace) = (None, CheckpointPace::new(Instant::now()));
        let watch = |progress: &Progress<'_>| {
            if let Some(epoch) = progress.iteration.filter(|_| !progress.metrics.is_empty()) {
                let metrics =
                    progress.metrics.iter().map(|(name, value)| format!("{name} {value:.1}"));
                let metrics = metrics.collect::<Vec<_>>().join(", ");
                note(&format!("  epoch {epoch} of {n_epochs}: {metrics}"));
            }
            let Some(make) = progress.checkpoint.filter(|_| pace.is_due(progress)) else {
                return ControlFlow::Continue(());
            };
            match pace.save(|| make()?.save(path).map_err(FitError::step("save a checkpoint"))) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    unsaved = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let mut builder = params.clone().with(inputs).valid(valid).device(self.device).watch(watch);
        if let Some(checkpoint) = self.begun {
            builder = builder.checkpoint(checkpoint);
        }
        let fitted = builder.fit(corpus);
        match unsaved {
            Some(error) => Err(error),
            None => fitted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens::corpus::{Inputs, Preprocessing, VocabLimits};

    fn corpus(folder: &Path) -> Corpus {
        let path = folder.join("text");
        fs::write(&path, "a b c\nb c a\nc a b\na c\nb b a\n".repeat(20)).unwrap();
        let limits = VocabLimits::default();
        Corpus::read(&Inputs::new([path]), &Preprocessing::default(), &limits).unwrap()
    }

    fn params() -> HmmParams {
        Hmm::params()
            .n_states(4)
            .n_clusters(1)
            .constraint(latens::hmm::Constraint::None)
            .dim(4)
            .epochs(4)
    }

    fn training(corpus: &Corpus) -> Training<'_> {
        Training { corpus, valid: &corpus.sentences, clusters: None, teacher: None }
    }

    fn kept_in(folder: PathBuf, earlier: Earlier) -> KeptModels {
        KeptModels { folder, earlier, device: Device::Cpu, why_cpu: RefCell::default() }
    }

    #[test]
    fn measurements_of_earlier_runs_are_reused() {
        let folder = tempfile::tempdir().unwrap();
        let (corpus, params) = (corpus(folder.path()), params());
        let task = (&params, &training(&corpus));
        let n_measured = std::cell::Cell::new(0);
        let figures = |earlier, names| {
            let kept = kept_in(folder.path().to_owned(), earlier);
            let measured = kept.figures(task, names, &mut |_| (), |_, _| {
                n_measured.set(n_measured.get() + 1);
                [f64::from(n_measured.get()), 0.1]
            });
            measured.unwrap()
        };
        let names = ["valid", "test"];
        assert_eq!(figures(Earlier::Reuse, names), [1.0, 0.1]);
        assert_eq!(figures(Earlier::Reuse, names), [1.0, 0.1]);
        assert_eq!(figures(Earlier::Ignore, names), [2.0, 0.1]);
        assert_eq!(figures(Earlier::Reuse, ["valid", "another"]), [3.0, 0.1]);
        let path = kept_in(folder.path().to_owned(), Earlier::Reuse).path(task.0, task.1).unwrap();
        fs::write(path.with_extension("json"), "{\"valid\":1.0,").unwrap();
        assert_eq!(
            figures(Earlier::Reuse, ["valid", "another"]),
            [4.0, 0.1],
            "a damaged file is not used"
        );
    }

    #[test]
    fn an_interrupted_run_resumes() {
        let folder = tempfile::tempdir().unwrap();
        let (corpus, params) = (corpus(folder.path()), params());
        let training = training(&corpus);
        let kept = |name: &str, earlier| kept_in(folder.path().join(name), earlier);
        let mut notes = Vec::new();
        let mut hmm = |kept: KeptModels| {
            notes.clear();
            let hmm = kept.hmm(&params, &training, &mut |note| notes.push(note.to_owned()));
            (hmm.unwrap().facts()["valid_perplexity"].clone(), notes.clone())
        };
        let (whole, notes) = hmm(kept("whole", Earlier::Ignore));
        assert_eq!(notes.len(), 4, "{notes:?}");
        let (reused, notes) = hmm(kept("whole", Earlier::Reuse));
        assert!(notes[0].contains("reusing"), "{notes:?}");
        assert_eq!(reused, whole);

        // Interrupt the run after the second epoch.
        let interrupted = kept("interrupted", Earlier::Reuse);
        fs::create_dir_all(&interrupted.folder).unwrap();
        let name = format!("{:016x}.hmm.checkpoint", hash(&params, &training).unwrap());
        let checkpoint = interrupted.folder.join(name);
        let watch = |progress: &Progress<'_>| {
            if progress.iteration != Some(2) || progress.metrics.is_empty() {
                return ControlFlow::Continue(());
            }
            progress.checkpoint.unwrap()().unwrap().save(&checkpoint).unwrap();
            ControlFlow::Break(())
        };
        let stopped = params.clone().valid(training.valid).watch(watch).fit(&corpus);
        assert!(stopped.is_err());
        let (resumed, notes) = hmm(interrupted);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(resumed, whole);
        assert!(!checkpoint.exists());
    }
}
