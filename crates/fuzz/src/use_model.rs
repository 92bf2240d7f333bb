//! What the targets do with models and checkpoints: everything that opens is used in each of its roles, and every answer
//! must be one that the role allows.

use crate::scratch::{file, path};
use latens::corpus::{Lexicon, Preprocessing, Vocab, WordId};
use latens::model::compat::VectorsError;
use latens::model::file::ModelFile;
use latens::model::{
    Checkpoint, FeatureRows, LanguageModel, Model, Params, Tagger, TokenEncoder, TopicModel,
    Vectors, WordVectors, inspect,
};
use latens::ngram::{Ngram, NgramParams};
use serde_json::Value;

/// Opens a file as a model and as a checkpoint, and uses what opens.
pub fn open_model(bytes: &[u8]) {
    let path = file("model", bytes);
    let inspection = inspect(&path);
    let Ok(file) = ModelFile::open(&path) else { return };
    for array in inspection.expect("a file that opens can be inspected").arrays {
        assert_eq!(file.shape(&array.name).expect("it is listed"), array.shape);
        let _ = file.vector::<u8>(&array.name);
        let _ = file.vector::<u64>(&array.name);
        let _ = file.finite_array::<f32>(&array.name, &array.shape);
    }
    let _ = file.lexicon();
    if let Ok(checkpoint) = Checkpoint::open(&path) {
        use_checkpoint(&checkpoint);
    }
    if let Ok(model) = latens::open(&path) {
        use_model(&*model);
    }
}

/// Uses a model in each of its roles, and saves and opens it.
pub fn use_model(model: &dyn Model) {
    use_encoders(model);
    if let Some(model) = model.as_language_model() {
        use_language_model(model);
    }
    if let Some(topics) = model.as_topic_model() {
        use_topic_model(topics, model.lexicon().vocab.len());
    }
    if let Some(tagger) = model.as_tagger() {
        use_tagger(&*tagger, &model.lexicon().vocab);
    }
    if let Some(vectors) = model.word_vectors() {
        assert_eq!(vectors.n_words(), model.lexicon().vocab.len());
        let is_finite = vectors.values().iter().all(|value| value.is_finite());
        assert!(is_finite, "a word vector is not finite");
    }
    if let Some(model) = model.downcast_ref::<Ngram>() {
        let mut arpa = Vec::new();
        if model.write_arpa(&mut arpa).is_ok() {
            let again = Ngram::read_arpa(&mut &arpa[..], &Preprocessing::default());
            again.expect("what was written can be read");
        }
    }
    let path = path("model again");
    model.save(&path).expect("a model that was opened can be saved");
    latens::open(&path).expect("a model that was saved can be opened");
}

/// Scores some words. No score is NaN or above every probability, and a word is as probable alone as among all.
pub fn use_language_model(model: &dyn LanguageModel) {
    let n_words = model.n_words();
    let mut scorer = model.scorer();
    let mut log_probs = vec![0.0; n_words];
    let mut text = Vec::new();
    // Long enough to fill the history, with every word in some place after every other.
    for i in 0..48usize {
        let word = WordId::from(i * (i + 3) / 2 % n_words.min(8));
        scorer.next_log_probs(&mut log_probs);
        let is_log_prob = |p: &f64| !p.is_nan() && *p < f64::INFINITY;
        assert!(log_probs.iter().all(is_log_prob), "a log probability of the next word is invalid");
        let (alone, among_all) = (scorer.read(word), log_probs[word.index()]);
        let are_same =
            alone == among_all || (alone - among_all).abs() <= 1e-3 * (1.0 + alone.abs());
        assert!(are_same, "ln p of a word is {alone} alone, {among_all} among all");
        text.push(word);
    }
    assert!(!model.text_log_prob(&text).is_nan(), "ln p of a text is NaN");
    assert!(!model.log_prob(&text[..9]).is_nan(), "ln p of a sentence is NaN");
}

fn use_encoders(model: &dyn Model) {
    let vocab = &model.lexicon().vocab;
    let mut sentence: Vec<WordId> = (0..vocab.len().min(12)).map(WordId::from).collect();
    sentence.push(model.word_id("Neverseen-42"));
    if let Some(encoder) = model.as_token_encoder() {
        use_token_encoder(encoder, &sentence);
    }
    for kind in model.feature_kinds() {
        use_token_encoder(&*model.encoder(kind).expect("the kind is listed"), &sentence);
    }
}

fn use_token_encoder(encoder: &dyn TokenEncoder, sentence: &[WordId]) {
    let mut rows = FeatureRows::new();
    encoder.encode(sentence, &mut rows);
    encoder.encode(&[], &mut rows);
    assert_eq!(rows.len(), sentence.len());
    assert!(rows.columns().iter().all(|&column| (column as usize) < encoder.n_features()));
    assert!(rows.values().iter().all(|value| value.is_finite()), "a feature is not finite");
}

fn use_topic_model(model: &dyn TopicModel, n_words: usize) {
    let documents = [vec![], (0..n_words.min(12)).map(WordId::from).collect(), vec![WordId(0); 9]];
    for document in documents {
        let mixture = model.mixture(&document);
        assert_eq!(mixture.len(), model.n_topics());
        assert!(mixture.iter().all(|share| share.is_finite() && *share >= 0.0), "{mixture:?}");
        let sum: f64 = mixture.iter().map(|&share| f64::from(share)).sum();
        assert!((sum - 1.0).abs() < 1e-3, "a mixture sums to {sum}");
    }
    for topic in 0..model.n_topics().min(4) {
        let words = model.top_word_ids(topic, 5);
        assert!(words.iter().all(|(word, p)| word.index() < n_words && !p.is_nan()), "{words:?}");
        assert!(words.is_sorted_by(|a, b| a.1 >= b.1), "{words:?}");
    }
}

fn use_tagger(tagger: &dyn Tagger, vocab: &Vocab) {
    let mut words: Vec<&str> = vocab.words().take(8).collect();
    words.push("Neverseen-42");
    let pos = vec!["X"; words.len()];
    for (words, pos) in [(&words[..], &pos[..]), (&words[..1], &pos[..1]), (&[], &[])] {
        let answers = [tagger.tag(words), tagger.tag_with_pos(words, pos)];
        for tags in answers.into_iter().flatten() {
            assert_eq!(tags.len(), words.len());
            assert!(tags.iter().all(|&tag| (tag as usize) < tagger.tags().len()));
        }
    }
    let _ = tagger.n_seen("Neverseen-42");
}

/// Writes vectors, reads them again, and uses them as a model. A word may have a letter that ends words in this format:
/// then it cannot be written.
pub fn use_vectors(
    lexicon: Lexicon,
    vectors: WordVectors,
    read: impl Fn(&[u8]) -> Result<(Lexicon, WordVectors), VectorsError>,
    write: impl Fn(&Vocab, &WordVectors, &mut Vec<u8>) -> Result<(), VectorsError>,
) {
    let mut bytes = Vec::new();
    match write(&lexicon.vocab, &vectors, &mut bytes) {
        Err(VectorsError::Blank { .. }) => {}
        Err(error) => panic!("what was read can be written: {error}"),
        // Words without a vector, whose values are all zero, are not written.
        Ok(()) if vectors.iter().next().is_none() => {}
        Ok(()) => {
            let (same_lexicon, same_vectors) = read(&bytes).expect("what was written can be read");
            let mut again = Vec::new();
            write(&same_lexicon.vocab, &same_vectors, &mut again).expect("it was written before");
            assert_eq!(again, bytes);
        }
    }
    use_model(&Vectors::new(lexicon, vectors));
}

fn use_checkpoint(checkpoint: &Checkpoint) {
    let params = NgramParams::default().validate().expect("defaults are valid");
    let _ = checkpoint.check_fits(checkpoint.of(), &params, 0, &["order"]);
    let _ = checkpoint.array::<f32>("weights", &[2]);
    let state: Value = checkpoint.state().expect("a state is JSON");
    let path = path("checkpoint again");
    checkpoint.save(&path).expect("a checkpoint that was opened can be saved");
    let again = Checkpoint::open(&path).expect("a checkpoint that was saved can be opened");
    assert_eq!(again.state::<Value>().expect("a state is JSON"), state);
}
