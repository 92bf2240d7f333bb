//! Text in memory gives the same result as the same text in a file.

use latens_corpus::embedded::{self, Split};
use latens_corpus::{
    Corpus, Digits, DocumentCorpus, Documents, Format, Inputs, Invalid, Lexicon, Preprocessing,
    TaggedSentences, Tokenize, VocabLimits,
};

fn write(folder: &tempfile::TempDir, text: &str) -> std::path::PathBuf {
    let path = folder.path().join("text");
    std::fs::write(&path, text).unwrap();
    path
}

fn assert_same_lexicon(a: &Lexicon, b: &Lexicon) {
    assert_eq!((a.preprocessing, a.limits), (b.preprocessing, b.limits));
    assert!(a.vocab.words().eq(b.vocab.words()));
    assert_eq!(a.vocab.counts(), b.vocab.counts());
}

fn assert_same_corpus(a: &Corpus, b: &Corpus) {
    assert_same_lexicon(&a.lexicon, &b.lexicon);
    assert_eq!(a.sentences.tokens(), b.sentences.tokens());
    assert_eq!(a.sentences.offsets(), b.sentences.offsets());
    assert_eq!(a.sentences.segment_bounds(), b.sentences.segment_bounds());
}

fn assert_same_documents(a: &Documents, b: &Documents) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b.iter()) {
        assert_eq!((x.words, x.label, x.split), (y.words, y.label, y.split));
        for &word in x.words {
            assert_eq!(a.extra_word(word), b.extra_word(word));
        }
    }
}

/// Repeated until it takes several blocks.
fn long_text() -> String {
    let text = "\u{FEFF}first\n\n  <unk>\t<eos> x\r\n".to_owned();
    text + &embedded::text(Split::Train).repeat(40)
}

#[test]
fn lines_in_memory_are_read_like_the_same_lines_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = long_text();
    let path = write(&folder, &text);
    let reader = Corpus::reader().tokenize(Tokenize::Words).digits(Digits::Num).max_vocab(100);
    let file = reader.read_file(&path).unwrap();
    assert!(text.len() > 3 << 20 && file.lexicon.vocab.len() == 100);
    assert_same_corpus(&file, &reader.read_lines(text.lines()).unwrap());
    let owned: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_same_corpus(&file, &reader.read_lines(&owned).unwrap());
    let short = Corpus::from_lines(["b a b", "", "c"]).unwrap();
    let path = write(&folder, "b a b\n\nc\n");
    assert_same_corpus(&short, &Corpus::read_file(&path).unwrap());
    assert_same_corpus(
        &short,
        &Corpus::read(&Inputs::new([path]), &Preprocessing::default(), &VocabLimits::default())
            .unwrap(),
    );
}

#[test]
fn held_out_lines_are_encoded_like_a_held_out_file() {
    let folder = tempfile::tempdir().unwrap();
    let train = Corpus::from_lines(["a b", "b c"]).unwrap();
    let lines = ["c z a", "", "<eos> <unk> b"];
    let file = train.lexicon.read(&Inputs::new([write(&folder, &lines.join("\n"))])).unwrap();
    let memory = train.lexicon.sentences(lines);
    assert_eq!(memory.tokens(), file.tokens());
    assert_eq!(memory.offsets(), file.offsets());
    assert_eq!(memory.segment_bounds(), file.segment_bounds());
    assert!(train.lexicon.sentences([""; 0]).is_empty());
}

#[test]
fn texts_in_memory_are_read_like_the_same_texts_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = long_text();
    let path = write(&folder, &text);
    let reader = DocumentCorpus::reader().lowercase(true).min_count(50);
    let file = reader.read_file(&path).unwrap();
    let memory = reader.read_texts(text.lines()).unwrap();
    assert_same_lexicon(&file.lexicon, &memory.lexicon);
    assert_same_documents(&file.documents, &memory.documents);
    let held_out = ["a zebra and a gnu", "", "zebra the <unk> <eos>"];
    let inputs = Inputs::new([write(&folder, &held_out.join("\n"))]);
    assert_same_documents(
        &memory.lexicon.documents(held_out),
        &Documents::read_with(&inputs, &file.lexicon).unwrap(),
    );
}

#[test]
fn line_breaks_inside_a_record_are_whitespace() {
    let corpus = Corpus::from_lines(["a\nb\r\nc\n", "d"]).unwrap();
    assert_same_corpus(&corpus, &Corpus::from_lines(["a b c", "d"]).unwrap());
    let texts = Documents::from_texts(["a\n\nb", "", "c"]).unwrap().documents;
    assert_eq!(texts.iter().map(|document| document.words.len()).collect::<Vec<_>>(), [2, 0, 1]);
}

#[test]
fn text_in_memory_without_words_is_an_error_that_says_so() {
    let message = |lines: &[&str]| Corpus::from_lines(lines).unwrap_err().to_string();
    assert_eq!(message(&[]), "there are no words in `lines`");
    assert_eq!(message(&["", " \t"]), "there are no words in `lines`");
    let message = |texts: &[&str]| Documents::from_texts(texts).unwrap_err().to_string();
    assert_eq!(message(&[]), "there are no words in `texts`");
    assert_eq!(message(&["", ""]), "there are no words in `texts`");
    let nul = Corpus::from_lines(["a", "b\0"]).unwrap_err().to_string();
    assert_eq!(nul, "`lines` is not plain text: NUL byte in line 2");
}

#[test]
fn every_option_has_its_effect() {
    let folder = tempfile::tempdir().unwrap();
    let conll = write(&folder, "Dogs NNS\nbark VBP\n");
    let reader = Corpus::reader().format(Format::Conll).lowercase(true);
    let corpus = reader.read_files([&conll, &conll]).unwrap();
    assert_eq!(corpus.lexicon.vocab.words().collect::<Vec<_>>()[2..], ["bark", "dogs"]);
    assert_eq!(corpus.sentences.segments().count(), 2);
    let tagged = TaggedSentences::reader().format(Format::Conll).read_file(&conll).unwrap();
    assert_eq!(tagged.get(0).column(1), Some(vec!["NNS", "VBP"]));
    let invalid = folder.path().join("invalid");
    std::fs::write(&invalid, b"a\xff").unwrap();
    assert!(Corpus::read_file(&invalid).is_err());
    let replaced = Corpus::reader().invalid(Invalid::Replace).read_file(&invalid).unwrap();
    assert_eq!(replaced.lexicon.vocab.words().last(), Some("a\u{FFFD}"));
    let how = Preprocessing::default().lowercase(true);
    let limits = VocabLimits { min_count: 2, max_vocab: 4 };
    let reader = Corpus::reader().preprocessing(how).limits(limits);
    let words = reader.read_lines(["a A b B c C d"]).unwrap().lexicon.vocab;
    assert_eq!(words.words().collect::<Vec<_>>()[2..], ["a", "b"]);
}
