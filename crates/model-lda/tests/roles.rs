//! The exams that every model must pass, and what topic models promise.

use latens_corpus::{
    Documents, Inputs, Lexicon, Preprocessing, Sentences, Tokenize, VocabLimits, WordId, embedded,
};
use latens_corpus::{Field, Format};
use latens_math::Rng;
use latens_model::{FitError, Params, Progress, TopicModel, Valid, WordVectors, unwatched};
use latens_model_lda::{
    Covariance, Glda, GldaData, GldaParams, InferenceParams, Lda, LdaParams, LdaSampler,
    MoreVectors, Ranking, Sampler, Start, Topics,
};
use latens_testkit::{check_file_round_trip, check_resume, check_topic_model};
use std::ops::ControlFlow;

struct Text {
    lexicon: Lexicon,
    documents: Documents,
    vectors: WordVectors,
}

impl Text {
    fn data(&self) -> GldaData<'_> {
        GldaData { lexicon: &self.lexicon, documents: &self.documents, vectors: &self.vectors }
    }

    fn sentences(&self) -> Sentences {
        Sentences::from_words(self.documents.iter().take(30).map(|d| d.words.to_vec()))
    }
}

fn inputs(text: &str, format: Format) -> (tempfile::TempDir, Inputs) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, text).unwrap();
    (folder, Inputs { format: Some(format), ..Inputs::new([path]) })
}

/// The embedded documents, with random vectors for all words but each tenth.
fn text() -> Text {
    let format = Format::Docs(vec![Field::Label, Field::Split, Field::Text]);
    let (_folder, inputs) = inputs(&embedded::docs(), format);
    let preprocessing =
        Preprocessing { tokenize: Tokenize::Words, lowercase: true, ..Preprocessing::default() };
    let limits = VocabLimits { min_count: 3, max_vocab: 0 };
    let (lexicon, documents) = Documents::read(&inputs, &preprocessing, &limits).unwrap();
    let vectors = random_vectors(lexicon.vocab.len(), 6);
    Text { lexicon, documents, vectors }
}

fn random_vectors(n_words: usize, dim: usize) -> WordVectors {
    let mut rng = Rng::new(9);
    let values = (0..n_words * dim)
        .map(|i| if i / dim % 10 == 7 { 0.0 } else { rng.normal() as f32 })
        .collect::<Vec<_>>();
    WordVectors::new(dim, values).unwrap()
}

fn params(sampler: Sampler) -> GldaParams {
    GldaParams { n_topics: 7, n_iterations: 4, sampler, ..GldaParams::default() }
}

fn fit(params: GldaParams, text: &Text) -> Glda {
    Glda::fit(&params.validate().unwrap(), text.data(), &mut unwatched).unwrap()
}

fn assert_same(a: &Glda, b: &Glda) {
    assert_eq!(a.alpha(), b.alpha());
    assert_eq!(a.topic_sizes(), b.topic_sizes());
    for topic in 0..a.n_topics() {
        assert_eq!(a.mean(topic), b.mean(topic));
        assert_eq!(a.top_words(topic, 20), b.top_words(topic, 20));
    }
    assert_eq!(a.facts()["log_likelihood"], b.facts()["log_likelihood"]);
}

#[test]
fn gaussian_topics_keep_the_promises_of_a_topic_model_and_of_their_file() {
    let text = text();
    for covariance in [Covariance::Full, Covariance::Diagonal, Covariance::Spherical] {
        let model = fit(GldaParams { covariance, ..params(Sampler::Parallel) }, &text);
        check_topic_model(&model, &text.sentences());
        check_file_round_trip(&model, Glda::save, Glda::open, assert_same);
        for by in [Ranking::Density, Ranking::Count, Ranking::Distinctive] {
            let words = model.ranked_words(1, 9, by);
            assert_eq!(words.len(), 9);
            assert!(words.iter().all(|&(word, _)| text.vectors.get(word).is_some()));
        }
    }
}

#[test]
fn multinomial_topics_keep_the_promises_of_a_topic_model_and_of_their_file() {
    let text = text();
    for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
        let params = LdaParams { n_topics: 7, n_iterations: 5, sampler, ..LdaParams::default() };
        check_lda(&text, &params.validate().unwrap());
    }
}

fn check_lda(text: &Text, params: &Valid<LdaParams>) {
    let model = Lda::fit(params, &text.lexicon, &text.documents, &mut unwatched).unwrap();
    check_topic_model(&model, &text.sentences());
    let same = |a: &Lda, b: &Lda| {
        assert_eq!(a.topic_sizes(), b.topic_sizes());
        (0..7).for_each(|k| assert_eq!(a.top_words(k, 20), b.top_words(k, 20)));
        assert_eq!(a.facts()["log_likelihood"], b.facts()["log_likelihood"]);
    };
    check_file_round_trip(&model, Lda::save, Lda::open, same);
    for topic in 0..7 {
        let words = (0..text.lexicon.vocab.len()).map(WordId::from);
        let sum: f64 = words.map(|word| model.prob(topic, word)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
    check_resume(
        |watch| Lda::fit(params, &text.lexicon, &text.documents, watch),
        |checkpoint, watch| Lda::resume(params, &text.lexicon, &text.documents, checkpoint, watch),
        same,
    );
}

/// Samplers may take turns, as all keep the posterior; so may versions that knew of one only.
#[test]
fn a_run_goes_on_with_another_sampler() {
    let text = text();
    let params = |sampler| {
        let params = LdaParams { n_topics: 3, n_iterations: 4, sampler, ..LdaParams::default() };
        params.validate().unwrap()
    };
    let mut begun = None;
    let mut stop = |progress: &Progress<'_>| match progress.checkpoint {
        Some(checkpoint) => {
            begun = Some(checkpoint().unwrap());
            ControlFlow::Break(())
        }
        None => ControlFlow::Continue(()),
    };
    let (lexicon, documents) = (&text.lexicon, &text.documents);
    let stopped = Lda::fit(&params(LdaSampler::Dense), lexicon, documents, &mut stop);
    assert!(matches!(stopped, Err(FitError::Interrupted)));
    let sparse = params(LdaSampler::Sparse);
    let resumed = Lda::resume(&sparse, lexicon, documents, &begun.unwrap(), &mut unwatched);
    assert_eq!(resumed.unwrap().params().sampler, LdaSampler::Sparse);
}

/// Two themes of four words each.
fn two_themes() -> (Lexicon, Lda) {
    let lines = "oak elm ash fir oak elm\nred tan blue gray red tan\n".repeat(20);
    let (_folder, inputs) = inputs(&lines, Format::Lines);
    let (lexicon, documents) =
        Documents::read(&inputs, &Preprocessing::default(), &VocabLimits::default()).unwrap();
    let params = LdaParams { n_topics: 2, alpha: Some(0.1), ..LdaParams::default() };
    let model = Lda::fit(&params.validate().unwrap(), &lexicon, &documents, &mut unwatched);
    (lexicon, model.unwrap())
}

#[test]
fn what_a_new_word_means_is_learned_from_the_documents_of_its_batch() {
    let (lexicon, model) = two_themes();
    let mut lines = "oak elm ash fir xyzzy\n".repeat(10);
    lines.push_str("xyzzy xyzzy xyzzy\noak\nred\n");
    let documents = read(&lines, &lexicon);
    let together = model.infer_online(&documents, 100, &inference());
    assert!(together.iter().all(|document| document.n_skipped == 0));
    let trees = usize::from(together[11].mixture[1] > together[11].mixture[0]);
    assert!(together[10].mixture[trees] > 0.8, "{:?}", together[10]);
    assert!(together[12].mixture[1 - trees] > 0.8, "{:?}", together[12]);
}

#[test]
fn documents_of_known_words_are_the_same_with_new_words_allowed() {
    let (lexicon, model) = two_themes();
    let documents = read("oak elm red\nred gray oak tan\n\n", &lexicon);
    let (plain, online) =
        (model.infer(&documents, &inference()), model.infer_online(&documents, 1, &inference()));
    assert_eq!(plain, online);
    let new = read("xyzzy oak\n", &lexicon);
    assert_eq!(model.infer(&new, &inference())[0].n_skipped, 1);
    assert_eq!(model.infer_online(&new, 1, &inference())[0].n_skipped, 0);
}

#[test]
fn an_interrupted_run_goes_on_as_if_nothing_had_been() {
    let text = text();
    for sampler in [Sampler::Parallel, Sampler::Mh, Sampler::Alias, Sampler::Exact] {
        let params = GldaParams { optimize_alpha: true, ..params(sampler) };
        let params = params.validate().unwrap();
        check_resume(
            |watch| Glda::fit(&params, text.data(), watch),
            |checkpoint, watch| Glda::resume(&params, text.data(), checkpoint, watch),
            assert_same,
        );
    }
}

/// α is improved every so often, which a run that goes on must do as well.
#[test]
fn alpha_is_learned_in_an_interrupted_run_as_in_a_whole_one() {
    let text = text();
    let params = GldaParams { optimize_alpha: true, n_iterations: 41, ..params(Sampler::Parallel) };
    let params = params.validate().unwrap();
    let whole = Glda::fit(&params, text.data(), &mut unwatched).unwrap();
    let alpha = whole.alpha();
    assert!(alpha.iter().any(|&a| (a - alpha[0]).abs() > 1e-6), "{alpha:?}");
    let mut kept = None;
    let stop = &mut |progress: &Progress<'_>| {
        if progress.done != 30 {
            return ControlFlow::Continue(());
        }
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        ControlFlow::Break(())
    };
    assert!(matches!(Glda::fit(&params, text.data(), stop), Err(FitError::Interrupted)));
    let resumed = Glda::resume(&params, text.data(), &kept.unwrap(), &mut unwatched).unwrap();
    assert_same(&resumed, &whole);
}

#[test]
fn a_checkpoint_of_other_parameters_or_vectors_is_refused_but_more_iterations_are_not() {
    let mut text = text();
    let mut kept = None;
    let stop = &mut |progress: &Progress<'_>| {
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        ControlFlow::Break(())
    };
    let valid = |params: GldaParams| params.validate().unwrap();
    let first = valid(params(Sampler::Parallel));
    assert!(matches!(Glda::fit(&first, text.data(), stop), Err(FitError::Interrupted)));
    let kept = kept.unwrap();
    let longer = valid(GldaParams { n_iterations: 6, ..params(Sampler::Parallel) });
    let resumed = Glda::resume(&longer, text.data(), &kept, &mut unwatched).unwrap();
    assert_same(&resumed, &fit(longer.into_inner(), &text));
    let other = valid(GldaParams { seed: 2, ..params(Sampler::Parallel) });
    let refused = Glda::resume(&other, text.data(), &kept, &mut unwatched);
    assert!(matches!(refused, Err(FitError::Checkpoint(_))));
    text.vectors = random_vectors(text.lexicon.vocab.len(), 5);
    let refused = Glda::resume(&first, text.data(), &kept, &mut unwatched);
    assert!(matches!(refused, Err(FitError::Checkpoint(_))));
}

#[test]
fn the_likelihood_rises_from_a_random_start() {
    let text = text();
    for sampler in [Sampler::Auto, Sampler::Mh, Sampler::Parallel] {
        let params = GldaParams {
            start: Start::Random,
            n_iterations: 10,
            psi_scale: 0.2,
            ..params(sampler)
        };
        let mut logs = Vec::new();
        let watch = &mut |progress: &Progress<'_>| {
            logs.push(progress.metrics[0].1);
            ControlFlow::Continue(())
        };
        Glda::fit(&params.validate().unwrap(), text.data(), watch).unwrap();
        assert!(logs[9] > logs[0] + 100.0, "{sampler:?}: {logs:?}");
    }
}

fn inference() -> Valid<InferenceParams> {
    InferenceParams::default().validate().unwrap()
}

fn read(text: &str, lexicon: &Lexicon) -> Documents {
    let (_folder, inputs) = inputs(text, Format::Lines);
    Documents::read_with(&inputs, lexicon).unwrap()
}

#[test]
fn a_document_does_not_depend_on_its_batch_and_unknown_words_are_counted() {
    let text = text();
    let model = fit(params(Sampler::Parallel), &text);
    let all = read("the ship and the sail\n\nxyzzy plugh\nthe garden xyzzy\n", &text.lexicon);
    let alone = read("the garden xyzzy\n", &text.lexicon);
    let found = model.infer(&all, None, Topics::Fixed, &inference());
    assert_eq!(found.len(), 4);
    assert_eq!(found[3], model.infer(&alone, None, Topics::Fixed, &inference())[0]);
    assert_eq!([1, 2, 3].map(|i| found[i].n_skipped), [0, 2, 1]);
    assert_eq!(found[3].topics.len(), 3);
    assert_eq!(found[3].topics[2], None);
    // Documents without a known word have the mixture of α.
    for document in [&found[1], &found[2]] {
        assert!(document.mixture.iter().all(|share| (share - 1.0 / 7.0).abs() < 1e-6));
    }
}

#[test]
fn a_new_word_is_like_a_known_one_with_the_same_vector() {
    let text = text();
    let model = fit(params(Sampler::Parallel), &text);
    let vocab = &text.lexicon.vocab;
    let known = (2..vocab.len()).map(WordId::from).find(|&w| text.vectors.get(w).is_some());
    let known = known.unwrap();
    let words = ["<unk>", "<eos>", "xyzzy"];
    let more_vocab = latens_corpus::Vocab::from_parts(words, vec![0; 3]).unwrap();
    let mut values = vec![0.0; 12];
    values.extend_from_slice(text.vectors.get(known).unwrap());
    let vectors = WordVectors::new(6, values).unwrap();
    let more = MoreVectors { vocab: &more_vocab, vectors: &vectors };
    let new = read("xyzzy xyzzy xyzzy xyzzy\n", &text.lexicon);
    // `XYZZY` has a vector in small letters only.
    let preprocessing = Preprocessing { lowercase: false, ..text.lexicon.preprocessing };
    let as_it_is = Lexicon { preprocessing, ..text.lexicon.clone() };
    let large = read("XYZZY xyzzy XYZZY XYZZY\n", &as_it_is);
    let params =
        InferenceParams { n_sweeps: 4000, ..InferenceParams::default() }.validate().unwrap();
    let word = vocab.word(known);
    let old = read(&format!("{word} {word} {word} {word}\n"), &text.lexicon);
    for topics in [Topics::Fixed, Topics::Online(1), Topics::Cumulative(3)] {
        let a = model.infer(&new, Some(more), topics, &params).remove(0);
        let b = model.infer(&old, None, topics, &params).remove(0);
        assert_eq!(a.n_skipped, 0);
        // New words are one to the random stream, and these have one vector, so that draws are the same.
        assert_eq!(model.infer(&large, Some(more), topics, &params).remove(0), a);
        // Other random numbers, but the same posterior.
        for (a, b) in a.mixture.iter().zip(&b.mixture) {
            assert!((a - b).abs() < 0.08, "{topics:?}: {a} {b}");
        }
    }
}

#[test]
fn topics_that_moved_with_a_batch_go_back() {
    let text = text();
    let model = fit(params(Sampler::Parallel), &text);
    let lines = "the ship and the sail\nthe garden of the court\nthe moon and the stars\n";
    let documents = read(lines, &text.lexicon);
    let one_by_one = model.infer(&documents, None, Topics::Online(1), &inference());
    for (i, line) in lines.lines().enumerate() {
        let alone = read(line, &text.lexicon);
        assert_eq!(model.infer(&alone, None, Topics::Online(1), &inference())[0], one_by_one[i]);
    }
    let together = model.infer(&documents, None, Topics::Online(100), &inference());
    for found in together.iter().chain(&one_by_one) {
        assert!((found.mixture.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn what_cannot_be_learned_from_is_told_of() {
    let mut text = text();
    let message = |params: GldaParams, text: &Text| {
        let params = params.validate().unwrap();
        Glda::fit(&params, text.data(), &mut unwatched).unwrap_err().to_string()
    };
    let nu = message(GldaParams { nu: Some(5.0), ..params(Sampler::Auto) }, &text);
    assert!(nu.contains("`nu` must be above the number of dimensions less one, 5, got 5"), "{nu}");
    let many = message(GldaParams { n_topics: 60_000, ..params(Sampler::Auto) }, &text);
    assert!(many.contains("`n_topics` must be at most the number of tokens"), "{many}");
    text.vectors = WordVectors::new(6, vec![0.0; 6 * text.lexicon.vocab.len()]).unwrap();
    let none = message(params(Sampler::Auto), &text);
    assert!(none.contains("a word that has a vector, has none"), "{none}");
}

#[test]
fn parameters_out_of_range_are_named() {
    let default = GldaParams::default;
    let bad = [
        ("n_topics", GldaParams { n_topics: 0, ..default() }),
        ("n_iterations", GldaParams { n_iterations: 0, ..default() }),
        ("alpha", GldaParams { alpha: Some(0.0), ..default() }),
        ("kappa", GldaParams { kappa: f64::NAN, ..default() }),
        ("nu", GldaParams { nu: Some(-1.0), ..default() }),
        ("psi_scale", GldaParams { psi_scale: 0.0, ..default() }),
        ("likelihood_weight", GldaParams { likelihood_weight: 1.5, ..default() }),
        ("n_shards", GldaParams { n_shards: 1, ..default() }),
    ];
    for (name, params) in bad {
        assert_eq!(params.check().unwrap_err().name, name);
    }
    default().check().unwrap();
    assert_eq!(LdaParams { beta: 0.0, ..LdaParams::default() }.check().unwrap_err().name, "beta");
}
