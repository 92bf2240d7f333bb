//! What the fuzz targets share: files made of any bytes, with right checksums if need be, and what
//! is done with them.
//!
//! Nothing here may fail for the bytes' sake. What a reader accepts is used as a program would use
//! it, and must keep the promises of its type.

pub mod forge;

use latens::corpus::{
    Corpus, Digits, Documents, EOS, Format, Inputs, Invalid, Lexicon, Preprocessing, Sentences,
    TaggedSentences, Tokenize, UNK, Vocab, VocabLimits, WordId,
};
use latens::counts::{Budget, LagCounts, NgramCounts};
use latens::model::compat::VectorsError;
use latens::model::{
    Model,
    Checkpoint, FeatureRows, LanguageModel, ModelFile, Params, TokenEncoder, Vectors, WordVectors,
    inspect,
};
use latens::ngram::{Ngram, NgramParams};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    /// The files of this process, in memory where the system has a folder for that. The folder goes
    /// when the process ends, unless it ends in a crash.
    static FOLDER: TempDir = {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("latens-fuzz-").tempdir_in(folder).expect("a folder")
    };
}

/// Where the file `name` of this process is.
pub fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.path().join(name))
}

/// A file with these bytes; it replaces the last one of that name.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    fs::write(&path, bytes).expect("there is room for a small file");
    path
}

/// Keeps all work in the thread that calls this: handing texts of some bytes to others takes longer
/// than reading them.
pub fn one_thread() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("there is no other pool yet");
}

/// Writes vectors and reads them again, and uses them as a model. A word may have a letter that ends words in
/// this format: then it cannot be written.
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
        Ok(()) => {
            let (same_lexicon, same_vectors) = read(&bytes).expect("what was written can be read");
            let mut again = Vec::new();
            write(&same_lexicon.vocab, &same_vectors, &mut again).expect("it was written before");
            assert_eq!(again, bytes);
        }
    }
    use_model(&Vectors::new(lexicon, vectors));
}

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
    if let Some(encoder) = model.as_token_encoder() {
        use_token_encoder(encoder, model.lexicon().vocab.len());
    }
    if let Some(model) = model.as_language_model() {
        use_language_model(model);
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

/// Scores some words. No score is NaN, whatever the model says.
pub fn use_language_model(model: &dyn LanguageModel) {
    let n_words = model.n_words();
    let mut scorer = model.scorer();
    let mut log_probs = vec![0.0; n_words];
    // Long enough to fill the history, with every word in some place after every other.
    for i in 0..64usize {
        let word = WordId::from(i * (i + 3) / 2 % n_words.min(8));
        scorer.next_log_probs(&mut log_probs);
        assert!(log_probs.iter().all(|p| !p.is_nan()), "probabilities of the next word");
        let log_prob = scorer.read(word);
        assert!(log_prob == log_probs[word.index()], "one word as likely as among all");
    }
}

fn use_token_encoder(encoder: &dyn TokenEncoder, n_words: usize) {
    let sentence: Vec<WordId> = (0..n_words.min(64)).map(WordId::from).collect();
    let mut rows = FeatureRows::new();
    encoder.encode(&sentence, &mut rows);
    assert_eq!(rows.len(), sentence.len());
    assert!(rows.columns().iter().all(|&column| (column as usize) < encoder.n_features()));
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

/// Opens a file as an encoded text and as counts, and uses what opens.
pub fn open_container(bytes: &[u8]) {
    let path = file("container", bytes);
    if let Ok(corpus) = Corpus::open(&path) {
        check_corpus(&corpus);
    }
    if let Ok((lexicon, documents)) = Documents::open(&path) {
        check_documents(&lexicon, &documents);
    }
    if let Ok(counts) = LagCounts::open(&path) {
        use_lag_counts(&counts);
    }
    if let Ok(counts) = NgramCounts::open(&path) {
        use_ngram_counts(&counts);
    }
}

fn use_lag_counts(counts: &LagCounts) {
    for lag in counts.lags() {
        let (rows, columns) = (lag.row_sums(), lag.column_sums());
        assert_eq!(rows.iter().sum::<u64>(), lag.total());
        assert_eq!(columns.iter().sum::<u64>(), lag.total());
        assert_eq!(lag.to_csr(|count| count as f32).n_rows(), counts.vocab().len());
    }
    let _ = LagCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
    let path = path("lag counts again");
    counts.save(&path).expect("counts that were opened can be saved");
    LagCounts::open(&path).expect("counts that were saved can be opened");
}

fn use_ngram_counts(counts: &NgramCounts) {
    let mut n_tokens = 0;
    counts.for_each(|ngram, count| {
        assert!(ngram.iter().all(|word| word.index() <= counts.n_words()));
        n_tokens += count;
    });
    assert_eq!(n_tokens, counts.n_tokens());
    let _ = NgramCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
    let path = path("n-gram counts again");
    counts.save(&path).expect("counts that were opened can be saved");
    NgramCounts::open(&path).expect("counts that were saved can be opened");
    if counts.n_words() >= 2 {
        let lexicon = lexicon(counts.n_words());
        let params = NgramParams::default().order(counts.order());
        let params = params.validate().expect("counts have an order that models have");
        if let Ok(model) = Ngram::from_counts(&params, &lexicon, counts) {
            use_language_model(&model);
        }
    }
}

/// So many words, whatever they are.
pub fn lexicon(n_words: usize) -> Lexicon {
    let words = (0..n_words).map(|i| match i {
        0 => UNK.to_owned(),
        1 => EOS.to_owned(),
        i => format!("word{i}"),
    });
    let vocab = Vocab::from_parts(words, vec![0; n_words]).expect("the words are different");
    let limits = VocabLimits::default();
    Lexicon { preprocessing: Preprocessing::default(), limits, vocab }
}

/// Reads a text as sentences, documents and tagged sentences, strictly and not.
pub fn read_text(format: Format, bytes: &[u8]) {
    let mut inputs = Inputs::new([file("text", bytes)]);
    inputs.format = Some(format);
    let (blanks, limits) = (Preprocessing::default(), VocabLimits::default());
    let strict = read_sentences(&inputs, &blanks);
    inputs.invalid = Invalid::Replace;
    if let Some(strict) = strict {
        let lenient = Corpus::read(&inputs, &blanks, &limits);
        let lenient = lenient.expect("what is read strictly is read leniently");
        assert_eq!(strict.sentences.tokens(), lenient.sentences.tokens());
    }
    let words = Preprocessing { tokenize: Tokenize::Words, lowercase: true, digits: Digits::Num };
    read_sentences(&inputs, &words);
    read_documents(&inputs, &words);
    read_tagged(&inputs);
}

/// Reads a text as sentences; with its own vocabulary it is the same when it is read again.
pub fn read_sentences(inputs: &Inputs, preprocessing: &Preprocessing) -> Option<Corpus> {
    let corpus = Corpus::read(inputs, preprocessing, &VocabLimits::default()).ok()?;
    check_corpus(&corpus);
    let counted: u64 = corpus.lexicon.vocab.counts().iter().sum();
    assert_eq!(counted, corpus.sentences.n_tokens() as u64);
    let again = corpus.lexicon.read(inputs).expect("what was read can be read again");
    assert_eq!(again.tokens(), corpus.sentences.tokens());
    Some(corpus)
}

fn check_corpus(corpus: &Corpus) {
    let Corpus { lexicon, sentences } = corpus;
    let parts = Sentences::from_parts(
        sentences.tokens().to_vec().into(),
        sentences.offsets().to_vec().into(),
        sentences.segment_bounds().to_vec().into(),
        lexicon.vocab.len(),
    );
    parts.expect("sentences are sound");
    assert_eq!(sentences.iter().map(<[_]>::len).sum::<usize>(), sentences.n_tokens());
    assert_eq!(sentences.segments().map(<[_]>::len).sum::<usize>(), sentences.n_tokens());
    assert_eq!(lexicon.vocab.words().count(), lexicon.vocab.counts().len());
}

fn read_documents(inputs: &Inputs, preprocessing: &Preprocessing) {
    let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
    let Ok((lexicon, documents)) = Documents::read(inputs, preprocessing, &limits) else { return };
    let again = Documents::read_with(inputs, &lexicon).expect("it was read before");
    check_documents(&lexicon, &documents);
    check_documents(&lexicon, &again);
    for (document, again) in documents.iter().zip(again.iter()) {
        assert_eq!(document.words.len(), again.words.len());
        assert_eq!((document.label, document.split), (again.label, again.split));
    }
}

fn check_documents(lexicon: &Lexicon, documents: &Documents) {
    let n_words = lexicon.vocab.len();
    let is_known = |&id: &WordId| id.index() < n_words || documents.extra_word(id).is_some();
    assert!(documents.iter().all(|document| document.words.iter().all(is_known)));
    let lengths = documents.iter().map(|document| document.words.len());
    assert_eq!(lengths.sum::<usize>(), documents.n_tokens());
}

fn read_tagged(inputs: &Inputs) {
    let Ok(tagged) = TaggedSentences::read(inputs) else { return };
    assert_eq!(tagged.iter().map(|sentence| sentence.len()).sum::<usize>(), tagged.n_tokens());
    for sentence in tagged.iter() {
        assert!(sentence.column(0).is_some_and(|words| !words.is_empty()));
    }
}
