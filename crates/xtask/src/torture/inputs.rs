//! Text that nobody would write, for every command that reads text.

use super::effort::Effort;
use super::random::Random;
use super::runner::{Expected, Runner};
use anyhow::Result;
use std::fs::{self, File};

/// Commands that read the text `F`.
const COMMANDS: &[&str] = &[
    "vocab F -o odd.out",
    "vocab F --format conll -o odd.out",
    "vocab F --format conllu -o odd.out",
    "vocab F --format jsonl -o odd.out",
    "vocab F --fields label,text --tokenize words -o odd.out",
    "vocab F --invalid replace --tokenize words --lowercase -o odd.out",
    "count F --lags 2 -o odd.out",
    "train ngram F -o odd.out",
    "train brown F --n-clusters 3 -o odd.out",
    "train hmm F --n-states 4 --constraint none --dim 4 --epochs 1 -o odd.out",
    "train lda F --keep-all --n-topics 2 --n-iterations 3 -o odd.out",
    "tag train F --column 2 --n-iterations 3 -o odd.out",
    "perplexity ngram.model F",
    "perplexity lstm.model F",
    "encode hmm.model F",
    "encode word2vec.model F --invalid replace",
    "topics infer lda.model F",
    "tag run tagger.model F",
    "tag eval tagger.model F --column 2",
    "import F --from arpa -o odd.out",
    "import F --from paths -o odd.out",
    "import F --from word2vec -o odd.out",
    "import F --from word2vec-binary -o odd.out",
    "import F --from glove -o odd.out",
    "inspect F",
    "perplexity F few.txt",
];

pub(crate) fn run(runner: &mut Runner, effort: &Effort, random: &mut Random) -> Result<()> {
    for (name, bytes) in inputs(effort, random) {
        fs::write(runner.path(name), &bytes)?;
        // A large input takes long with trainers, and every command reads text in the same way.
        let commands = if bytes.len() > 1 << 14 { &COMMANDS[..7] } else { COMMANDS };
        for _ in 0..effort.n_commands {
            let command = random.choose(commands);
            runner.remove("odd.out");
            runner.remove("odd.out.checkpoint");
            runner.counts.inputs += 1;
            // Standard input and files are read in different ways.
            if random.below(4) == 0 && !name.contains('.') {
                let args = command.replace(" F", " -");
                let mut prepared = runner.command(&args);
                prepared.stdin(File::open(runner.path(name))?);
                runner.check(prepared, &format!("{args} < {name}"), Expected::Either)?;
            } else {
                let args = command.replace(" F", &format!(" {name}"));
                runner.run(&args, Expected::Either)?;
            }
        }
    }
    Ok(())
}

fn inputs(effort: &Effort, random: &mut Random) -> Vec<(&'static str, Vec<u8>)> {
    let n = effort.max_input;
    let noise = |n: usize, random: &mut Random| -> Vec<u8> {
        (0..n).map(|_| random.below(256) as u8).collect()
    };
    vec![
        ("empty", vec![]),
        ("newline", b"\n".to_vec()),
        ("spaces", b"   \t \n \n\t\n".to_vec()),
        ("only-crlf", b"\r\n\r\n\r".to_vec()),
        ("crlf", b"w1 w2\r\nw3\r\n".to_vec()),
        ("bom", b"\xef\xbb\xbfw1 w2\nw3\n".to_vec()),
        ("utf-16", b"\xff\xfew\x001\x00\n\x00".to_vec()),
        ("nul", b"w1 \0 w2\nw\x003\n".to_vec()),
        ("invalid-utf-8", b"w1 \xff\xfe w2\n\xc3\x28 w3\n\xf0\x9f\n".to_vec()),
        ("surrogate", b"{\"text\":\"\\ud800 w1\"}\n{\"text\":\"\xed\xa0\x80\"}\n".to_vec()),
        ("controls", b"\x1b[31mw1\x07 \x7f\xc2\x85w2\xe2\x80\xae w3\n".to_vec()),
        ("separators", "w1\u{2028}w2\u{a0}w3\u{3000}\u{200b} \u{feff}w4\n".into()),
        ("one-word", b"w1".to_vec()),
        ("tabs", b"\t\t\t\nw1\t\t\n\tw2\n".to_vec()),
        ("deep-json", b"[".repeat(10_000)),
        ("conll-holes", b"w1 T1\n\n\n\nw2\nw3 T2 T3 T4\n".to_vec()),
        ("special-words", b"<unk> <eos> <s> </s> -DOCSTART- <num>\n".to_vec()),
        ("combining", "e\u{301}".repeat(3000).into_bytes()),
        ("numbers", b"1e400 -1e400 inf 0x10 18446744073709551616\n".to_vec()),
        ("noise", noise(4096, random)),
        ("noise.gz", noise(512, random)),
        ("noise.zst", noise(512, random)),
        ("empty.gz", vec![]),
        ("text.gz", b"w1 w2\n".to_vec()),
        ("text.zst", b"w1 w2\n".to_vec()),
        ("long-word", vec![b'x'; n]),
        ("long-line", b"w1 ".repeat(n / 3)),
        ("empty-lines", vec![b'\n'; n / 8]),
        ("many-words", many_words(n)),
    ]
}

fn many_words(n: usize) -> Vec<u8> {
    (0..n / 8).flat_map(|i| format!("v{i:x} \n").into_bytes()).collect()
}
