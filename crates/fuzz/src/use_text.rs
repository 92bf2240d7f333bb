//! What the targets do with text: whatever is read can be read again and is consistent.

use crate::scratch::file;
use latens::corpus::{
    Corpus, Digits, Documents, Format, Inputs, Invalid, Lexicon, Preprocessing, Sentences,
    TaggedSentences, Tokenize, VocabLimits, WordId,
};

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
    let words =
        Preprocessing::default().tokenize(Tokenize::Words).lowercase(true).digits(Digits::Num);
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

pub(crate) fn check_corpus(corpus: &Corpus) {
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

pub(crate) fn check_documents(lexicon: &Lexicon, documents: &Documents) {
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
