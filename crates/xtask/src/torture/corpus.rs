//! Small texts in every format, generated from the seed.

use super::random::Random;
use anyhow::Result;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const N_WORDS: usize = 60;
const N_SENTENCES: usize = 300;

/// Writes `text.txt`, `few.txt`, `tags.conll`, `documents.tsv` and `vectors.txt`.
pub(crate) fn write(folder: &Path, random: &mut Random) -> Result<()> {
    let sentences: Vec<Vec<usize>> = (0..N_SENTENCES).map(|_| sentence(random)).collect();
    let line = |words: &Vec<usize>| words.iter().map(spelled).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = sentences.iter().map(line).collect();
    let (mut tagged, mut documents) = (String::new(), String::new());
    for (words, line) in sentences.iter().zip(&lines) {
        words.iter().try_for_each(|word| writeln!(tagged, "{} T{}", spelled(word), word % 5))?;
        tagged.push('\n');
        writeln!(documents, "label{}\t{line}", words.len() % 3)?;
    }
    let mut vectors = format!("{N_WORDS} 4\n");
    for word in 0..N_WORDS {
        let values: Vec<String> =
            (0..4).map(|_| format!("{:.3}", random.fraction() * 2.0 - 1.0)).collect();
        writeln!(vectors, "{} {}", spelled(&word), values.join(" "))?;
    }
    fs::write(folder.join("text.txt"), lines.join("\n") + "\n")?;
    fs::write(folder.join("few.txt"), lines[..5].join("\n") + "\nneverseen w1\n")?;
    fs::write(folder.join("tags.conll"), tagged)?;
    fs::write(folder.join("documents.tsv"), documents)?;
    Ok(fs::write(folder.join("vectors.txt"), vectors)?)
}

/// A few words are unknown, so that every model has a probability for these.
fn spelled(word: &usize) -> String {
    if *word == 5 { "<unk>".to_owned() } else { format!("w{word}") }
}

/// Frequent words have small numbers, and a word makes its successor likely.
fn sentence(random: &mut Random) -> Vec<usize> {
    let mut word = 0;
    let n_tokens = 3 + random.below(9);
    let next = |_| {
        word = match random.below(3) {
            0 => (word + 1) % N_WORDS,
            _ => (N_WORDS as f64).powf(random.fraction()) as usize - 1,
        };
        word
    };
    (0..n_tokens).map(next).collect()
}
