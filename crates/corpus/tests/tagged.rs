//! Tagged sentences from files and from memory.

use latens_corpus::{Inputs, ReadError, TaggedSentences, Tokenize};

fn read(name: &str, text: &str) -> Result<TaggedSentences, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    TaggedSentences::read(&Inputs::new([path]))
}

#[test]
fn all_columns_are_kept() {
    let tagged = read("a.conll", "Dogs NNS B-NP\nbark VBP\n\nNo UH O\n").unwrap();
    assert_eq!((tagged.len(), tagged.n_tokens()), (2, 3));
    let first = tagged.get(0);
    assert_eq!(first.column(1), Some(vec!["NNS", "VBP"]));
    assert_eq!(first.column(2), None);
    assert_eq!(tagged.get(1).cell(0, 2), Some("O"));
    let row = format!("1\tNo\t{}", ["_"; 8].join("\t"));
    let conllu = read("a.conllu", &format!("# text = No\n{row}\n\n")).unwrap();
    assert_eq!(conllu.get(0).column(9), Some(vec!["_"]));
    assert_eq!(conllu.get(0).words(), ["No"]);
    let json = read("a.jsonl", "{\"text\":\"a b\",\"tags\":[\"X\",\"Y\"]}\n").unwrap();
    assert_eq!(json.get(0).column(1), Some(vec!["X", "Y"]));
    assert_eq!(json.get(0).word(1), "b");
}

#[test]
fn rows_in_memory_are_read_like_the_same_rows_in_a_file() {
    let rows = [vec![("Dogs", "NNS"), ("bark", "VBP")], vec![], vec![("No", "UH")]];
    let memory = TaggedSentences::from_rows(rows).unwrap();
    let file = read("a.conll", "Dogs NNS\nbark VBP\n\nNo UH\n").unwrap();
    assert_eq!((memory.len(), memory.n_tokens()), (file.len(), file.n_tokens()));
    for (a, b) in memory.iter().zip(file.iter()) {
        assert_eq!(a.words(), b.words());
        assert!((0..a.len()).all(|i| a.row(i) == b.row(i)));
    }
    let owned = vec![vec![("Dogs".to_owned(), "NNS".to_owned())]];
    assert_eq!(TaggedSentences::from_rows(owned).unwrap().get(0).row(0), ["Dogs", "NNS"]);
}

#[test]
fn rows_in_memory_must_be_readable_again() {
    let message =
        |rows: Vec<Vec<(&str, &str)>>| TaggedSentences::from_rows(rows).unwrap_err().to_string();
    assert_eq!(message(vec![]), "there are no words in `rows`");
    assert_eq!(message(vec![vec![]]), "there are no words in `rows`");
    for row in [("", "X"), ("a", ""), ("a\tb", "X"), ("a", "X\n")] {
        let message = message(vec![vec![("good", "X")], vec![row]]);
        assert!(message.starts_with("sentence 2: the token \""), "{message}");
    }
}

#[test]
fn part_and_with_column_leave_the_rest_unchanged() {
    let tagged = read("a.conll", "No UH O\n\nDogs NNS B-NP\nbark VBP\n\nGo VB O\n").unwrap();
    let part = tagged.part(1..3);
    assert_eq!((part.len(), part.n_tokens()), (2, 3));
    assert_eq!(part.get(0).row(0), ["Dogs", "NNS", "B-NP"]);
    assert_eq!(part.get(0).row(1), ["bark", "VBP"]);
    assert_eq!(part.get(1).words(), ["Go"]);
    assert!(tagged.part(2..2).is_empty());

    let coarse = part.with_column(1, |tag| if tag.starts_with('V') { "VERB" } else { tag });
    assert_eq!(coarse.get(0).column(1), Some(vec!["NNS", "VERB"]));
    assert_eq!(coarse.get(1).row(0), ["Go", "VERB", "O"]);
    assert_eq!(coarse.get(0).words(), ["Dogs", "bark"]);
    assert_eq!(part.with_column(2, |_| "O").get(0).row(1), ["bark", "VBP"]);
}

#[test]
fn the_error_for_a_missing_column_names_sentence_and_word() {
    let tagged = read("a.conll", "No UH O\n\nDogs NNS B-NP\nbark VBP\n").unwrap();
    assert_eq!(tagged.check_column(1), Ok(()));
    let expected = "there is no column 3: the word `bark` in sentence 2 has 2";
    assert_eq!(tagged.check_column(2).unwrap_err().to_string(), expected);
}

#[test]
fn read_any_gives_text_without_columns_a_column_of_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "No, no!\n\nDogs bark\n").unwrap();
    let read =
        |tokenize| TaggedSentences::read_any(&Inputs::new([path.clone()]), tokenize).unwrap();
    let tagged = read(Tokenize::Words);
    assert_eq!(tagged.len(), 2);
    assert_eq!(tagged.get(0).words(), ["No", ",", "no", "!"]);
    assert_eq!(tagged.get(1).row(1), ["bark"]);
    assert_eq!(read(Tokenize::Whitespace).get(0).column(0), Some(vec!["No,", "no!"]));
}

#[test]
fn text_without_columns_is_refused() {
    assert!(read("a.txt", "just words\n").is_err());
    assert!(read("a.conll", "\n\n").is_err());
}

/// The message about `bad`, which follows a text that fills several blocks, and its line.
fn message_about(name: &str, good: &str, bad: &str) -> (String, String) {
    let good = good.repeat((3 << 20) / good.len());
    let line = good.lines().count() + 1;
    let error = read(name, &format!("{good}{bad}")).unwrap_err();
    (error.to_string(), format!("{name}`, line {line}: "))
}

#[test]
fn a_bad_line_is_named_wherever_it_is() {
    let row = |id: &str| format!("{id}\tNo\t{}\n", ["_"; 8].join("\t"));
    let sentence = format!("# text = No\n{}{}\n", row("1-2"), row("1"));
    let cases = [
        ("a.conllu", sentence.as_str(), "1\tNo\t_\n\n", "expected the 10 tab-separated columns"),
        ("a.conllu", &sentence, "1\t\t_\t_\t_\t_\t_\t_\t_\t_\n", "the token \"\" is empty"),
        (
            "a.jsonl",
            "{\"text\":[\"a\"],\"tags\":[\"X\"]}\n",
            "{\"text\":\"b\"}\n",
            "a sentence without",
        ),
    ];
    for (name, good, bad, problem) in cases {
        let (message, place) = message_about(name, good, bad);
        assert!(message.contains(&format!("{place}{problem}")), "{message} at {place}");
    }
}

#[test]
fn bytes_that_are_not_text_are_named_by_their_line() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.conll", "a.conllu"] {
        let path = folder.path().join(name);
        let good = "# a comment\n\n".repeat(1 << 17);
        for (bad, problem) in [(&b"a\0b"[..], "NUL byte"), (b"a\xffb", "invalid bytes")] {
            std::fs::write(&path, [good.as_bytes(), b"# next\n", bad, b"\n\n"].concat()).unwrap();
            let message = TaggedSentences::read_file(&path).unwrap_err().to_string();
            let expected = format!("{problem} in line {}", (1 << 18) + 2);
            assert!(message.ends_with(&expected), "{message}");
        }
    }
}
