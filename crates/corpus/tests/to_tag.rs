//! Text to be tagged, and its places in the source.

use latens_corpus::{ColumnGuess, Format, Inputs, Layout, SourceText, TextToTag, Tokenize};

fn read(name: &str, text: &str, guess: Option<&ColumnGuess<'_>>) -> TextToTag {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    TextToTag::read(&Inputs::new([path]), Tokenize::Words, guess).unwrap()
}

/// The words cut out of the text by their offsets.
fn cut(source: &SourceText) -> Vec<String> {
    let chars: Vec<char> = source.text.chars().collect();
    source.words.iter().map(|word| chars[word.clone()].iter().collect()).collect()
}

#[test]
fn offsets_of_plain_text_count_characters() {
    let read = read("a.txt", "\u{1F600} Ça va?\n\n e\u{301}te\u{301} 東京\n", None);
    assert_eq!(read.layouts.len(), 2);
    for i in 0..2 {
        assert_eq!(cut(&read.source_text(i)), read.sentences.get(i).words());
    }
    assert_eq!(read.source_text(0).words, [0..1, 2..4, 5..7, 7..8]);
    assert_eq!(read.source_text(1).words, [1..6, 7..8, 8..9]);
}

#[test]
fn lines_that_are_not_tokens_are_kept() {
    let row = |id: &str, word: &str, misc: &str| {
        format!("{id}\t{word}\t{}\t{misc}\n", ["_"; 7].join("\t"))
    };
    let text = format!(
        "# a\n{}{}{}\n# b\n\n# text = Un  x\n{}{}{}# late\n\n# end\n",
        row("1", "No", "SpaceAfter=No"),
        row("1.1", "no", "_"),
        row("2", ".", "_"),
        row("1-2", "Un", "_"),
        row("1", "a", "_"),
        row("2", "b", "_") + &row("3", "x", "_"),
    );
    let read = read("a.conllu", &text, None);
    assert_eq!(read.sentences.len(), 2);
    let mut again = String::new();
    for layout in &read.layouts {
        let Layout::Conllu(lines) = layout else { panic!("{layout:?}") };
        lines.iter().for_each(|(line, _)| again += &format!("{line}\n"));
        again += "\n";
    }
    read.rest.iter().for_each(|line| again += &format!("{line}\n"));
    assert_eq!(again, format!("{text}\n"));
    assert_eq!(read.source_text(0).text, "No.");
    assert_eq!(cut(&read.source_text(0)), ["No", "."]);
    // The words of a multiword token share its place; the text keeps its spaces.
    assert_eq!(read.source_text(1).text, "Un  x");
    assert_eq!(cut(&read.source_text(1)), ["Un", "Un", "x"]);
}

#[test]
fn a_text_that_does_not_fit_its_words_is_made_of_the_words() {
    let row = |id: &str, word: &str| format!("{id}\t{word}\t{}\n", ["_"; 8].join("\t"));
    let read =
        read("a.conllu", &format!("# text = other\n{}{}", row("1", "a"), row("2", "b")), None);
    assert_eq!(read.source_text(0), SourceText { text: "a b".into(), words: vec![0..1, 2..3] });
}

#[test]
fn columns_without_an_extension_are_guessed_across_blocks() {
    let sentence = "dogs N\nbark V\n\n";
    let text = sentence.repeat((3 << 20) / sentence.len());
    let guess = ColumnGuess { tags: ["N", "V"].into(), column: Some(1) };
    let found = read("a.txt", &text, Some(&guess));
    assert_eq!(found.sentences.len(), (3 << 20) / sentence.len());
    assert!(found.sentences.iter().all(|sentence| sentence.words() == ["dogs", "bark"]));
    assert_eq!(found.guessed.len(), 1);
    // Without a guess, and in a given format, the text is what it says.
    assert_eq!(read("a.txt", "dogs N\nbark V\n", None).sentences.get(0).words(), ["dogs", "N"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "dogs N\nbark V\n").unwrap();
    let inputs = Inputs::new([path]).format(Format::Lines);
    let found = TextToTag::read(&inputs, Tokenize::Whitespace, Some(&guess)).unwrap();
    assert_eq!(found.sentences.len(), 2);
}
