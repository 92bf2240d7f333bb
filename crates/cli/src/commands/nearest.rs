use crate::errors::hinted;
use crate::output::{Output, shown};
use anyhow::{Context, Result, ensure};
use clap::Args;
use latens::corpus::{WordId, open_input};
use latens::model::Model;
use latens::model::WordVectors;
use latens::tasks::analogies::{analogies, read_questions};
use serde::Serialize;
use serde_json::json;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Show the nearest neighbors of words
///
/// Reads a model with word vectors and prints the words with the highest cosine similarity to each given word. With
/// `--analogy`, words are grouped in threes: `man king woman` asks what is to woman as king is to man. `--questions`
/// answers a file of analogies and prints the accuracy.
#[derive(Args)]
pub(crate) struct NearestArgs {
    /// Model with word vectors
    model: PathBuf,
    /// Words to look up
    #[arg(required_unless_present = "questions", value_name = "WORD")]
    words: Vec<String>,
    /// Number of neighbors per word
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// Solve analogies: A is to B as C is to what? Words are grouped in threes
    #[arg(long)]
    analogy: bool,
    /// File of analogies, four words per line; lines that begin with `:` are section titles
    #[arg(long, value_name = "FILE", conflicts_with_all = ["words", "analogy"])]
    questions: Option<PathBuf>,
}

#[derive(Serialize)]
struct Neighbors {
    /// The query.
    word: String,
    nearest: Vec<Neighbor>,
}

#[derive(Serialize)]
struct Neighbor {
    word: String,
    similarity: f32,
}

pub(crate) fn run(args: &NearestArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let Some(vectors) = model.word_vectors() else {
        let (path, what) = (args.model.display(), model.description());
        return Err(hinted(
            format!("`{path}` is {what}, which has no word vectors"),
            "train a model with word vectors, e.g., `latens train word2vec news.txt -o news.word2vec`",
        ));
    };
    let vectors = &*vectors;
    if let Some(path) = &args.questions {
        return ask(path, model, vectors, output);
    }
    let ids = args.words.iter().map(|word| find(word, args, model, vectors));
    let ids: Vec<WordId> = ids.collect::<Result<_>>()?;
    let by = if args.analogy { 3 } else { 1 };
    ensure!(
        ids.len().is_multiple_of(by),
        "`--analogy` needs a multiple of three words, got {}",
        ids.len()
    );
    let neighbors = |(ids, words): (&[WordId], &[String])| Neighbors {
        word: words.join(" "),
        nearest: nearest(ids, args.n, model, vectors),
    };
    let neighbors: Vec<Neighbors> =
        ids.chunks(by).zip(args.words.chunks(by)).map(neighbors).collect();
    output.result(&json!({ "neighbours": neighbors }), |out| {
        for Neighbors { word, nearest } in &neighbors {
            writeln!(out, "{}", shown(word))?;
            for Neighbor { word, similarity } in nearest {
                writeln!(out, "  {similarity:.4} {}", shown(word))?;
            }
        }
        Ok(())
    })
}

/// Finds a word after the preprocessing of the model, or in lowercase.
fn find(
    word: &str,
    args: &NearestArgs,
    model: &dyn Model,
    vectors: &WordVectors,
) -> Result<WordId> {
    let lexicon = model.lexicon();
    let find = |word: &str| lexicon.vocab.get(word).filter(|&id| vectors.get(id).is_some());
    let found =
        find(&lexicon.preprocessing.normalize_word(word)).or_else(|| find(&word.to_lowercase()));
    found.with_context(|| format!("`{}` has no vector for the word `{word}`", args.model.display()))
}

fn nearest(ids: &[WordId], n: usize, model: &dyn Model, vectors: &WordVectors) -> Vec<Neighbor> {
    let query = match *ids {
        [a, b, c] => vectors.analogy(a, b, c),
        _ => vectors.get(ids[0]).map(<[f32]>::to_vec),
    };
    let found = vectors.nearest(&query.expect("all words have vectors"), n, ids).into_iter();
    let neighbor =
        |(id, similarity)| Neighbor { word: model.lexicon().vocab.word(id).to_owned(), similarity };
    found.map(neighbor).collect()
}

fn ask(path: &Path, model: &dyn Model, vectors: &WordVectors, output: &Output) -> Result<()> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = BufReader::new(open_input(path).with_context(reading)?);
    let questions = read_questions(&mut file).with_context(reading)?;
    let found = analogies(vectors, &model.lexicon().vocab, &questions);
    ensure!(
        found.n_asked > 0,
        "every question of `{}` contains a word without a vector",
        path.display()
    );
    let result = json!({
        "accuracy": found.accuracy(),
        "questions": found.n_asked,
        "skipped": found.n_skipped,
    });
    output.result(&result, |out| {
        writeln!(
            out,
            "accuracy {:.2} % on {} analogies; {} skipped because of words without vectors",
            100.0 * found.accuracy(),
            found.n_asked,
            found.n_skipped
        )
    })
}
