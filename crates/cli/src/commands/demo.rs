mod result;
mod topics;

use self::result::ModelResult;
use crate::args::Common;
use crate::errors::hinted;
use crate::output::{Output, thousands};
use anyhow::{Context, Result};
use clap::Args;
use latens::brown::Brown;
use latens::corpus::embedded::{self, Split};
use latens::corpus::{Corpus, Inputs, Preprocessing, Tokenize, VocabLimits, WordId};
use latens::fhmm::Fhmm;
use latens::hmm::{Hmm, HmmInputs};
use latens::lda::{Glda, Lda};
use latens::lds::Lds;
use latens::math::Rng;
use latens::model::file::inspect;
use latens::model::{Fit, LanguageModel};
use latens::ngram::Ngram;
use latens::store::write_atomically;
use latens::tasks::{perplexity, sample};
use latens::word2vec::Word2vec;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Train small models on the embedded corpus and show what they learn
///
/// Needs no input. With `-o`, the models are kept, and the corpus is written as text files in several formats.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the models and the corpus in this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Train only these models, e.g., `ngram,lda`
    #[arg(long, value_delimiter = ',', value_name = "MODEL,...", value_parser = PARTS.map(|part| part.model))]
    only: Vec<String>,
}

/// A part of the demo: a model with its file, how it is trained with a random seed and saved in a folder, and the command
/// that trains one on other text.
struct Part {
    model: &'static str,
    file: &'static str,
    run: fn(&Path, u64) -> Result<ModelResult>,
    command: &'static str,
}

/// The models in the order of the output. Gaussian LDA reads the file of word2vec.
const PARTS: [Part; 8] = [
    Part {
        model: Ngram::KIND,
        file: NGRAM_FILE,
        run: ngram,
        command: "train ngram news.txt -o news.ngram",
    },
    Part {
        model: Brown::KIND,
        file: BROWN_FILE,
        run: brown,
        command: "train brown news.txt -o news.brown",
    },
    Part {
        model: Hmm::KIND,
        file: HMM_FILE,
        run: hidden_markov,
        command: "train hmm news.txt -o news.hmm",
    },
    Part {
        model: Word2vec::KIND,
        file: WORD2VEC_FILE,
        run: word_vectors,
        command: "train word2vec news.txt -o news.word2vec",
    },
    Part {
        model: Lds::KIND,
        file: LDS_FILE,
        run: dynamical,
        command: "train lds news.txt -o news.lds",
    },
    Part {
        model: Lda::KIND,
        file: topics::LDA_FILE,
        run: topics::words,
        command: "train lda documents.csv --text-column text -o documents.lda",
    },
    Part {
        model: Glda::KIND,
        file: topics::GLDA_FILE,
        run: topics::vectors,
        command: "train glda documents.csv --text-column text --vectors news.word2vec -o documents.glda",
    },
    Part {
        model: Fhmm::KIND,
        file: FHMM_FILE,
        run: factorial,
        command: "train fhmm news.txt -o news.fhmm",
    },
];

#[derive(Serialize)]
struct DemoResult {
    models: Vec<ModelResult>,
}

pub(crate) fn run(args: &DemoArgs, common: &Common, output: &Output) -> Result<()> {
    let temporary;
    let folder = match &args.output {
        Some(folder) => {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
            folder.as_path()
        }
        None => {
            temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
            temporary.path()
        }
    };
    write_corpus(folder)?;
    let is_wanted =
        |part: &&Part| args.only.is_empty() || args.only.iter().any(|m| m == part.model);
    let parts: Vec<&Part> = PARTS.iter().filter(is_wanted).collect();
    let models = parts.iter().map(|part| (part.run)(folder, common.seed));
    let result = DemoResult { models: models.collect::<Result<_>>()? };
    output.result(&result, |out| {
        writeln!(
            out,
            "The embedded corpus: {} short documents on ten subjects, from astronomy to sailing.",
            embedded::documents().len()
        )?;
        for (part, model) in parts.iter().zip(&result.models) {
            write!(out, "\n{}  on your own text: latens {}\n", model.text, part.command)?;
        }
        match &args.output {
            Some(folder) => writeln!(
                out,
                "\nThe models and the corpus are in `{0}`. Try:\n  latens sample {0}/demo.ngram\n  \
                 latens perplexity {0}/demo.ngram {0}/valid.txt\n  \
                 latens vocab {0}/documents.tsv --fields label,split,text --tokenize words -o \
                 {0}/words.vocab",
                folder.display()
            ),
            None => writeln!(out, "\n`latens demo -o DIR` keeps the models and the corpus."),
        }
    })
}

/// The embedded corpus as files: their names and contents.
fn corpus_files() -> Vec<(String, String)> {
    let mut files = vec![("documents.tsv".to_owned(), embedded::docs())];
    for split in Split::ALL {
        files.push((format!("{}.txt", split.name()), embedded::text(split)));
        files.push((format!("{}.conll", split.name()), embedded::tagged(split)));
    }
    files
}

fn write_corpus(folder: &Path) -> Result<()> {
    let files = corpus_files();
    refuse_other_files(folder, &files)?;
    for (name, text) in files {
        write_atomically(folder.join(name), |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Rejects a folder with files that the demo would overwrite, except those of an earlier demo.
fn refuse_other_files(folder: &Path, texts: &[(String, String)]) -> Result<()> {
    let is_other_text = |(name, text): &&(String, String)| {
        let path = folder.join(name);
        path.exists() && fs::read(path).ok().as_deref() != Some(text.as_bytes())
    };
    let is_other_model = |name: &&str| {
        let path = folder.join(name);
        path.exists() && inspect(&path).is_err()
    };
    let other_text = texts.iter().find(is_other_text).map(|(name, _)| name.as_str());
    let mut files = PARTS.iter().map(|part| part.file);
    match other_text.or_else(|| files.find(is_other_model)) {
        Some(name) => Err(hinted(
            format!(
                "`{}` exists and was not written by `latens demo`",
                folder.join(name).display()
            ),
            "choose a new folder with `-o`",
        )),
        None => Ok(()),
    }
}

const NGRAM_FILE: &str = "demo.ngram";
const BROWN_FILE: &str = "demo.brown";
const HMM_FILE: &str = "demo.hmm";
const WORD2VEC_FILE: &str = "demo.word2vec";
const LDS_FILE: &str = "demo.lds";
const FHMM_FILE: &str = "demo.fhmm";

/// A frequent context of the training text.
const CONTEXT: &str = "she put the";

/// One part of the corpus among the files.
fn inputs(folder: &Path, split: Split) -> Inputs {
    Inputs::new([folder.join(format!("{}.txt", split.name()))])
}

/// The training part in lowercase, with words that occur at least `min_count` times.
fn training_text(folder: &Path, min_count: u64) -> Result<Corpus> {
    let preprocessing = Preprocessing::default().tokenize(Tokenize::Words).lowercase(true);
    let limits = VocabLimits { min_count, ..VocabLimits::default() };
    Ok(Corpus::read(&inputs(folder, Split::Train), &preprocessing, &limits)?)
}

fn brown(folder: &Path, _seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 4)?;
    let model = Brown::params().n_clusters(60).fit(&corpus)?;
    model.save(folder.join(BROWN_FILE))?;
    let (clusters, vocab) = (model.clusters(), &corpus.lexicon.vocab);
    let mut members: Vec<Vec<&str>> = vec![Vec::new(); clusters.n_clusters()];
    for (word, &cluster) in vocab.words().zip(clusters.of_word()) {
        if let Some(cluster) = cluster {
            members[cluster as usize].push(word);
        }
    }
    // Words come most frequent first; the clusters with most words show best what a class is.
    members.sort_by_key(|words| std::cmp::Reverse(words.len()));
    let lines = members.iter().take(6).map(|words| {
        let words: Vec<&str> = words.iter().take(9).copied().collect();
        format!("    {}\n", words.join(" "))
    });
    let text = format!(
        "brown: clusters words that occur in similar contexts\n  \
         {} clusters of {} words; some of them:\n{}",
        clusters.n_clusters(),
        thousands(vocab.len()),
        lines.collect::<String>(),
    );
    let metrics = json!({ "mutual_information": model.facts()["mutual_information"] });
    Ok(ModelResult { model: Brown::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// Words whose neighbors are shown.
const EXAMPLES: [&str; 3] = ["moon", "oven", "judge"];

fn word_vectors(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 3)?;
    let model = Word2vec::params().dim(50).window(3).epochs(40).seed(seed).fit(&corpus)?;
    model.save(folder.join(WORD2VEC_FILE))?;
    let (vectors, vocab) = (model.vectors(), &corpus.lexicon.vocab);
    let lines = EXAMPLES.iter().filter_map(|&example| {
        let id = vocab.get(example)?;
        let near = vectors.nearest(vectors.get(id)?, 6, &[id]);
        let near: Vec<&str> = near.iter().map(|&(word, _)| vocab.word(word)).collect();
        Some(format!("    {example}: {}\n", near.join(" ")))
    });
    let text = format!(
        "word2vec: assigns similar vectors to words in similar contexts\n  \
         {} words, {} dimensions; nearest neighbors of some words:\n{}",
        thousands(vocab.len()),
        vectors.dim(),
        lines.collect::<String>(),
    );
    let metrics = json!({ "loss": model.facts()["loss"] });
    Ok(ModelResult {
        model: Word2vec::KIND,
        seconds: started.elapsed().as_secs_f64(),
        metrics,
        text,
    })
}

fn hidden_markov(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 2)?;
    let [valid, test] =
        [Split::Valid, Split::Test].map(|split| corpus.lexicon.read(&inputs(folder, split)));
    let brown = Brown::params().n_clusters(16).fit(&corpus)?;
    let params = Hmm::params().n_states(256).n_clusters(16).state_dropout(0.5);
    let model = params
        .dim(64)
        .epochs(8)
        .seed(seed)
        .with(HmmInputs::default().clusters(brown.clusters()))
        .valid(&valid?)
        .fit(&corpus)?;
    model.save(folder.join(HMM_FILE))?;
    let ppl = perplexity(&model, &test?).perplexity();
    let lines = example_states(&model, &corpus);
    let text = format!(
        "hmm: models sentences as paths through {} hidden states\n  \
         perplexity on held-out text: {ppl:.0}\n  \
         words with the same state in the training text:\n{lines}",
        model.n_states(),
    );
    let metrics = json!({ "test_perplexity": ppl });
    Ok(ModelResult { model: Hmm::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

fn factorial(folder: &Path, seed: u64) -> Result<ModelResult> {
    /// Minimum count of the words shown; states of rarer words are noise.
    const OFTEN: u64 = 15;
    let started = Instant::now();
    let corpus = training_text(folder, 1)?;
    let (valid, vocab) =
        (corpus.lexicon.read(&inputs(folder, Split::Valid))?, &corpus.lexicon.vocab);
    let params = Fhmm::params().n_layers(3).n_states(6).epochs(10).seed(seed);
    let model = params.valid(&valid).fit(&corpus)?;
    model.save(folder.join(FHMM_FILE))?;
    let line = |layer: usize, state: usize| {
        let words = model.top_word_ids(layer, state, vocab.len()).into_iter();
        let words = words.filter(|&(word, _)| word != WordId::EOS && vocab.count(word) >= OFTEN);
        let words: Vec<&str> = words.take(8).map(|(word, _)| vocab.word(word)).collect();
        format!("    layer {}: {}\n", layer + 1, words.join(" "))
    };
    let lines = (0..3).flat_map(|layer| (0..2).map(move |state| (layer, state)));
    let lines: String = lines.map(|(layer, state)| line(layer, state)).collect();
    let text = format!(
        "fhmm: models every word by {} hidden states, one per layer\n  \
         words with the highest scores in some states:\n{lines}",
        model.n_layers(),
    );
    let metrics = json!({ "valid_bound": model.facts()["valid_bound"] });
    Ok(ModelResult { model: Fhmm::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// Words whose neighbors are shown.
const SHOWN_WORDS: [&str; 4] = ["she", "the", "of", "was"];

fn dynamical(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 4)?;
    let valid = corpus.lexicon.read(&inputs(folder, Split::Valid))?;
    let model = Lds::params().dim(30).seed(seed).valid(&valid).fit(&corpus)?;
    model.save(folder.join(LDS_FILE))?;
    let lines = SHOWN_WORDS.map(|word| format!("    {word}: {}\n", neighbors(&model, word, 6)));
    let text = format!(
        "lds: models text by a {}-dimensional state with linear dynamics\n  \
         nearest neighbors of some words:\n{}",
        model.dim(),
        lines.concat(),
    );
    let metrics =
        json!({ "gain": model.facts()["gain"], "valid_gain": model.facts()["valid_gain"] });
    Ok(ModelResult { model: Lds::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// The words whose vectors have the smallest angles with a word's.
fn neighbors(model: &Lds, word: &str, n: usize) -> String {
    let (vectors, vocab) = (model.type_vectors(), &model.lexicon().vocab);
    let vector = |id: usize| vectors.row(id);
    let own = vocab.id(word).index();
    let cosine = |id: usize| vector(id).iter().zip(vector(own)).map(|(a, b)| a * b).sum::<f32>();
    let mut ids: Vec<usize> = (WordId::EOS.index() + 1..vocab.len())
        .filter(|&id| id != own && model.count(WordId::from(id)) >= 10)
        .collect();
    ids.sort_by(|&a, &b| cosine(b).total_cmp(&cosine(a)));
    let words = ids.into_iter().take(n).map(|id| vocab.word(WordId::from(id)));
    words.collect::<Vec<_>>().join(" ")
}

/// The most frequent words of the states that have most different ones, by the best path through each
/// sentence.
fn example_states(model: &Hmm, corpus: &Corpus) -> String {
    let mut counts: BTreeMap<u32, BTreeMap<WordId, u32>> = BTreeMap::new();
    for sentence in corpus.sentences.iter() {
        let states = model.viterbi_of(sentence).unwrap_or_default();
        for (&word, state) in sentence.iter().zip(states).filter(|(word, _)| **word > WordId::EOS) {
            *counts.entry(state).or_default().entry(word).or_default() += 1;
        }
    }
    let mut states: Vec<_> = counts.into_values().collect();
    states.sort_by_key(|words| std::cmp::Reverse(words.len()));
    let line = |words: &BTreeMap<WordId, u32>| {
        let mut words: Vec<_> = words.iter().collect();
        words.sort_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
        let words: Vec<&str> =
            words.iter().take(9).map(|&(&word, _)| corpus.lexicon.vocab.word(word)).collect();
        format!("    {}\n", words.join(" "))
    };
    states.iter().take(5).map(line).collect()
}

fn ngram(folder: &Path, seed: u64) -> Result<ModelResult> {
    let started = Instant::now();
    let corpus = training_text(folder, 2)?;
    let test = corpus.lexicon.read(&inputs(folder, Split::Test))?;
    let fit = |order| -> Result<Ngram> { Ok(Ngram::params().order(order).fit(&corpus)?) };
    let (single, model) = (fit(1)?, fit(3)?);
    model.save(folder.join(NGRAM_FILE))?;
    let [single_ppl, ppl] = [&single, &model].map(|model| perplexity(model, &test).perplexity());
    let vocab = &corpus.lexicon.vocab;
    let mut rng = Rng::new(seed);
    let lines = (0..3).map(|_| {
        let words = sample(&model, 25, &mut rng);
        let words: Vec<&str> = words.into_iter().map(|word| vocab.word(word)).collect();
        format!("    {}\n", words.join(" "))
    });
    let samples: String = lines.collect();
    let guesses = guesses(&model, CONTEXT);
    let text = format!(
        "n-gram: predicts each word from the two preceding words\n  \
         {} words, {} training tokens\n  \
         perplexity on held-out text: {ppl:.0} (unigram model: {single_ppl:.0})\n  \
         most likely words after \"{CONTEXT}\": {guesses}\n  \
         generated sentences:\n{samples}",
        thousands(vocab.len()),
        thousands(corpus.sentences.n_tokens()),
    );
    let metrics = json!({ "test_perplexity": ppl, "unigram_test_perplexity": single_ppl });
    Ok(ModelResult { model: Ngram::KIND, seconds: started.elapsed().as_secs_f64(), metrics, text })
}

/// The five words, marks aside, that are most likely after `words`.
fn guesses(model: &Ngram, words: &str) -> String {
    let mut scorer = model.scorer();
    model.lexicon().ids(words).into_iter().for_each(|word| {
        scorer.read(word);
    });
    let mut log_probs = vec![0.0; model.n_words()];
    scorer.next_log_probs(&mut log_probs);
    let mut ids: Vec<usize> =
        (0..log_probs.len()).filter(|&id| id != WordId::UNK.index()).collect();
    ids.sort_by(|&a, &b| log_probs[b].total_cmp(&log_probs[a]));
    let vocab = &model.lexicon().vocab;
    let words = ids.into_iter().map(|id| vocab.word(WordId::from(id)));
    let words = words.filter(|word| word.starts_with(char::is_alphabetic));
    words.take(5).collect::<Vec<_>>().join(", ")
}
