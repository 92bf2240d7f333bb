//! Encoders over models in memory.

use super::fixtures::{TEXT, assert_same, read};
use crate::tagging::features::encoder::Encoder;
use crate::tagging::features::model_encoder::ModelEncoder;
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::learn::data::TaggerInputs;
use crate::tagging::params::TaggerParams;
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
use latens_model::file::ModelFile;
use latens_model::{FeatureRows, Fit, Model, Vectors, WordVectors};

fn vectors() -> Vectors {
    let words = ["<unk>", "<eos>", "the", "dog", "cat", "barks"];
    let vocab = Vocab::from_parts(words, vec![0; 6]).unwrap();
    let preprocessing = Preprocessing::default().lowercase(true);
    let lexicon = Lexicon::new(preprocessing, VocabLimits::default(), vocab);
    let values = vec![0.1, 0.1, 0., 0., 1., 0., 0., 1., 0.1, 0.9, -1., -1.];
    Vectors::new(lexicon, WordVectors::new(2, values).unwrap())
}

fn fit(encoder: Encoder) -> FeatureTagger {
    let inputs = TaggerInputs::default().column(2).encoder(encoder);
    FeatureTagger::params().n_iterations(20).with(inputs).fit(&read(TEXT)).unwrap()
}

#[test]
fn a_tagger_over_a_model_in_memory_is_saved_with_its_encoder() {
    let encoder = Encoder::from_model(vectors(), None).unwrap();
    assert_eq!((&*encoder.name, &*encoder.features), ("vectors", "vectors"));
    let tagger = fit(encoder);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tagger");
    tagger.save(&path).unwrap();
    let opened = FeatureTagger::from_file(&ModelFile::open(&path).unwrap(), &|file, features| {
        let model = Box::new(Vectors::from_file(file)?);
        Ok(Box::new(ModelEncoder::new("vectors", model, Some(features)).unwrap()))
    });
    assert_same(&tagger, &opened.unwrap());
}

#[test]
fn an_encoder_from_memory_has_the_bytes_and_rows_of_one_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.vectors");
    vectors().save(&path).unwrap();
    let (model, bytes) = (Vectors::open(&path).unwrap(), std::fs::read(&path).unwrap());
    let from_memory = Encoder::from_model(vectors(), Some("vectors")).unwrap();
    assert_eq!(*from_memory.file, bytes);
    let name = "v.vectors".to_owned();
    let from_file =
        Encoder::from_model_and_file(name, Box::new(model), None, bytes.into()).unwrap();
    let rows = |encoder: &Encoder| {
        let mut rows = FeatureRows::new();
        encoder.model.encode(&["The", "CAT", "sleeps"], &mut rows);
        rows
    };
    assert_eq!(rows(&from_memory), rows(&from_file));
    assert_eq!(rows(&from_memory).row(1).1, [0.1, 0.9]);
    assert!(from_file.model.knows("Cat") && !from_file.model.knows("sleeps"));
}

#[test]
fn models_without_the_features_are_refused() {
    let error = Encoder::from_model(vectors(), Some("states")).unwrap_err().to_string();
    let expected =
        "`vectors` is a list of word vectors, which has no features `states`, only `vectors`";
    assert_eq!(error, expected);
    let tagger = FeatureTagger::params().n_iterations(1).fit(&read("a X\n")).unwrap();
    let tagger: Box<dyn Model> = Box::new(tagger);
    let error = Encoder::from_boxed_model(tagger, None).unwrap_err().to_string();
    assert_eq!(error, "`tagger` is a tagger, which has no token features");
}

#[test]
fn setters_reach_the_fitted_tagger() {
    let params = TaggerParams { window: 1, pos_column: Some(1), ..FeatureTagger::params() };
    let tagger = FeatureTagger::params()
        .window(1)
        .pos_column(1)
        .with(TaggerInputs::default().column(2))
        .fit(&read(TEXT));
    assert_eq!(**tagger.unwrap().fitted_with(), params);
}
