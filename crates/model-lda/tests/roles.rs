//! The contracts of all models, and the specifics of topic models.

use latens_corpus::{
    DocumentCorpus, Documents, Inputs, Lexicon, Preprocessing, Sentences, Tokenize, VocabLimits,
    WordId, embedded,
};
use latens_corpus::{Field, Format};
use latens_math::Rng;
use latens_model::{
    Checkpoint, Fit, FitBuilder, FitError, Params, Progress, TopicModel, Valid, Watch, WordVectors,
    unwatched,
};
use latens_model_lda::{
    Covariance, Glda, GldaInputs, GldaParams, InferenceParams, Lda, LdaParams, LdaSampler,
    MoreVectors, Ranking, Sampler, Start, Topics,
};
use latens_testkit::{check_file_round_trip, check_resume, check_topic_model};
use std::ops::ControlFlow;

struct Text {
    corpus: DocumentCorpus,
    vectors: WordVectors,
}

impl Text {
    /// Fits Gaussian LDA over the vectors of this text.
    fn glda<'a>(&'a self, params: &GldaParams) -> FitBuilder<'a, 'a, GldaParams> {
        params.clone().with(GldaInputs::default().vectors(&self.vectors))
    }

    fn fit_glda(&self, params: &GldaParams, watch: &mut Watch) -> Result<Glda, FitError> {
        self.glda(params).watch(|progress| watch(progress)).fit(&self.corpus)
    }

    fn resume_glda(
        &self,
        params: &GldaParams,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Glda, FitError> {
        let inputs = GldaInputs::default().vectors(&self.vectors);
        let builder = params.clone().with(inputs).checkpoint(checkpoint);
        builder.watch(|progress| watch(progress)).fit(&self.corpus)
    }

    fn sentences(&self) -> Sentences {
        Sentences::from_words(self.corpus.documents.iter().take(30).map(|d| d.words.to_vec()))
    }
}

fn inputs(text: &str, format: Format) -> (tempfile::TempDir, Inputs) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, text).unwrap();
    (folder, Inputs::new([path]).format(format))
}

/// The embedded documents, with random vectors for all words except every tenth.
fn text() -> Text {
    let format = Format::Docs(vec![Field::Label, Field::Split, Field::Text]);
    let (_folder, inputs) = inputs(&embedded::docs(), format);
    let preprocessing = Preprocessing::default().tokenize(Tokenize::Words).lowercase(true);
    let limits = VocabLimits { min_count: 3, max_vocab: 0 };
    let corpus = DocumentCorpus::read(&inputs, &preprocessing, &limits).unwrap();
    let vectors = random_vectors(corpus.lexicon.vocab.len(), 6);
    Text { corpus, vectors }
}

fn random_vectors(n_words: usize, dim: usize) -> WordVectors {
    let mut rng = Rng::new(9);
    let values = (0..n_words * dim)
        .map(|i| if i / dim % 10 == 7 { 0.0 } else { rng.normal() as f32 })
        .collect::<Vec<_>>();
    WordVectors::new(dim, values).unwrap()
}

fn params(sampler: Sampler) -> GldaParams {
    GldaParams::default().n_topics(7).n_iterations(4).sampler(sampler)
}

fn fit(params: GldaParams, text: &Text) -> Glda {
    text.glda(&params).fit(&text.corpus).unwrap()
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
fn gaussian_lda_satisfies_the_topic_model_and_file_contracts() {
    let text = text();
    for covariance in [Covariance::Full, Covariance::Diagonal, Covariance::Spherical] {
        let model = fit(params(Sampler::Parallel).covariance(covariance), &text);
        check_topic_model(&model, &text.sentences());
        check_file_round_trip(
            &model,
            |model, path| model.save(path),
            |path| Glda::open(path),
            assert_same,
        );
        for by in [Ranking::Density, Ranking::Count, Ranking::Distinctive] {
            let words = model.ranked_words(1, 9, by);
            assert_eq!(words.len(), 9);
            assert!(words.iter().all(|&(word, _)| text.vectors.get(word).is_some()));
        }
    }
}

#[test]
fn lda_satisfies_the_topic_model_and_file_contracts() {
    let text = text();
    for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
        let params = LdaParams::default().n_topics(7).n_iterations(5).sampler(sampler);
        check_lda(&text, &params);
    }
}

fn check_lda(text: &Text, params: &LdaParams) {
    let model = params.clone().fit(&text.corpus).unwrap();
    check_topic_model(&model, &text.sentences());
    let same = |a: &Lda, b: &Lda| {
        assert_eq!(a.topic_sizes(), b.topic_sizes());
        (0..7).for_each(|k| assert_eq!(a.top_words(k, 20), b.top_words(k, 20)));
        assert_eq!(a.facts()["log_likelihood"], b.facts()["log_likelihood"]);
    };
    check_file_round_trip(&model, |model, path| model.save(path), |path| Lda::open(path), same);
    for topic in 0..7 {
        let words = (0..text.corpus.lexicon.vocab.len()).map(WordId::from);
        let sum: f64 = words.map(|word| model.prob(topic, word)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
    check_resume(
        |watch| params.clone().watch(|progress| watch(progress)).fit(&text.corpus),
        |checkpoint, watch| {
            let builder = params.clone().builder().checkpoint(checkpoint);
            builder.watch(|progress| watch(progress)).fit(&text.corpus)
        },
        same,
    );
}

/// Samplers may change, because all have the same stationary distribution. This also holds for checkpoints without a
/// sampler.
#[test]
fn training_can_resume_with_another_sampler() {
    let text = text();
    let params = |sampler| LdaParams::default().n_topics(3).n_iterations(4).sampler(sampler);
    let mut begun = None;
    let stop = |progress: &Progress<'_>| match progress.checkpoint {
        Some(checkpoint) => {
            begun = Some(checkpoint().unwrap());
            ControlFlow::Break(())
        }
        None => ControlFlow::Continue(()),
    };
    let stopped = params(LdaSampler::Dense).watch(stop).fit(&text.corpus);
    assert!(matches!(stopped, Err(FitError::Interrupted)));
    let begun = begun.unwrap();
    let resumed = params(LdaSampler::Sparse).builder().checkpoint(&begun).fit(&text.corpus);
    assert_eq!(resumed.unwrap().fitted_with().sampler, LdaSampler::Sparse);
}

/// Two themes of four words each.
fn two_themes() -> (Lexicon, Lda) {
    let lines = "oak elm ash fir oak elm\nred tan blue gray red tan\n".repeat(20);
    let (_folder, inputs) = inputs(&lines, Format::Lines);
    let limits = VocabLimits::default();
    let corpus = DocumentCorpus::read(&inputs, &Preprocessing::default(), &limits).unwrap();
    let model = Lda::params().n_topics(2).alpha(0.1).fit(&corpus);
    (corpus.lexicon, model.unwrap())
}

#[test]
fn topics_of_a_new_word_are_learned_from_its_batch() {
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
fn online_inference_does_not_change_documents_of_known_words() {
    let (lexicon, model) = two_themes();
    let documents = read("oak elm red\nred gray oak tan\n\n", &lexicon);
    let (plain, online) = (
        model.infer_documents(&documents, &inference()),
        model.infer_online(&documents, 1, &inference()),
    );
    assert_eq!(plain, online);
    let new = read("xyzzy oak\n", &lexicon);
    assert_eq!(model.infer_documents(&new, &inference())[0].n_skipped, 1);
    assert_eq!(model.infer_online(&new, 1, &inference())[0].n_skipped, 0);
}

#[test]
fn resumed_training_gives_the_same_model() {
    let text = text();
    for sampler in [Sampler::Parallel, Sampler::Mh, Sampler::Alias, Sampler::Exact] {
        let params = params(sampler).optimize_alpha(true);
        check_resume(
            |watch| text.fit_glda(&params, watch),
            |checkpoint, watch| text.resume_glda(&params, checkpoint, watch),
            assert_same,
        );
    }
}

/// Resumed training must update α in the same iterations.
#[test]
fn resumed_training_learns_the_same_alpha() {
    let text = text();
    let params = params(Sampler::Parallel).optimize_alpha(true).n_iterations(41);
    let whole = text.glda(&params).fit(&text.corpus).unwrap();
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
    assert!(matches!(text.fit_glda(&params, stop), Err(FitError::Interrupted)));
    let resumed = text.resume_glda(&params, &kept.unwrap(), &mut unwatched).unwrap();
    assert_same(&resumed, &whole);
}

#[test]
fn a_checkpoint_rejects_other_parameters_and_vectors_but_allows_more_iterations() {
    let mut text = text();
    let mut kept = None;
    let stop = &mut |progress: &Progress<'_>| {
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        ControlFlow::Break(())
    };
    let first = params(Sampler::Parallel);
    assert!(matches!(text.fit_glda(&first, stop), Err(FitError::Interrupted)));
    let kept = kept.unwrap();
    let longer = params(Sampler::Parallel).n_iterations(6);
    let resumed = text.resume_glda(&longer, &kept, &mut unwatched).unwrap();
    assert_same(&resumed, &fit(longer, &text));
    let other = params(Sampler::Parallel).seed(2);
    let refused = text.resume_glda(&other, &kept, &mut unwatched);
    assert!(matches!(refused, Err(FitError::Checkpoint(_))));
    text.vectors = random_vectors(text.corpus.lexicon.vocab.len(), 5);
    let refused = text.resume_glda(&first, &kept, &mut unwatched);
    assert!(matches!(refused, Err(FitError::Checkpoint(_))));
}

#[test]
fn the_likelihood_increases_from_a_random_start() {
    let text = text();
    for sampler in [Sampler::Auto, Sampler::Mh, Sampler::Parallel] {
        let params = params(sampler).start(Start::Random).n_iterations(10).psi_scale(0.2);
        let mut logs = Vec::new();
        let watch = &mut |progress: &Progress<'_>| {
            logs.push(progress.metrics[0].1);
            ControlFlow::Continue(())
        };
        text.fit_glda(&params, watch).unwrap();
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
    let all =
        read("the ship and the sail\n\nxyzzy plugh\nthe garden xyzzy\n", &text.corpus.lexicon);
    let alone = read("the garden xyzzy\n", &text.corpus.lexicon);
    let found = model.infer_documents(&all, None, Topics::Fixed, &inference());
    assert_eq!(found.len(), 4);
    assert_eq!(found[3], model.infer_documents(&alone, None, Topics::Fixed, &inference())[0]);
    assert_eq!([1, 2, 3].map(|i| found[i].n_skipped), [0, 2, 1]);
    assert_eq!(found[3].topics.len(), 3);
    assert_eq!(found[3].topics[2], None);
    // Documents without known words have the prior mixture.
    for document in [&found[1], &found[2]] {
        assert!(document.mixture.iter().all(|share| (share - 1.0 / 7.0).abs() < 1e-6));
    }
}

#[test]
fn a_new_word_is_treated_like_a_known_word_with_the_same_vector() {
    let text = text();
    let model = fit(params(Sampler::Parallel), &text);
    let vocab = &text.corpus.lexicon.vocab;
    let known = (2..vocab.len()).map(WordId::from).find(|&w| text.vectors.get(w).is_some());
    let known = known.unwrap();
    let words = ["<unk>", "<eos>", "xyzzy"];
    let more_vocab = latens_corpus::Vocab::from_parts(words, vec![0; 3]).unwrap();
    let mut values = vec![0.0; 12];
    values.extend_from_slice(text.vectors.get(known).unwrap());
    let vectors = WordVectors::new(6, values).unwrap();
    let more = MoreVectors { vocab: &more_vocab, vectors: &vectors };
    let new = read("xyzzy xyzzy xyzzy xyzzy\n", &text.corpus.lexicon);
    // `XYZZY` has a vector only in lowercase.
    let preprocessing = text.corpus.lexicon.preprocessing.lowercase(false);
    let as_it_is = Lexicon { preprocessing, ..text.corpus.lexicon.clone() };
    let large = read("XYZZY xyzzy XYZZY XYZZY\n", &as_it_is);
    let params = InferenceParams::default().n_sweeps(4000).validate().unwrap();
    let word = vocab.word(known);
    let old = read(&format!("{word} {word} {word} {word}\n"), &text.corpus.lexicon);
    for topics in [Topics::Fixed, Topics::Online(1), Topics::Cumulative(3)] {
        let a = model.infer_documents(&new, Some(more), topics, &params).remove(0);
        let b = model.infer_documents(&old, None, topics, &params).remove(0);
        assert_eq!(a.n_skipped, 0);
        // The random stream treats all new words as one type, and these have the same vector, so draws agree.
        assert_eq!(model.infer_documents(&large, Some(more), topics, &params).remove(0), a);
        // Different random numbers, but the same posterior.
        for (a, b) in a.mixture.iter().zip(&b.mixture) {
            assert!((a - b).abs() < 0.08, "{topics:?}: {a} {b}");
        }
    }
}

#[test]
fn temporary_topic_updates_are_reverted_after_a_batch() {
    let text = text();
    let model = fit(params(Sampler::Parallel), &text);
    let lines = "the ship and the sail\nthe garden of the court\nthe moon and the stars\n";
    let documents = read(lines, &text.corpus.lexicon);
    let one_by_one = model.infer_documents(&documents, None, Topics::Online(1), &inference());
    for (i, line) in lines.lines().enumerate() {
        let alone = read(line, &text.corpus.lexicon);
        assert_eq!(
            model.infer_documents(&alone, None, Topics::Online(1), &inference())[0],
            one_by_one[i]
        );
    }
    let together = model.infer_documents(&documents, None, Topics::Online(100), &inference());
    for found in together.iter().chain(&one_by_one) {
        assert!((found.mixture.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn unusable_training_data_is_rejected() {
    let mut text = text();
    let message = |params: GldaParams, text: &Text| {
        text.glda(&params).fit(&text.corpus).unwrap_err().to_string()
    };
    let nu = message(params(Sampler::Auto).nu(5.0), &text);
    assert!(nu.contains("`nu` must be above 5, the number of dimensions minus 1, got 5"), "{nu}");
    let many = message(params(Sampler::Auto).n_topics(60_000), &text);
    assert!(many.contains("`n_topics` must be at most the number of tokens"), "{many}");
    text.vectors = WordVectors::new(6, vec![0.0; 6 * text.corpus.lexicon.vocab.len()]).unwrap();
    let none = message(params(Sampler::Auto), &text);
    assert!(none.contains("a word that has a vector, has none"), "{none}");
}

#[test]
fn errors_name_the_parameter_out_of_range() {
    let default = GldaParams::default;
    let bad = [
        ("n_topics", default().n_topics(0)),
        ("n_iterations", default().n_iterations(0)),
        ("alpha", default().alpha(0.0)),
        ("kappa", default().kappa(f64::NAN)),
        ("nu", default().nu(-1.0)),
        ("psi_scale", default().psi_scale(0.0)),
        ("likelihood_weight", default().likelihood_weight(1.5)),
        ("n_shards", default().n_shards(1)),
    ];
    for (name, params) in bad {
        assert_eq!(params.check().unwrap_err().name, name);
    }
    default().check().unwrap();
    assert_eq!(LdaParams::default().beta(0.0).check().unwrap_err().name, "beta");
}

#[test]
fn inference_from_text_agrees_with_inference_from_words() {
    let text = text();
    let (lda, glda) = (
        Lda::params().n_topics(4).n_iterations(3).fit(&text.corpus).unwrap(),
        fit(params(Sampler::Parallel), &text),
    );
    let texts = ["the ship and the sail", "", "xyzzy"];
    for (found, model) in
        [(lda.infer(texts), &lda as &dyn TopicModel), (glda.infer(texts), &glda as &dyn TopicModel)]
    {
        assert_eq!((found.n_rows(), found.n_columns()), (3, model.n_topics()));
        for (row, text_of_row) in found.rows().zip(texts) {
            assert_eq!(row, model.mixture(&text.corpus.lexicon.ids(text_of_row)));
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }
    let words = lda.top_words(1, 5);
    let expected = lda.top_word_ids(1, 5);
    assert!(words.iter().zip(&expected).all(|(&(word, score), &(id, other))| {
        word == text.corpus.lexicon.vocab.word(id) && score == other
    }));
}
