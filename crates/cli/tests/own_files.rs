//! The real program never destroys a file that it reads or writes itself.

mod common;

use common::Folder;
use std::fs;

/// Commands with `IN` in the place of an input and `OUT` in the place of an output. The other files need not exist: the
/// overlap is found before any of them is read.
const COMMANDS: &[&str] = &[
    "train brown IN -o OUT",
    "train ff IN -o OUT",
    "train fhmm IN -o OUT",
    "train glda IN --vectors v -o OUT",
    "train glda text --vectors IN -o OUT",
    "train glda text --vectors v.npy --vectors-words IN -o OUT",
    "train hmm IN -o OUT",
    "train hmm text --clusters IN -o OUT",
    "train lda IN -o OUT",
    "train lda IN -o model --mixtures OUT",
    "train lda text --stop-words IN -o OUT",
    "train lds IN -o OUT",
    "train lstm IN -o OUT",
    "train ngram IN -o OUT",
    "train ngram a b IN -o OUT",
    "train ngram text --valid IN -o OUT",
    "train ngram text --vocab IN -o OUT",
    "train ngram IN -o model --log OUT",
    "train hmm text --clusters IN -o model --log OUT",
    "train rnn IN -o OUT",
    "train rnn text --init IN -o OUT",
    "train rnn text --init IN -o model --log OUT",
    "train word2vec IN -o OUT",
    "count IN --lags 1 -o OUT",
    "count text --lags 1 --vocab IN -o OUT",
    "count --merge IN -o OUT",
    "vocab IN -o OUT",
    "encode IN text -o OUT.tsv",
    "encode model IN -o OUT.tsv",
    "tag train IN --column 2 -o OUT",
    "tag train text --column 2 --dev IN -o OUT",
    "tag train text --column 2 --encoder IN -o OUT",
    "tag train text --column 2 --encoder IN:posterior -o OUT",
    "tag train text --column 2 --encoder IN -o model --log OUT",
    "tag run IN text -o OUT",
    "tag run tagger IN -o OUT",
    "topics infer IN text -o OUT",
    "topics infer model IN -o OUT",
    "topics infer model text --vectors IN -o OUT",
    "topics infer model text --vectors v.npy --vectors-words IN -o OUT",
    "topics map IN -o OUT",
    "topics trend IN text --by year -o OUT",
    "topics trend model IN --by year --plot OUT",
    "topics select IN --k 2,5 -o OUT",
    "export IN --to arpa -o OUT",
    "export IN --to npy -o matrix --words OUT",
    "import IN --from arpa -o OUT",
    "import matrix --from npy --words IN -o OUT",
];

/// Makes a file `IN` with other names, which are in the second place.
#[cfg(unix)]
fn names(folder: &Folder, extension: &str) -> Vec<(String, String)> {
    let name = |name: &str| format!("{name}{extension}");
    let at = |name: &str| folder.path().join(name);
    let input = name("input");
    folder.write(&input, "mine");
    fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink(&input, at(&name("soft"))).unwrap();
    fs::hard_link(at(&input), at(&name("hard"))).unwrap();
    std::os::unix::fs::symlink("..", at("folder/up")).unwrap();
    let others = ["input", "./input", "soft", "hard", "folder/../input", "folder/up/input"];
    others.map(|other| (input.clone(), name(other))).to_vec()
}

#[cfg(unix)]
#[test]
fn an_output_that_is_an_input_is_refused_by_every_name() {
    for command in COMMANDS {
        let extension = if command.contains("OUT.tsv") { ".tsv" } else { "" };
        let folder = Folder::new();
        for (input, output) in names(&folder, extension) {
            let args = command.replace("OUT.tsv", "OUT").replace("IN", &input);
            let ran = folder.run(&args.replace("OUT", &output));
            ran.assert_refused(&format!("`{output}` is both input and output"));
            assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
            assert_eq!(fs::read(folder.path().join(&input)).unwrap(), b"mine", "{command}");
        }
        let names = ["folder", "hard", "input", "soft"];
        let expected = names.map(|name| match name {
            "folder" => name.to_owned(),
            _ => format!("{name}{extension}"),
        });
        assert_eq!(folder.names(), expected, "{command}");
    }
}

#[test]
fn the_checkpoint_of_a_model_is_not_an_input() {
    let folder = Folder::new();
    folder.write("m.checkpoint", "mine");
    for args in [
        "train ngram m.checkpoint -o m",
        "train ngram m.checkpoint -o ./m --resume",
        "train rnn text --init m.checkpoint -o m",
        "train rnn text --init m.checkpoint -o m --resume",
        "tag train text --column 2 --encoder m.checkpoint -o m --resume",
    ] {
        folder.run(args).assert_refused("m.checkpoint` is both input and output");
        assert_eq!(fs::read(folder.path().join("m.checkpoint")).unwrap(), b"mine");
    }
}

#[test]
fn two_outputs_need_two_files() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    for (args, name) in [
        ("train ngram text -o m --log m", "m"),
        ("train ngram text -o m --log ./m.checkpoint", "./m.checkpoint"),
        ("tag train text --column 2 -o m --log ./m", "./m"),
        ("export text --to npy -o matrix --words ./matrix", "./matrix"),
    ] {
        let ran = folder.run(args);
        ran.assert_refused("would be written twice");
        assert!(ran.stderr.contains(&format!("`{name}`")), "{}", ran.stderr);
        assert_eq!(folder.names(), ["text"]);
    }
    // A device can be read and written, also twice.
    let ran = folder.run("train ngram text -o /dev/null --log /dev/null");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
