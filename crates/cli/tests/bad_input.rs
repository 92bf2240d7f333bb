//! Bad input with the real program: one clear message, exit 2, nothing half-written, never a panic.

mod common;

use common::{Folder, Ran};
use flate2::Compression;
use flate2::write::GzEncoder;
use latens::math::Rng;
use std::fs;
use std::io::Write;
use std::process::Stdio;

fn train(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train ngram {args} -o model"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("model").exists(), "no model after {args}");
        assert!(!folder.names().iter().any(|name| name.contains(".part")), "{:?}", folder.names());
    }
    ran
}

#[test]
fn binary_files_are_rejected() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("blank", "\n \n\t\n");
    folder.write("broken", b"good line\nbad \xff\xfe line\n");
    folder.write("nul", b"good line\nNUL \0 line\n");
    folder.write("a.gz", "this is no gzip");
    fs::create_dir(folder.path().join("folder")).unwrap();
    train(&folder, "empty").assert_refused("`empty` is empty");
    train(&folder, "blank").assert_refused("no words in `blank`");
    train(&folder, "missing").assert_refused("cannot read `missing`");
    train(&folder, "folder").assert_refused("cannot read `folder`");
    train(&folder, "broken").assert_refused("`broken` is not UTF-8: invalid bytes in line 2");
    train(&folder, "nul").assert_refused("`nul` is not plain text: NUL byte in line 2");
    train(&folder, "a.gz").assert_refused("cannot read `a.gz`");
    assert!(train(&folder, "broken").stderr.contains("hint: "));
    assert_eq!(train(&folder, "broken --invalid replace").code, Some(0));
    assert_eq!(train(&folder, "nul --invalid replace").code, Some(0));
}

#[test]
fn malformed_lines_are_named() {
    let folder = Folder::new();
    folder.write("a.tsv", "label\ttext\nno tab here\n");
    folder.write("a.jsonl", "{\"text\": \"fine\"}\n{broken\n");
    folder.write("a.conllu", "1\tshort\n");
    train(&folder, "a.tsv").assert_refused("`a.tsv`, line 2");
    train(&folder, "a.jsonl").assert_refused("`a.jsonl`, line 2");
    train(&folder, "a.conllu").assert_refused("`a.conllu`, line 1");
}

#[test]
fn a_line_of_ten_megabytes_is_read() {
    let folder = Folder::new();
    let line = "word other ".repeat(10_000_000 / 11);
    folder.write("long", &line);
    let ran = folder.json("train ngram long --order 2 -o model");
    assert_eq!(ran["tokens"], 2 * (10_000_000 / 11) + 1);
    folder.write("letter", "x".repeat(10_000_000));
    assert_eq!(folder.json("train ngram letter -o model")["tokens"], 2);
}

/// A compressed file of 300 MiB of one byte, which has no line breaks.
fn endless(byte: u8) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    let piece = vec![byte; 1 << 20];
    (0..300).for_each(|_| file.write_all(&piece).unwrap());
    file.finish().unwrap()
}

#[test]
fn text_without_line_breaks_is_refused() {
    let folder = Folder::new();
    folder.write("a.gz", endless(b'a'));
    folder.write("zero.gz", endless(0));
    folder.write("text", "some words\n");
    assert_eq!(train(&folder, "text").code, Some(0));
    let longer = "that begins here is longer than";
    for format in ["lines", "docs", "conll", "conllu", "jsonl"] {
        let record = if format.starts_with("conll") { "sentence" } else { "line" };
        let reading = format!("--format {format} --max-line");
        let refused = format!("`a.gz`, line 1: the {record} {longer} 2 MiB");
        let ran = folder.run(&format!("vocab a.gz {reading} 2M -o v"));
        ran.assert_refused(&refused);
        assert!(ran.stderr.contains("`--max-line` raises the limit"), "{}", ran.stderr);
        folder.run(&format!("perplexity model a.gz {reading} 2MiB")).assert_refused(&refused);
        folder
            .run(&format!("vocab zero.gz {reading} 1G -o v"))
            .assert_refused("`zero.gz` is not plain text: NUL byte in line 1");
    }
    folder
        .run("vocab a.gz -o v")
        .assert_refused(&format!("`a.gz`, line 1: the line {longer} 256 MiB"));
    folder
        .run("vocab text --max-line 10 -o v")
        .assert_refused(&format!("line 1: the line {longer} 10 bytes"));
    assert_eq!(folder.run("vocab text --max-line 11 -o v").code, Some(0));
    assert_eq!(folder.run("vocab text --max-line 0 -o v").code, Some(2));
}

#[test]
fn files_of_words_without_line_breaks_are_refused() {
    let folder = Folder::new();
    folder.write("a.gz", endless(b'a'));
    folder.write("zero.gz", endless(0));
    folder.write("vectors", "a 1 2\n");
    assert_eq!(folder.run("import vectors --from glove -o v").code, Some(0));
    for (command, limit) in [
        ("import FILE --from arpa -o m", "256 MiB"),
        ("import FILE --from paths -o m", "256 MiB"),
        ("import FILE --from word2vec -o m", "16 MiB"),
        ("import FILE --from glove -o m", "16 MiB"),
        ("nearest v --questions FILE", "256 MiB"),
    ] {
        let ran = folder.run(&command.replace("FILE", "a.gz"));
        ran.assert_refused(&format!("line 1: it is longer than {limit}"));
        assert!(ran.stderr.contains("`a.gz`"), "{}", ran.stderr);
        let ran = folder.run(&command.replace("FILE", "zero.gz"));
        ran.assert_refused("line 1: it contains a NUL byte");
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    train(&folder, "text --order 7")
        .assert_refused("`order` must be at least 1 and at most 6, got 7");
    train(&folder, "text --cache-weight 1").assert_refused("`cache_weight` must be");
    train(&folder, "text --min-counts 3,1").assert_refused("`min_counts` must be");
    train(&folder, "text --resume")
        .assert_refused("the checkpoint `model.checkpoint` does not exist");
    assert_eq!(folder.run("train ngram text --no-such-flag -o model").code, Some(2));
    folder.run("reproduce no-such --data .").assert_refused("unknown experiment `no-such`");
    folder.run("reproduce lm-baselines --data .").assert_refused("ptb-lm");
}

fn train_hmm(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train hmm {args} -o hmm"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("hmm").exists(), "no model after {args}");
    }
    ran
}

#[test]
fn mismatched_clusters_and_states_are_rejected() {
    let folder = Folder::new();
    folder.write("text", "a b c d\nb c a\nd a b c\n");
    train_hmm(&folder, "text --n-states 18 --n-clusters 9")
        .assert_refused("`n_clusters` must be at most 4, the number of distinct words, got 9");
    train_hmm(&folder, "text --n-states 10 --n-clusters 3")
        .assert_refused("`n_states` must be a multiple of `n_clusters` = 3, got 10");
    let two = "--n-states 4 --n-clusters 2 --dim 4 --epochs 1";
    train_hmm(&folder, &format!("missing {two} --clusters absent")).assert_refused("`absent`");
    folder.write("lacking", "0\ta\t4\n1\tb\t3\n");
    train_hmm(&folder, &format!("text {two} --clusters lacking"))
        .assert_refused("none for 2 words, among them `c`");
    folder.write("whole", "0\ta\t4\n0\tb\t3\n1\tc\t3\n1\td\t2\n");
    train_hmm(&folder, "text --n-states 4 --n-clusters 4 --clusters whole")
        .assert_refused("`n_clusters` must be 2, the number of clusters given, got 4");
    folder.write("empty", "");
    for (name, problem) in [("text", "line 1"), ("empty", "there are no clusters"), (".", "`.`")] {
        train_hmm(&folder, &format!("text {two} --clusters {name}")).assert_refused(problem);
    }
    assert_eq!(train_hmm(&folder, &format!("text {two} --clusters whole")).code, Some(0));
    folder.run("perplexity whole text").assert_refused("`whole` is not a latens model");
}

#[test]
fn an_impossible_validation_sentence_is_named() {
    let folder = Folder::new();
    folder.write("text", "a b c d\nb c a\nd a b c\n");
    folder.write("new", "a b c d\na b never c\nnever\n");
    let scalar = "--constraint none --n-states 3 --parameterization scalar --epochs 30";
    let refused = train_hmm(&folder, &format!("text {scalar} --prior 0 --valid new"));
    refused.assert_refused("cannot score the validation text: no state can emit `<unk>`");
    assert!(refused.stderr.contains("--min-count 2"), "{}", refused.stderr);
    assert_eq!(train_hmm(&folder, &format!("text {scalar} --prior 0")).code, Some(0));
    let ran = folder.run("perplexity hmm new");
    ran.assert_refused(
        "sentence 2 is impossible under `hmm`: its token 3, `<unk>`, has probability zero",
    );
    assert!(
        ran.stderr.contains("hint: ") && ran.stderr.contains("--min-count 2"),
        "{}",
        ran.stderr
    );
    folder.write("other", "a b c d\n\nd d d d\n");
    let ran = folder.run("perplexity hmm other --json");
    ran.assert_refused("sentence 2 is impossible under `hmm`: its token 1, `<eos>`");
    assert!(ran.stderr.contains("--prior 0.01"), "{}", ran.stderr);
    assert_eq!(train_hmm(&folder, &format!("text {scalar}")).code, Some(0));
    assert_eq!(folder.run("perplexity hmm other").code, Some(0));
}

#[test]
fn divergence_is_an_error_that_names_the_learning_rate() {
    let folder = Folder::new();
    folder.write("text", "a b c d\nb c a\nd a b c\n");
    let check = |flags: &str| {
        let ran = train_hmm(&folder, &format!("text --constraint none --n-states 4 {flags}"));
        if ran.code == Some(0) {
            let scored = folder.json("perplexity hmm text");
            assert!(scored["perplexity"].is_number(), "{flags}: {scored}");
            fs::remove_file(folder.path().join("hmm")).unwrap();
        } else {
            ran.assert_refused("lower `learning_rate`");
        }
        ran.code
    };
    for (epochs, rate) in [(1, "1e30"), (1, "1e300"), (5, "1e38"), (5, "1e300")] {
        let flags = format!("--epochs {epochs} --learning-rate {rate}");
        assert_eq!(check(&format!("{flags} --dim 4")), Some(2));
        assert_eq!(check(&format!("{flags} --dim 4 --parameterization factored")), Some(2));
        // Logits of any size make probabilities, some of them 1.
        check(&format!("{flags} --parameterization scalar --learning gradient"));
        // Held-out text may show that an epoch's model was sound.
        check(&format!("{flags} --dim 4 --valid text --batch-tokens 5"));
    }
    for rate in ["1", "1e2", "1e4", "1e10"] {
        check(&format!("--dim 4 --learning-rate {rate} --schedule constant --epochs 20"));
        check(&format!("--dim 4 --learning-rate {rate} --epochs 20 --valid text"));
    }
}

#[test]
fn unwritable_outputs_are_rejected_before_training() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    fs::create_dir(folder.path().join("folder")).unwrap();
    folder.run("train ngram text -o folder").assert_refused("cannot write `folder`");
    folder.run("train ngram text -o absent/model").assert_refused("cannot write `absent/model`");
    folder
        .run("count text --lags 2 -o absent/counts")
        .assert_refused("cannot write `absent/counts`");
    folder.run("train ngram text -o text/model").assert_refused("cannot write `text/model`");
    folder.run("train ngram text -o m --log text/log").assert_refused("cannot write `text/log`");
    let dash = folder.run("vocab text -o -");
    dash.assert_refused("`-` cannot be an output");
    assert!(dash.stderr.contains("hint: use `/dev/stdout`"), "{}", dash.stderr);
    assert_eq!(folder.names(), ["folder", "text"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    let ran = folder.run("train ngram text -o /dev/full");
    ran.assert_refused("cannot write `/dev/full`");
    assert!(ran.stderr.contains("hint: free some space"), "{}", ran.stderr);
    folder.run("vocab text -o /dev/full").assert_refused("cannot write `/dev/full`");
}

#[test]
fn a_damaged_model_is_never_used() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\nb c a\n".repeat(20));
    assert_eq!(train(&folder, "text --order 3").code, Some(0));
    let whole = fs::read(folder.path().join("model")).unwrap();
    let mut rng = Rng::new(1);
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    for _ in 0..10 {
        folder.write("cut", &whole[..below(whole.len())]);
        folder.run("perplexity cut text").assert_refused("`cut` is");
    }
    for _ in 0..200 {
        let mut damaged = whole.clone();
        damaged[below(whole.len())] ^= 1 << below(8);
        folder.write("flipped", &damaged);
        let ran = folder.run("perplexity flipped text");
        ran.assert_refused("flipped");
    }
    folder.write("foreign", "just some text, not a model\n");
    folder.run("perplexity foreign text").assert_refused("`foreign` is not a latens model");
    folder.run("inspect text").assert_refused("not a latens model");
    folder.run("inspect missing").assert_refused("cannot read `missing`");
}

#[test]
fn other_counts_and_vocabularies_are_rejected() {
    let folder = Folder::new();
    folder.write("a", "x y z\n");
    folder.write("b", "p q r\n");
    folder.json("count a --lags 2 -o a.counts");
    folder.json("count b --lags 2 -o b.counts");
    folder.run("count --merge a.counts b.counts -o c").assert_refused("a different vocabulary");
    folder.run("count --merge a -o c").assert_refused("`a` is not a file of kind `lag counts`");
    folder
        .run("inspect a.counts")
        .assert_refused("`a.counts` is not a file of kind `model`: it is of kind `lag counts`");
    folder.run("count a --lags 0 -o c").assert_refused("lags");
    folder.run("train ngram a --vocab b -o model").assert_refused("`b` is not a vocabulary file");
    assert_eq!(folder.names(), ["a", "a.counts", "b", "b.counts"]);
}

#[test]
fn a_foreign_file_with_the_name_of_the_checkpoint_is_kept() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    folder.write("model.checkpoint", "mine");
    train(&folder, "text").assert_refused("the checkpoint path `model.checkpoint` exists");
    train(&folder, "text --resume").assert_refused("`model.checkpoint` is not a latens model");
    let brown = folder.run("train brown text --n-clusters 2 -o model");
    brown.assert_refused("the checkpoint path `model.checkpoint` exists");
    assert_eq!(fs::read(folder.path().join("model.checkpoint")).unwrap(), b"mine");
}

#[test]
fn the_demo_does_not_overwrite_other_files() {
    for name in ["train.txt", "documents.tsv", "demo.ngram", "demo.brown"] {
        let folder = Folder::new();
        folder.write(name, "mine");
        let ran = folder.run("demo -o .");
        ran.assert_refused(&format!("`./{name}` exists"));
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
        assert_eq!(folder.names(), [name]);
    }
}

#[test]
fn errors_are_reported_before_the_text_is_read() {
    let folder = Folder::new();
    folder.write("text", "a b\n");
    // The text is missing, too, but that would be found out last.
    train(&folder, "missing --resume").assert_refused("does not exist");
    train(&folder, "missing --valid gone").assert_refused("cannot read `gone`");
    train(&folder, "missing --valid .").assert_refused("cannot read `.`");
    train(&folder, "missing --log absent/log").assert_refused("cannot write `absent/log`");
    train(&folder, "- --valid -").assert_refused("can be given only once");
    folder.run("vocab - - -o v").assert_refused("can be given only once");
}

#[test]
fn fields_without_a_text_are_rejected() {
    let folder = Folder::new();
    folder.write("text", "a\tb\tc\n");
    for (args, message) in [
        ("--fields label", "`text` exactly once"),
        ("--fields text,text", "`text` exactly once"),
        ("--fields label,label,text", "`label` more than once"),
        ("--fields split,split,text", "`split` more than once"),
        ("--fields label,text --format lines", "`--fields` requires the format `docs`"),
    ] {
        train(&folder, &format!("text {args}")).assert_refused(message);
    }
    assert_eq!(train(&folder, "text --fields skip,skip,text --format docs").code, Some(0));
}

#[test]
fn flags_without_an_effect_are_rejected() {
    let folder = Folder::new();
    folder.write("text", "a b\n");
    folder.json("count text --lags 1 -o counts");
    for flag in [
        "--boundary stream",
        "--lowercase",
        "--tokenize blanks",
        "--digits keep",
        "--min-count 1",
        "--max-vocab 0",
        "--format lines",
        "--fields text",
        "--invalid error",
        "--lags 1",
        "--vocab text",
        "--cache kept",
    ] {
        let ran = folder.run(&format!("count --merge counts -o merged {flag}"));
        ran.assert_refused("cannot be used with");
    }
    folder.run("vocab text -o v --vocab text").assert_refused("--vocab");
    folder.run("import text --from arpa -o m --min-count 2").assert_refused("--min-count");
    folder.run("train ngram text --vocab v --tokenize blanks -o m").assert_refused("--tokenize");
}

#[cfg(target_os = "linux")]
#[test]
fn file_names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    let name = std::ffi::OsStr::from_bytes(b"name-\xff");
    let json = |args: &str| {
        let mut command = folder.command();
        command.args(args.split_whitespace()).arg("--json").arg("-o").arg(name);
        let ran = Ran::new(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["path"], "name-\u{fffd}", "{args}");
    };
    json("train ngram text");
    json("vocab text");
    folder.json("train ngram text -o model");
    json("export model --to arpa");
    folder.json("export model --to arpa -o arpa");
    json("import arpa --from arpa");
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_written_to_a_closed_pipe_is_an_error() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    let mut command = folder.command();
    command.args(["train", "ngram", "text", "-o", "/dev/stdout"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_messages_do_not_stop_the_work() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    for (args, code) in [("train ngram text -o model", 0), ("train ngram missing -o m", 2)] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = folder.command();
        let status = command.args(args.split(' ')).stdout(Stdio::null()).stderr(full).status();
        assert_eq!(status.unwrap().code(), Some(code), "{args}");
    }
}

/// Without a GPU, and without the feature that uses one, `--device cuda` is refused before anything is
/// learned; so is what a device cannot learn.
#[cfg(not(feature = "cuda"))]
#[test]
fn a_missing_device_is_an_error() {
    let folder = Folder::new();
    folder.write("text", "a b c\nb c a\nc a b\n");
    let small = "text --n-states 4 --n-clusters 2 --dim 4 --device cuda";
    train_hmm(&folder, small).assert_refused("cannot use the device `cuda`");
    let letters = format!("{small} --word-vectors chars");
    train_hmm(&folder, &letters).assert_refused("character-based word vectors");
    folder
        .run("train hmm text --device gpu -o hmm")
        .assert_refused("the device must be `cpu` or `cuda`");
}
