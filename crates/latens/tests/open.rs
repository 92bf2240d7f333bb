//! `open` finds out what a file is.

use latens::corpus::{Corpus, Inputs, Preprocessing, VocabLimits};
use latens::model::file::ModelWriter;
use latens::model::{Params, unwatched};
use latens::ngram::{Ngram, NgramParams};

#[test]
fn a_model_is_opened_as_what_it_is_and_saved_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "a b a\nb a\n").unwrap();
    let corpus =
        Corpus::read(&Inputs::new([text]), &Preprocessing::default(), &VocabLimits::default())
            .unwrap();
    let params = NgramParams { order: 2, ..NgramParams::default() }.validate().unwrap();
    let model = Ngram::fit(&params, &corpus, &mut unwatched).unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    model.save(&first).unwrap();
    let any = latens::open(&first).unwrap();
    assert_eq!(any.kind(), "ngram");
    let sentence = corpus.sentences.get(0);
    let language_model = any.as_language_model().unwrap();
    assert_eq!(
        language_model.log_prob(sentence),
        latens::model::LanguageModel::log_prob(&model, sentence)
    );
    any.save(&second).unwrap();
    assert_eq!(std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
}

#[test]
fn a_kind_from_the_future_is_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let params = NgramParams::default().validate().unwrap();
    ModelWriter::new("oracle", &params).save(&path).unwrap();
    let message = latens::open(&path).unwrap_err().to_string();
    assert!(message.contains("no models of kind `oracle`"), "{message}");
}
