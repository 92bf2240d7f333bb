//! Processes that learn one model together: they learn the model of one process.

use latens_corpus::Corpus;
use latens_model::group::Group;
use latens_model::{Device, Fit, FitError, LanguageModel, Progress};
use latens_model_hmm::{Hmm, HmmInputs, HmmParams, Learning, Memory, Parameterization};
use latens_testkit::{in_ring, zipfian_corpus};
use std::io::Write;
use std::ops::ControlFlow;

fn corpus() -> Corpus {
    zipfian_corpus(60, 200, 5)
}

fn params() -> HmmParams {
    Hmm::params().n_states(24).n_clusters(3).dim(16).epochs(3).batch_tokens(150).dropout(0.1)
}

fn bytes(model: &Hmm) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.hmm");
    model.save(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// Σ ln p of the corpus.
fn log_prob(model: &Hmm, corpus: &Corpus) -> f64 {
    corpus.sentences.iter().map(|sentence| model.log_prob(sentence)).sum()
}

/// Learns with groups of several sizes. Copies are equal, and near to the model of one process.
fn check(params: &HmmParams, device: Device, tolerance: f64) -> Result<(), FitError> {
    let corpus = corpus();
    let valid = corpus.sentences.slice(0..50);
    let alone = params.clone().valid(&valid).device(device).fit(&corpus)?;
    let expected = log_prob(&alone, &corpus);
    for size in [1, 2, 3] {
        let models = in_ring(size, |ring| {
            let inputs = HmmInputs::default().group(&ring);
            params.clone().with(inputs).valid(&valid).device(device).fit(&corpus).unwrap()
        });
        for model in &models {
            let found = log_prob(model, &corpus);
            let difference = (found - expected).abs() / expected.abs();
            assert!(difference < tolerance, "{size} processes: {found} and {expected}");
            assert_eq!(model.facts()["best_epoch"], alone.facts()["best_epoch"]);
        }
        let weights = |model: &Hmm| {
            let text = bytes(model);
            // Facts about time differ.
            text[text.len() / 2..].to_vec()
        };
        assert!(models.iter().all(|model| weights(model) == weights(&models[0])));
    }
    Ok(())
}

#[test]
fn groups_learn_the_model_of_one_process() {
    check(&params(), Device::Cpu, 1e-4).unwrap();
    let scalar = params().parameterization(Parameterization::Scalar).learning(Learning::Gradient);
    check(&scalar, Device::Cpu, 1e-4).unwrap();
    check(&params().state_dropout(0.4).memory(Memory::Carry), Device::Cpu, 1e-4).unwrap();
    // Most mini-batches have one sentence, so that other processes have none.
    check(&params().batch_tokens(1).epochs(1), Device::Cpu, 1e-4).unwrap();
}

#[test]
fn groups_learn_the_model_of_one_process_on_a_cuda_device() {
    for params in [params(), params().state_dropout(0.4), params().batch_tokens(1).epochs(1)] {
        match check(&params, Device::Cuda, 1e-2) {
            Ok(()) => {}
            Err(FitError::Device { problem, .. }) => {
                let _ =
                    writeln!(std::io::stderr(), "skipping the tests on a CUDA device: {problem}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_process_that_ends_stops_the_others() {
    let corpus = corpus();
    let errors = in_ring(3, |ring| {
        let mut n_steps = 0;
        let watch = |progress: &Progress<'_>| {
            // The clustering has no checkpoints.
            n_steps += usize::from(progress.checkpoint.is_some());
            if ring.rank() == 1 && n_steps == 4 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let inputs = HmmInputs::default().group(&ring);
        params().epochs(50).with(inputs).watch(watch).fit(&corpus).map(|_| ()).unwrap_err()
    });
    assert!(matches!(errors[1], FitError::Interrupted));
    for error in [&errors[0], &errors[2]] {
        let FitError::Step { action, source } = error else { panic!("{error}") };
        assert_eq!(*action, "add up gradients");
        assert_eq!(source.to_string(), "another process of the ring has ended");
    }
}

#[test]
fn baum_welch_refuses_a_group() {
    let errors = in_ring(1, |ring| {
        let params = params().parameterization(Parameterization::Scalar).learning(Learning::Em);
        params.dropout(0.0).with(HmmInputs::default().group(&ring)).fit(&corpus()).unwrap_err()
    });
    assert!(errors[0].to_string().contains("learning"), "{}", errors[0]);
}
