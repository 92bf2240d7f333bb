//! Extreme parameters and vectors: training works, or one error names the parameter.

use latens_corpus::{DocumentCorpus, WordId};
use latens_math::Rng;
use latens_model::{Fit, FitError, Params, TopicModel, WordVectors};
use latens_model_lda::{
    Covariance, Glda, GldaInputs, GldaParams, Lda, LdaParams, LdaSampler, Sampler, Start,
};

const DIM: usize = 3;

fn corpus() -> DocumentCorpus {
    let mut rng = Rng::new(3);
    let word = |rng: &mut Rng| format!("w{}", (rng.uniform() * 12.0) as usize);
    let texts: Vec<String> =
        (0..8).map(|_| (0..15).map(|_| word(&mut rng)).collect::<Vec<_>>().join(" ")).collect();
    DocumentCorpus::from_texts(&texts).unwrap()
}

fn vectors(corpus: &DocumentCorpus, value: impl Fn(f64) -> f32) -> WordVectors {
    let mut rng = Rng::new(9);
    let n = corpus.lexicon.vocab.len() * DIM;
    WordVectors::new(DIM, (0..n).map(|_| value(rng.normal())).collect::<Vec<_>>()).unwrap()
}

fn assert_sound(model: &dyn TopicModel, likelihood: f64) {
    assert!(likelihood.is_finite(), "{likelihood}");
    let mixture = model.mixture(&[2, 3, 2, 4].map(WordId));
    let sum: f32 = mixture.iter().sum();
    assert!((sum - 1.0).abs() < 1e-4, "{mixture:?}");
}

/// Fits; the result is a sound model or an error that names `parameter`.
fn fit_glda(params: GldaParams, vectors: &WordVectors, parameter: &str) -> bool {
    let corpus = corpus();
    let inputs = GldaInputs::default().vectors(vectors);
    match params.clone().with(inputs).fit(&corpus) {
        Ok(model) => {
            assert_sound(&model, model.facts()["log_likelihood"].as_f64().unwrap_or(f64::NAN));
            true
        }
        Err(FitError::Params(error)) => {
            assert_eq!(error.name, parameter, "{params:?}: {error}");
            false
        }
        Err(error) => panic!("{params:?}: {error}"),
    }
}

fn base() -> GldaParams {
    GldaParams::default().n_topics(3).n_iterations(3)
}

fn all_samplers() -> impl Iterator<Item = GldaParams> {
    use Sampler::{Alias, Cholesky, Exact, Mh, Naive, Parallel};
    let samplers = [Naive, Cholesky, Alias, Exact, Mh, Parallel];
    let covariances = [Covariance::Full, Covariance::Diagonal, Covariance::Spherical];
    samplers.into_iter().flat_map(move |sampler| {
        covariances.map(|covariance| base().sampler(sampler).covariance(covariance))
    })
}

#[test]
fn extreme_parameters_of_gaussian_lda_work_or_are_refused_by_name() {
    let corpus = corpus();
    let vectors = vectors(&corpus, |x| x as f32);
    for value in [1e-308, 1e-12, 1e-9, 0.1, 2.1, 1e9, 1e19, 1e308] {
        for params in all_samplers() {
            fit_glda(params.clone().alpha(value), &vectors, "alpha");
            fit_glda(params.clone().kappa(value), &vectors, "kappa");
            fit_glda(params.clone().nu(value), &vectors, "nu");
            fit_glda(params.psi_scale(value), &vectors, "psi_scale");
        }
    }
    for params in [base().alpha(1e308), base().kappa(1e308), base().nu(1e308)] {
        assert!(params.validate().is_err());
    }
}

#[test]
fn finite_vectors_of_any_size_work_or_are_refused() {
    let corpus = corpus();
    for (scale, works) in [
        (1e-44, false),
        (1e-30, false),
        (1e-7, true),
        (1.0, true),
        (1e7, true),
        (1e19, false),
        (1e37, false),
    ] {
        let scaled = vectors(&corpus, |x| (scale * x) as f32);
        for params in all_samplers() {
            for start in [Start::Kmeans, Start::Random] {
                let fitted = fit_glda(params.clone().start(start), &scaled, "vectors");
                assert_eq!(fitted, works, "{scale}");
            }
        }
    }
    for constant in [1e-44, 1.0, 1e7] {
        let same = vectors(&corpus, |_| constant);
        all_samplers().for_each(|params| assert!(fit_glda(params, &same, "")));
    }
    let mixed = vectors(&corpus, |x| if x > 1.0 { 1e-44 } else { x as f32 });
    all_samplers().for_each(|params| assert!(fit_glda(params, &mixed, "")));
}

#[test]
fn additional_vectors_of_any_size_are_refused_before_inference() {
    let corpus = corpus();
    let small = vectors(&corpus, |x| x as f32);
    let inputs = GldaInputs::default().vectors(&small);
    let model: Glda = base().with(inputs).fit(&corpus).unwrap();
    model.check_vectors(&small).unwrap();
    let error = model.check_vectors(&vectors(&corpus, |x| (1e19 * x) as f32)).unwrap_err();
    assert!(error.to_string().contains("`vectors` must be at most 1e8"), "{error}");
    let flat = WordVectors::new(1, vec![1.0; 14]).unwrap();
    assert!(model.check_vectors(&flat).unwrap_err().to_string().contains("3 dimensions"));
}

#[test]
fn extreme_parameters_of_lda_work_or_are_refused_by_name() {
    let corpus = corpus();
    for value in [1e-308, 1e-12, 1e-6, 1.0, 1e9, 1e19, 1e308] {
        for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
            let base = || LdaParams::default().n_topics(3).n_iterations(3).sampler(sampler);
            let both = base().alpha(value).beta(value);
            for (params, name) in
                [(base().alpha(value), "alpha"), (base().beta(value), "beta"), (both, "alpha")]
            {
                match params.fit(&corpus) {
                    Ok::<Lda, _>(model) => {
                        let likelihood = model.facts()["log_likelihood"].as_f64();
                        assert_sound(&model, likelihood.unwrap_or(f64::NAN));
                        assert!((1e-12..=1e9).contains(&value));
                    }
                    Err(FitError::Params(error)) => assert_eq!(error.name, name),
                    Err(error) => panic!("{value}: {error}"),
                }
            }
        }
    }
}
