//! Text as people have it, with the real program: unknown words, Unicode, tweets, scripts without spaces, and outputs that
//! are compressed, absent or devices.

mod common;

use common::Folder;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

const SMALL: &str = "--n-states 16 --n-clusters 4 --dim 8 --epochs 1";

/// The words of a vocabulary that `latens vocab` learns.
fn words(folder: &Folder, args: &str) -> Vec<String> {
    folder.json(&format!("vocab {args} -o words.vocab"));
    let text = fs::read_to_string(folder.path().join("words.vocab")).unwrap();
    let words = text.lines().skip(3).map(|line| line.split('\t').next().unwrap().to_owned());
    words.collect()
}

#[test]
fn an_hmm_scores_ordinary_validation_text() {
    let folder = Folder::with_embedded_corpus();
    let ran = folder.run(&format!("train hmm train.txt --valid valid.txt {SMALL} -o m.hmm"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the text has no `<unk>`"), "{}", ran.stderr);
    let scored = folder.json("perplexity m.hmm test.txt");
    assert!(
        scored["perplexity"].as_f64().unwrap().is_finite() && scored["oov"].as_u64().unwrap() > 0
    );
    // It is the model of `--min-count 2`.
    folder
        .json(&format!("train hmm train.txt --valid valid.txt --min-count 2 {SMALL} -o same.hmm"));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("m.hmm"), read("same.hmm"));
    // The user decides, and text with `<unk>` or without rare words stays as it is.
    let ran =
        folder.run(&format!("train hmm train.txt --valid valid.txt --min-count 1 {SMALL} -o x"));
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("hint: `--min-count 2`"), "{}", ran.stderr);
    folder.write("unk.txt", "the <unk> sleeps\na dog barks\nthe dog\n".repeat(3) + "once\n");
    folder.write("once.txt", "each word occurs once\n");
    for (text, vocab) in [("unk.txt", 8), ("once.txt", 6)] {
        let trained = folder
            .json(&format!("train hmm {text} --n-states 4 --n-clusters 1 --dim 4 --epochs 1 -o y"));
        assert_eq!(trained["vocab"], vocab, "{text}");
    }
}

#[test]
fn figures_are_rounded_and_time_is_estimated() {
    let folder = Folder::with_embedded_corpus();
    let ran = folder.run("train ngram train.txt --min-count 2 --valid valid.txt -o m.ngram");
    let line = ran.stdout.lines().find(|line| line.starts_with("valid_perplexity ")).unwrap();
    assert!(line.len() <= "valid_perplexity 1234.56".len(), "{line}");
    let ran = folder.run("train ngram train.txt --min-count 2 --valid valid.txt -o m.ngram --json");
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        result["metrics"]["valid_perplexity"].to_string().len() > 10,
        "JSON has all digits: {result}"
    );
    assert!(!ran.stderr.contains("/0"), "{}", ran.stderr);
    // A long training says so before its first iteration; this one is not worth waiting for.
    let mut command = folder.command();
    command.args(
        "train hmm train.txt --n-states 1024 --n-clusters 4 --epochs 10000 -o long.hmm".split(' '),
    );
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first: Vec<String> =
        lines.take_while(|line| !line.starts_with("rough estimate: ")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!first.iter().any(|line| line.starts_with("learn")), "{first:?}");
    assert!(first.iter().any(|line| line.contains(" tokens, ")), "{first:?}");
}

#[test]
fn characters_have_one_spelling() {
    let folder = Folder::new();
    let (composed, decomposed) = ("caf\u{e9} na\u{ef}ve", "cafe\u{301} nai\u{308}ve");
    folder.write("a.txt", format!("{composed}\n{decomposed}\n"));
    let mut found = words(&folder, "a.txt");
    found.sort();
    assert_eq!(found, ["caf\u{e9}", "na\u{ef}ve"]);
    assert_eq!(words(&folder, "a.txt --normalize none").len(), 4);
    folder.write("b.txt", "\u{fb01}ne \u{ff21}\n");
    assert_eq!(words(&folder, "b.txt --normalize nfkc"), ["A", "fine"]);
    // The model stores it, and later text is treated alike.
    folder.json("train ngram a.txt -o m.ngram");
    assert_eq!(folder.json("inspect m.ngram")["preprocessing"]["normalize"], "nfc");
    folder.write("c.txt", format!("{decomposed}\n"));
    assert_eq!(folder.json("perplexity m.ngram c.txt")["oov"], 0);
    folder.json("train ngram a.txt --normalize none -o m.ngram");
    folder.write("d.txt", "cafe\u{301} caf\u{e9}\n");
    assert_eq!(folder.json("perplexity m.ngram d.txt")["oov"], 0);
    // Taggers, too.
    folder.write("t.conll", "caf\u{e9} N\nna\u{ef}ve A\n\n".repeat(3));
    folder.json("tag train t.conll --column 2 -o t.tagger");
    folder.write("u.conll", "cafe\u{301} N\nnai\u{308}ve A\n");
    let scores = folder.json("tag eval t.tagger u.conll");
    assert_eq!((&scores["oov_tokens"], &scores["accuracy"]), (&0.into(), &1.0.into()));
    // What is written is what was read.
    assert!(folder.run("tag run t.tagger u.conll").stdout.starts_with("cafe\u{301}\tN\tN\n"));
}

#[test]
fn tweets_keep_their_tags_and_text_without_spaces_is_noticed() {
    let folder = Folder::new();
    folder.write("tweets.txt", "RT @user: #NLP rocks, see https://t.co/x1?y=2!\n");
    let mut found = words(&folder, "tweets.txt --tokenize tweets");
    found.sort();
    assert_eq!(
        found,
        ["!", "#NLP", ",", ":", "@user", "RT", "https://t.co/x1?y=2", "rocks", "see"]
    );
    assert_eq!(
        words(&folder, "tweets.txt --tokenize blanks"),
        words(&folder, "tweets.txt --tokenize whitespace")
    );

    folder.write("zh.txt", "我们在北京学习。\n他们在上海工作。\n");
    let warns = |args: &str| {
        let ran = folder.run(&format!("train ngram {args} -o m.ngram"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr.contains("are single characters")
    };
    assert!(warns("zh.txt --tokenize words"));
    assert!(!warns("zh.txt"));
    assert!(!warns("tweets.txt --tokenize words"));
}

#[test]
fn exports_are_compressed() {
    let folder = Folder::with_embedded_corpus();
    folder.json("train ngram train.txt --order 2 -o m.ngram");
    folder.json("export m.ngram --to arpa -o plain.arpa");
    folder.json("export m.ngram --to arpa -o m.arpa.gz");
    let mut text = String::new();
    let path = folder.path().join("m.arpa.gz");
    assert_eq!(fs::read(&path).unwrap()[..2], [0x1f, 0x8b]);
    latens::corpus::open_input(&path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, fs::read_to_string(folder.path().join("plain.arpa")).unwrap());
    folder.json("import m.arpa.gz --from arpa -o again.ngram");
}

#[test]
fn a_glove_file_with_spaces_in_words_is_read_again() {
    let folder = Folder::new();
    // The first word has no vector, and the second one a space.
    folder.write("in.txt", "of 0 0 0\nat name 1 2 3\nnew york 4 5 6\nthe 7 8 9\n");
    folder.json("import in.txt --from glove -o v.model");
    folder.json("export v.model --to glove -o out.txt");
    let out = fs::read_to_string(folder.path().join("out.txt")).unwrap();
    let mut lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "the 7 8 9");
    lines.sort_unstable();
    assert_eq!(lines, ["at name 1 2 3", "new york 4 5 6", "the 7 8 9"]);
    folder.json("import out.txt --from glove -o again.model");
    // What could not be read again is refused.
    folder.write("only.txt", "a 1 2 3\nroom five 4 5 6\n");
    folder.json("import only.txt --from glove -o w.model");
    folder.json("export w.model --to glove -o ok.txt");
}

#[test]
fn a_dry_run_needs_no_output_and_writes_no_cache() {
    let folder = Folder::with_embedded_corpus();
    let before = folder.names();
    for command in [
        "train ngram train.txt",
        "train hmm train.txt --n-states 16 --n-clusters 4",
        "train lda train.txt",
    ] {
        let cost = folder.json(&format!("{command} --dry-run --cache cache"));
        assert!(cost["memory_bytes"].as_u64().unwrap() > 0);
    }
    folder.write("t.conll", "a X\n");
    folder.json("tag train t.conll --column 2 --dry-run");
    fs::remove_file(folder.path().join("t.conll")).unwrap();
    assert_eq!(folder.names(), before);
    // Without it, the output is required.
    assert_eq!(folder.run("train ngram train.txt").code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_has_no_checkpoint() {
    let folder = Folder::with_embedded_corpus();
    let ran = folder.run("train word2vec train.txt --dim 4 --epochs 1 -o /dev/full");
    ran.assert_refused("cannot write `/dev/full`");
    assert!(!std::path::Path::new("/dev/full.checkpoint").exists());
    folder
        .run("train word2vec train.txt --resume -o /dev/full")
        .assert_refused("needs a checkpoint");
}
