//! Documents in tables, JSON objects and folders, as people have them.

use latens_corpus::{Cleaning, Columns, DocumentCorpus, Documents, Inputs, ReadError};
use std::fs;
use std::path::Path;

fn read(path: &Path, columns: Columns) -> Result<DocumentCorpus, ReadError> {
    let inputs = Inputs::new([path]).columns(columns).folders(true);
    DocumentCorpus::read_clean(
        &inputs,
        &Default::default(),
        &Default::default(),
        &Cleaning::default(),
    )
}

fn texts(corpus: &DocumentCorpus) -> Vec<String> {
    let vocab = &corpus.lexicon.vocab;
    let text = |words: &[latens_corpus::WordId]| {
        words.iter().map(|&word| vocab.word(word)).collect::<Vec<_>>().join(" ")
    };
    corpus.documents.iter().map(|document| text(document.words)).collect()
}

fn columns(text: &str, id: &str, label: &str) -> Columns {
    let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let mut columns = Columns::default();
    (columns.text, columns.id, columns.label) = (some(text), some(id), some(label));
    columns
}

#[test]
fn csv_has_quotes_commas_and_line_breaks_as_in_rfc_4180() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docs.csv");
    let csv = "id,text,year\r\n7,\"one, \"\"two\"\"\nthree\",1999\r\n8,four,2001\r\n9,,2002\r\n";
    fs::write(&path, csv).unwrap();
    let kept = Columns::default().kept(["year"]);
    let corpus = read(&path, kept).unwrap();
    assert_eq!(texts(&corpus), ["one, \"two\" three", "four", ""]);
    let ids: Vec<&str> = corpus.documents.iter().map(|document| document.id).collect();
    assert_eq!(ids, ["7", "8", "9"]);
    let years: Vec<_> = (0..3).map(|idx| corpus.documents.value("year", idx).unwrap()).collect();
    assert_eq!(years, ["1999", "2001", "2002"]);
    assert_eq!(corpus.documents.value("id", 0), None);
    // The lexicon reads the same table again.
    let inputs = Inputs::new([&path]);
    assert_eq!(Documents::read_with(&inputs, &corpus.lexicon).unwrap().get(0).id, "7");
}

#[test]
fn columns_are_chosen_by_name_and_missing_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docs.csv");
    fs::write(&path, "title,abstract,group\na,one two,x\nb,three,y\n").unwrap();
    let corpus = read(&path, columns("abstract", "title", "group")).unwrap();
    assert_eq!(texts(&corpus), ["one two", "three"]);
    assert_eq!((corpus.documents.get(1).id, corpus.documents.get(1).label), ("b", "y"));
    let error = read(&path, Columns::default()).unwrap_err().to_string();
    let expected =
        "line 1: the table has no column `text`; its columns are `title`, `abstract`, `group`";
    assert!(error.ends_with(expected), "{error}");
    fs::write(&path, "text,year\none,1999,more\n").unwrap();
    let error = read(&path, Columns::default()).unwrap_err().to_string();
    assert!(error.ends_with("line 2: expected 2 columns, found 3"), "{error}");
    fs::write(&path, format!("text\n\"{}", "x ".repeat(1 << 20))).unwrap();
    let inputs = Inputs::new([&path]).max_line(1 << 10);
    let error = DocumentCorpus::read(&inputs, &Default::default(), &Default::default());
    assert!(matches!(error, Err(ReadError::TooLong { record: "row", .. })), "{error:?}");
}

#[test]
fn a_third_column_is_never_taken_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docs.tsv");
    fs::write(&path, "sport\tball goal\nfood\tpan\n").unwrap();
    let corpus = read(&path, Columns::default()).unwrap();
    assert_eq!(texts(&corpus), ["ball goal", "pan"]);
    assert_eq!(corpus.documents.get(0).label, "sport");
    fs::write(&path, "sport\ttrain\tball goal\nfood\ttest\tpan\n").unwrap();
    let error = read(&path, Columns::default()).unwrap_err().to_string();
    assert!(error.contains("line 1: 3 tab-separated fields"), "{error}");
    assert!(error.contains("`sport<TAB>train<TAB>ball goal`"), "{error}");
    // A header decides.
    fs::write(&path, "label\tsplit\ttext\nsport\ttrain\tball \"goal\"\n").unwrap();
    let corpus = read(&path, Columns::default()).unwrap();
    assert_eq!(texts(&corpus), ["ball \"goal\""]);
    assert_eq!(corpus.documents.get(0).label, "sport");
    let error = read(&path, columns("body", "", "")).unwrap_err().to_string();
    assert!(error.contains("no column `body`"), "{error}");
}

#[test]
fn json_objects_have_any_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docs.jsonl");
    let lines = "{\"body\": \"one two\", \"key\": 5, \"year\": 1999}\n{\"key\": \"b\", \"body\": [\"three\"], \"more\": {}}\n";
    fs::write(&path, lines).unwrap();
    let kept = vec!["year".to_owned()];
    let corpus = read(&path, columns("body", "key", "").kept(kept)).unwrap();
    assert_eq!(texts(&corpus), ["one two", "three"]);
    assert_eq!((corpus.documents.get(0).id, corpus.documents.get(1).id), ("5", "b"));
    assert_eq!(corpus.documents.value("year", 0), Some("1999"));
    assert_eq!(corpus.documents.value("year", 1), Some(""));
    let error = read(&path, Columns::default()).unwrap_err().to_string();
    assert!(error.contains("key `text`"), "{error}");
    fs::write(&path, "{\"text\": \"one\", \"id\": 3}\n").unwrap();
    assert_eq!(read(&path, Columns::default()).unwrap().documents.get(0).id, "3");
}

#[test]
fn every_file_of_a_folder_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("b/2.txt", "three\nfour"), ("a/1.txt", "one two"), ("a/.hidden", "no")] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(folder.path().join("0.txt"), "").unwrap();
    let corpus = read(folder.path(), Columns::default()).unwrap();
    assert_eq!(texts(&corpus), ["", "one two", "three four"]);
    let names: Vec<(&str, &str)> = corpus.documents.iter().map(|d| (d.id, d.label)).collect();
    assert_eq!(names, [("0.txt", ""), ("a/1.txt", "a"), ("b/2.txt", "b")]);
    fs::write(folder.path().join("a/bad"), b"x \xff").unwrap();
    let error = read(folder.path(), Columns::default()).unwrap_err().to_string();
    assert!(error.contains("bad` is not UTF-8"), "{error}");
    // Sentences are lines, so a folder of documents is not a text.
    let inputs = Inputs::new([folder.path()]);
    let error = latens_corpus::Corpus::read(&inputs, &Default::default(), &Default::default());
    assert!(matches!(error, Err(ReadError::Io { .. })));
}
