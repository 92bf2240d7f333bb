use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Context, Result, ensure};
use clap::Args;
use latens::corpus::{WordId, open_input};
use latens::model::Model;
use latens::model::WordVectors;
use latens::tasks::analogies::{analogies, read_questions};
use serde::Serialize;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Show the words nearest to others by a model's vectors
///
/// A model with word vectors and some words go in; out come for each of them the words whose vectors point the same
/// way, with the cosine of the angle. With `--analogy`, words are taken by three: `man king woman` asks what is to
/// woman as king is to man. With `--questions` a list of analogies is asked, and the share of right answers printed.
#[derive(Args)]
pub(crate) struct NearestArgs {
    /// A model that has word vectors
    model: PathBuf,
    /// Words
    #[arg(required_unless_present = "questions", value_name = "WORD")]
    words: Vec<String>,
    /// How many words to show for each
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// A is to B as C is to what? Words are taken by three
    #[arg(long)]
    analogy: bool,
    /// Ask the analogies of this file, four words a line; lines that begin with `:` are titles
    #[arg(long, value_name = "FILE", conflicts_with_all = ["words", "analogy"])]
    questions: Option<PathBuf>,
}

#[derive(Serialize)]
struct Neighbours {
    /// What was asked for.
    word: String,
    nearest: Vec<Neighbour>,
}

#[derive(Serialize)]
struct Neighbour {
    word: String,
    similarity: f32,
}

pub(crate) fn run(args: &NearestArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let Some(vectors) = model.word_vectors() else {
        let (path, what) = (args.model.display(), model.description());
        return Err(hinted(
            format!("`{path}` is {what}: it has no word vectors"),
            "train a model that has them, e.g., `latens train word2vec news.txt -o news.word2vec`",
        ));
    };
    let vectors = &*vectors;
    if let Some(path) = &args.questions {
        return ask(path, model, vectors, output);
    }
    let ids = args.words.iter().map(|word| find(word, args, model, vectors));
    let ids: Vec<WordId> = ids.collect::<Result<_>>()?;
    let by = if args.analogy { 3 } else { 1 };
    ensure!(ids.len().is_multiple_of(by), "`--analogy` takes words by three, got {}", ids.len());
    let neighbours = |(ids, words): (&[WordId], &[String])| Neighbours {
        word: words.join(" "),
        nearest: nearest(ids, args.n, model, vectors),
    };
    let neighbours: Vec<Neighbours> =
        ids.chunks(by).zip(args.words.chunks(by)).map(neighbours).collect();
    output.result(&json!({ "neighbours": neighbours }), |out| {
        for Neighbours { word, nearest } in &neighbours {
            writeln!(out, "{word}")?;
            for Neighbour { word, similarity } in nearest {
                writeln!(out, "  {similarity:.4} {word}")?;
            }
        }
        Ok(())
    })
}

/// The word as the model reads it, or else in small letters.
fn find(
    word: &str,
    args: &NearestArgs,
    model: &dyn Model,
    vectors: &WordVectors,
) -> Result<WordId> {
    let lexicon = model.lexicon();
    let find = |word: &str| lexicon.vocab.get(word).filter(|&id| vectors.get(id).is_some());
    let found = find(&lexicon.preprocessing.normalize(word)).or_else(|| find(&word.to_lowercase()));
    found.with_context(|| format!("`{}` has no vector of the word `{word}`", args.model.display()))
}

fn nearest(ids: &[WordId], n: usize, model: &dyn Model, vectors: &WordVectors) -> Vec<Neighbour> {
    let query = match *ids {
        [a, b, c] => vectors.analogy(a, b, c),
        _ => vectors.get(ids[0]).map(<[f32]>::to_vec),
    };
    let found = vectors.nearest(&query.expect("all words have vectors"), n, ids).into_iter();
    let neighbour = |(id, similarity)| Neighbour {
        word: model.lexicon().vocab.word(id).to_owned(),
        similarity,
    };
    found.map(neighbour).collect()
}

fn ask(path: &Path, model: &dyn Model, vectors: &WordVectors, output: &Output) -> Result<()> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut text = String::new();
    open_input(path).and_then(|mut file| file.read_to_string(&mut text)).with_context(reading)?;
    let questions = read_questions(&text).with_context(reading)?;
    let found = analogies(vectors, &model.lexicon().vocab, &questions);
    ensure!(found.n_asked > 0, "no question of `{}` has words with vectors only", path.display());
    let result = json!({
        "accuracy": found.accuracy(),
        "questions": found.n_asked,
        "skipped": found.n_skipped,
    });
    output.result(&result, |out| {
        writeln!(
            out,
            "{:.2} % of {} analogies right; {} skipped, with words that have no vector",
            100.0 * found.accuracy(),
            found.n_asked,
            found.n_skipped
        )
    })
}
