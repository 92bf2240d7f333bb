//! The checks that every model passes, and the properties of this one.

use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, VocabLimits, WordId};
use latens_model::{
    Checkpoint, FeatureRows, Fit, FitBuilder, FitError, LanguageModel, Model, Progress,
    TokenEncoder, Watch, WordClusters,
};
use latens_model_brown::Brown;
use latens_model_hmm::{
    Constraint, Features, Hmm, HmmInputs, HmmParams, ImpossibleText, Learning, Memory,
    Parameterization,
};
use latens_testkit::{
    check_file_round_trip, check_language_model, check_resume, check_token_encoder,
    two_class_corpus, zipfian_corpus,
};
use std::ops::ControlFlow;

/// A small text, a validation set and clusters of the words.
struct Toy {
    corpus: Corpus,
    valid: Sentences,
    clusters: WordClusters,
}

const N_CLUSTERS: usize = 3;

impl Toy {
    /// A text in which words with a count of 1 are unknown words.
    fn new() -> Toy {
        let Corpus { lexicon, sentences } = zipfian_corpus(40, 30, 3);
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let seen = lexicon.vocab.words().zip(lexicon.vocab.counts().iter().copied());
        let vocab = Vocab::from_counts(seen, &limits);
        assert!(vocab.count(WordId::UNK) > 0, "the text must have unknown words");
        let id = |&word: &WordId| vocab.id(lexicon.vocab.word(word));
        let words = |sentence: &[WordId]| -> Vec<WordId> {
            sentence[..sentence.len() - 1].iter().map(id).collect()
        };
        let sentences = Sentences::from_words(sentences.iter().map(words));
        Toy::of(Corpus { lexicon: Lexicon { vocab, limits, ..lexicon }, sentences })
    }

    fn of(corpus: Corpus) -> Toy {
        let vocab = &corpus.lexicon.vocab;
        // `<eos>` has no cluster, as in word clusters that are read from files.
        let cluster = |word: usize| {
            let counts = vocab.count(WordId::from(word)) > 0 && word != WordId::EOS.index();
            counts.then_some((word % N_CLUSTERS) as u32)
        };
        let paths = ["0", "10", "11"].map(str::to_owned).to_vec();
        let clusters = WordClusters::new((0..vocab.len()).map(cluster).collect(), paths).unwrap();
        let valid = corpus.sentences.slice(0..corpus.sentences.len() / 3);
        Toy { corpus, valid, clusters }
    }

    fn inputs(&self, params: &HmmParams) -> HmmInputs<'_> {
        match params.constraint {
            Constraint::Brown => HmmInputs::default().clusters(&self.clusters),
            _ => HmmInputs::default(),
        }
    }

    fn builder(&self, params: &HmmParams) -> FitBuilder<'_, '_, HmmParams> {
        params.clone().with(self.inputs(params)).valid(&self.valid)
    }

    fn fit_watched(&self, params: &HmmParams, watch: &mut Watch) -> Result<Hmm, FitError> {
        self.builder(params).watch(|progress| watch(progress)).fit(&self.corpus)
    }

    fn fit(&self, params: &HmmParams) -> Hmm {
        self.builder(params).fit(&self.corpus).unwrap()
    }

    fn resume(
        &self,
        params: &HmmParams,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Hmm, FitError> {
        let builder = params.clone().with(self.inputs(params)).valid(&self.valid);
        builder.checkpoint(checkpoint).watch(|progress| watch(progress)).fit(&self.corpus)
    }
}

/// One model of each kind.
fn kinds() -> Vec<HmmParams> {
    use {Constraint as C, Parameterization as P};
    let params = |constraint, parameterization| {
        Hmm::params()
            .n_states(12)
            .n_clusters(N_CLUSTERS)
            .constraint(constraint)
            .parameterization(parameterization)
            .dim(6)
            .epochs(3)
            .batch_tokens(60)
            .learning_rate(0.05)
    };
    vec![
        params(C::Brown, P::Neural).dropout(0.2),
        params(C::Brown, P::Factored).state_dropout(0.5),
        params(C::None, P::Neural),
        params(C::Uniform, P::Neural).state_dropout(0.5),
        params(C::Brown, P::Scalar),
        params(C::Uniform, P::Scalar).prior(0.0),
        // The number of clusters has no effect without a constraint.
        params(C::None, P::Scalar).prior(0.0).n_states(7).n_clusters(32),
        params(C::Brown, P::Scalar).learning(Learning::Gradient).state_dropout(0.25),
        params(C::Brown, P::Neural).memory(Memory::Carry).run_tokens(30),
        params(C::Uniform, P::Scalar).memory(Memory::Carry),
    ]
}

/// Checks that two models give bit-identical results.
fn assert_same(a: &Hmm, b: &Hmm) {
    assert_eq!(a.fitted_with(), b.fitted_with());
    assert_eq!(a.n_weights(), b.n_weights());
    for name in ["train_perplexity", "valid_perplexity", "best_epoch", "epochs", "tokens"] {
        assert_eq!(a.facts().get(name), b.facts().get(name), "{name}");
    }
    let words = 2..a.n_words() as u32;
    let pairs =
        words.clone().map(|word| vec![WordId(word), WordId((word * 7) % 20 + 2), WordId::EOS]);
    for sentence in pairs.chain([words.map(WordId).collect(), vec![WordId::UNK]]) {
        let sentence = &sentence[..];
        assert_eq!(a.log_prob(sentence).to_bits(), b.log_prob(sentence).to_bits());
        assert_eq!(a.posterior_of(sentence), b.posterior_of(sentence));
        assert_eq!(a.viterbi_of(sentence), b.viterbi_of(sentence));
    }
}

#[test]
fn it_is_a_language_model() {
    let toy = Toy::new();
    for params in kinds() {
        check_language_model(&toy.fit(&params), &toy.corpus.sentences);
    }
}

#[test]
fn it_is_a_token_encoder_for_every_kind_of_features() {
    let toy = Toy::new();
    for params in kinds() {
        let hmm = toy.fit(&params);
        check_token_encoder(&hmm, &toy.corpus.sentences);
        for (_, features) in Features::ALL {
            check_token_encoder(&hmm.encoder(features), &toy.corpus.sentences);
        }
    }
}

#[test]
fn features_of_clusters_are_sums_over_their_states() {
    let toy = Toy::new();
    for params in kinds() {
        let hmm = toy.fit(&params);
        let k = match params.constraint {
            Constraint::Brown => params.n_states / params.n_clusters,
            Constraint::Uniform | Constraint::None => params.n_states,
        };
        let encode = |features| {
            let (mut rows, encoder) = (FeatureRows::new(), hmm.encoder(features));
            toy.corpus.sentences.iter().for_each(|sentence| encoder.encode(sentence, &mut rows));
            let mut full = vec![vec![0.0; encoder.n_features()]; rows.len()];
            for (full, (columns, values)) in full.iter_mut().zip(rows.iter()) {
                columns.iter().zip(values).for_each(|(&c, &value)| full[c as usize] = value);
            }
            full
        };
        for (of_states, of_clusters) in [
            (Features::State, Features::Cluster),
            (Features::Posterior, Features::ClusterPosterior),
        ] {
            for (states, clusters) in encode(of_states).iter().zip(encode(of_clusters)) {
                assert_eq!(clusters.len(), params.n_states / k);
                for (states, cluster) in states.chunks(k).zip(clusters) {
                    assert!((states.iter().sum::<f32>() - cluster).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn saving_and_opening_preserves_the_model_and_damage_is_detected() {
    let toy = Toy::new();
    for params in kinds() {
        let hmm = toy.fit(&params);
        check_file_round_trip(&hmm, |m, path| m.save(path), |path| Hmm::open(path), assert_same);
    }
}

#[test]
fn resumed_training_gives_the_same_model() {
    let toy = Toy::new();
    for params in kinds() {
        check_resume(
            |watch| toy.fit_watched(&params, watch),
            |checkpoint, watch| toy.resume(&params, checkpoint, watch),
            assert_same,
        );
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let toy = Toy::new();
    let fit = |n_threads: usize, params: &HmmParams| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| toy.fit(params))
    };
    for params in kinds() {
        assert_same(&fit(1, &params), &fit(3, &params));
    }
    // Large enough for multithreaded matrix products.
    let large = kinds()[0].clone().n_states(384).dim(96).epochs(1);
    let scalar = kinds()[4].clone().n_states(384).epochs(2);
    for params in [&large, &large.clone().constraint(Constraint::None), &scalar] {
        assert_same(&fit(1, params), &fit(3, params));
    }
}

#[test]
fn running_text_is_one_long_sequence() {
    let toy = Toy::new();
    // One sentence, in which the ends of sentences are ordinary words.
    let joined = |sentences: &Sentences| {
        let words = &sentences.tokens()[..sentences.n_tokens() - 1];
        Sentences::from_words([words])
    };
    let (lexicon, sentences) = (toy.corpus.lexicon.clone(), joined(&toy.corpus.sentences));
    let one = Toy {
        corpus: Corpus { lexicon, sentences },
        valid: joined(&toy.valid),
        clusters: toy.clusters.clone(),
    };
    let scalar = |params: &HmmParams| params.by_em() && params.memory == Memory::Reset;
    for apart in kinds().into_iter().filter(scalar) {
        let n = toy.corpus.sentences.n_tokens();
        let carried = apart.clone().memory(Memory::Carry).run_tokens(n);
        let (expected, hmm, apart) = (one.fit(&apart), toy.fit(&carried), toy.fit(&apart));
        for name in ["train_perplexity", "valid_perplexity"] {
            assert_eq!(hmm.facts().get(name), expected.facts().get(name), "{name}");
            assert_ne!(hmm.facts().get(name), apart.facts().get(name), "{name}");
        }
        // Context from before the end of a sentence matters.
        let (mut scorer, text) = (hmm.scorer(), toy.valid.tokens());
        let sum: f64 = text.iter().map(|&word| scorer.read(word)).sum();
        let fresh: f64 = toy.valid.iter().map(|sentence| hmm.log_prob(sentence)).sum();
        assert!(fresh < sum - 1e-3 * sum.abs(), "{sum} {fresh}");
    }
}

#[test]
fn models_with_short_state_lists_pass_all_checks() {
    use Learning::{Em, Gradient};
    // More words than one task of a kernel processes.
    let toy = Toy::of(zipfian_corpus(900, 400, 1));
    for (parameterization, learning, state_dropout) in [
        (Parameterization::Neural, Em, 0.5),
        (Parameterization::Scalar, Em, 0.0),
        (Parameterization::Scalar, Gradient, 0.5),
    ] {
        // Two of sixteen states per word.
        let params = Hmm::params()
            .n_states(16)
            .n_clusters(8)
            .constraint(Constraint::Uniform)
            .parameterization(parameterization)
            .learning(learning)
            .state_dropout(state_dropout)
            .dim(6)
            .epochs(3)
            .batch_tokens(60);
        let fit = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| toy.fit(&params))
        };
        let hmm = fit(1);
        assert_same(&hmm, &fit(3));
        check_language_model(&hmm, &toy.corpus.sentences);
        check_file_round_trip(&hmm, |m, path| m.save(path), |path| Hmm::open(path), assert_same);
        check_resume(
            |watch| toy.fit_watched(&params, watch),
            |checkpoint, watch| toy.resume(&params, checkpoint, watch),
            assert_same,
        );
    }
}

#[test]
fn baum_welch_without_a_prior_never_lowers_the_likelihood() {
    let toy = Toy::new();
    for constraint in [Constraint::Brown, Constraint::Uniform, Constraint::None] {
        let params = Hmm::params()
            .n_states(9)
            .n_clusters(N_CLUSTERS)
            .constraint(constraint)
            .parameterization(Parameterization::Scalar)
            .epochs(30)
            .prior(0.0);
        let mut perplexities = Vec::new();
        toy.fit_watched(&params, &mut |progress| {
            let train = progress.metrics.iter().find(|(name, _)| *name == "train_perplexity");
            perplexities.extend(train.map(|&(_, value)| value));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(perplexities.len(), 30);
        // Probabilities are rounded to single precision after every iteration.
        assert!(
            perplexities.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-6)),
            "{perplexities:?}"
        );
        assert!(perplexities[29] < 0.8 * perplexities[0], "{perplexities:?}");
    }
}

#[test]
fn all_kinds_learn_the_classes_of_a_grammar() {
    let toy = Toy::of(two_class_corpus(200, 1));
    for params in kinds() {
        let untrained = toy.fit(&params.clone().epochs(0));
        let trained = toy.fit(&params.epochs(15).batch_tokens(200));
        let log_prob = |hmm: &Hmm| toy.valid.iter().map(|s| hmm.log_prob(s)).sum::<f64>();
        let gain = (log_prob(&trained) - log_prob(&untrained)) / toy.valid.n_tokens() as f64;
        assert!(gain > 0.3, "{gain} of {:?}", trained.fitted_with());
    }
}

#[test]
fn unknown_words_are_possible_if_the_training_text_has_some() {
    let toy = Toy::new();
    let hmm = toy.fit(&kinds()[0]);
    let sentence = [toy.corpus.lexicon.ids("w0 never-seen w1"), vec![WordId::EOS]].concat();
    assert_eq!(sentence[1], WordId::UNK);
    assert!(hmm.can_emit(WordId::UNK) && hmm.log_prob(&sentence).is_finite());
    assert_eq!(hmm.viterbi_of(&sentence).unwrap().len(), 4);
    assert_eq!(hmm.viterbi("w0 never-seen w1").unwrap(), hmm.viterbi_of(&sentence).unwrap()[..3]);
}

#[test]
fn unknown_words_are_impossible_if_the_training_text_has_none() {
    let toy = Toy::of(two_class_corpus(50, 1));
    assert_eq!(toy.corpus.lexicon.vocab.count(WordId::UNK), 0);
    for params in kinds() {
        let hmm = toy.fit(&params);
        check_language_model(&hmm, &toy.corpus.sentences);
        let sentence = [WordId(2), WordId::UNK, WordId::EOS];
        assert!(!hmm.can_emit(WordId::UNK));
        assert_eq!(hmm.log_prob(&sentence), f64::NEG_INFINITY);
        assert_eq!(hmm.posterior_of(&sentence), None);
        let word = "never-seen".to_owned();
        assert_eq!(hmm.posterior("a0 never-seen"), Err(ImpossibleText::Word { word }));
        let mut rows = FeatureRows::new();
        hmm.encode(&sentence, &mut rows);
        assert!(rows.len() == 3 && rows.columns().is_empty());
    }
}

#[test]
fn an_impossible_validation_set_is_refused_before_training() {
    let mut toy = Toy::of(two_class_corpus(50, 1));
    toy.valid = Sentences::from_words([[WordId(2)], [WordId::UNK]]);
    for params in [&kinds()[0], &kinds()[4]] {
        let builder = params.clone().with(toy.inputs(params)).valid(&toy.valid);
        let watch = |_: &Progress<'_>| -> ControlFlow<()> { panic!("training has begun") };
        let error = builder.watch(watch).fit(&toy.corpus).map(drop).unwrap_err();
        let expected = "the model cannot score the validation text: no state can emit `<unk>`, because the training \
                        text does not contain it";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn invalid_inputs_are_rejected() {
    let toy = Toy::new();
    let refusal = |params: &HmmParams, clusters: Option<&WordClusters>| {
        let inputs = HmmInputs::default();
        let inputs = clusters.map_or(inputs, |clusters| inputs.clusters(clusters));
        params.clone().with(inputs).fit(&toy.corpus).map(drop).unwrap_err().to_string()
    };
    let params = &kinds()[0];
    let more = refusal(&params.clone().n_clusters(4), Some(&toy.clusters));
    assert!(more.contains("`n_clusters` must be 3"), "{more}");

    let words = toy.clusters.of_word().to_vec();
    let paths = toy.clusters.paths().to_vec();
    let lacking = words.iter().map(|cluster| cluster.filter(|&cluster| cluster != 1));
    let lacking = WordClusters::new(lacking.collect(), paths.clone()).unwrap();
    let lacking = refusal(params, Some(&lacking));
    assert!(lacking.contains("needs a cluster for every word"), "{lacking}");
    // The states of an empty cluster would lose probability mass. `<eos>` fills one of the two empty clusters.
    let without = words.iter().map(|cluster| cluster.map(|_| 0));
    let without = WordClusters::new(without.collect(), paths).unwrap();
    let without = refusal(params, Some(&without));
    assert!(without.contains("needs words in every cluster"), "{without}");
    // So would states that are in no state list.
    let sparse = refusal(&kinds()[3].clone().n_states(4096).n_clusters(2048), None);
    assert!(sparse.contains("`n_states` must be"), "{sparse}");

    let sentences = toy.corpus.sentences.slice(0..0);
    let empty = Corpus { sentences, lexicon: toy.corpus.lexicon.clone() };
    let empty = params.clone().with(toy.inputs(params)).fit(&empty).map(drop).unwrap_err();
    assert!(empty.to_string().contains("at least 1 sentence"), "{empty}");
}

#[test]
fn it_offers_its_roles_as_a_model() {
    let toy = Toy::new();
    let hmm = toy.fit(&kinds()[4]);
    let model: &dyn Model = &hmm;
    assert_eq!((model.kind(), model.description()), ("hmm", "a hidden Markov model"));
    assert_eq!(model.feature_kinds(), ["state", "cluster", "posterior", "cluster-posterior"]);
    let sentence = toy.corpus.sentences.get(0);
    let log_prob = model.as_language_model().unwrap().log_prob(sentence);
    assert_eq!(log_prob.to_bits(), hmm.log_prob(sentence).to_bits());
    let encode = |encoder: &dyn TokenEncoder| {
        let mut rows = FeatureRows::new();
        encoder.encode(sentence, &mut rows);
        rows
    };
    for (kind, features) in Features::ALL {
        assert_eq!(encode(&*model.encoder(kind).unwrap()), encode(&hmm.encoder(features)));
    }
    assert_eq!(encode(model.as_token_encoder().unwrap()), encode(&hmm.encoder(Features::State)));
    assert!(model.encoder("other").is_none() && model.as_tagger().is_none());
}

#[test]
fn the_probabilities_of_every_kind_of_model_are_distributions() {
    let toy = Toy::new();
    let is_one = |values: &[f32]| {
        let sum: f64 = values.iter().map(|&p| f64::from(p)).sum();
        (sum - 1.0).abs() < 1e-5
    };
    for params in kinds() {
        let hmm = toy.fit(&params);
        assert_eq!((hmm.n_states(), hmm.start().len()), (params.n_states, params.n_states));
        assert!(is_one(hmm.start()));
        for state in 0..hmm.n_states() {
            assert!(is_one(&hmm.transition(state)) && is_one(&hmm.emission(state)), "{params:?}");
            let (words, emission) = (hmm.top_word_ids(state, 1000), hmm.emission(state));
            assert!(words.is_sorted_by(|a, b| a.1 >= b.1));
            assert!(words.iter().all(|&(word, p)| emission[word.index()] == p && p > 0.0));
            assert_eq!(words.len(), emission.iter().filter(|&&p| p > 0.0).count());
            let strings = words.iter().map(|&(word, p)| (hmm.lexicon().vocab.word(word), p));
            assert_eq!(hmm.top_words(state, 2), strings.take(2).collect::<Vec<_>>());
        }
        assert!((hmm.stationary().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn texts_and_sentences_of_ids_have_the_same_states() {
    let toy = Toy::new();
    for params in kinds() {
        let hmm = toy.fit(&params);
        let text = "w0 w2 w1 w0";
        let sentence = [hmm.lexicon().ids(text), vec![WordId::EOS]].concat();
        let (posterior, full) =
            (hmm.posterior(text).unwrap(), hmm.posterior_of(&sentence).unwrap());
        assert_eq!((posterior.n_rows(), posterior.n_columns()), (4, hmm.n_states()));
        assert!(posterior.rows().eq(full.rows().take(4)));
        for (row, state) in posterior.rows().zip(hmm.states(text).unwrap()) {
            assert!(row.iter().all(|&p| p <= row[state as usize]));
        }
        assert_eq!(hmm.viterbi(text).unwrap(), hmm.viterbi_of(&sentence).unwrap()[..4]);
        assert_eq!(hmm.posterior("").unwrap().n_rows(), 0);
    }
}

#[test]
fn clusters_that_are_not_given_are_brown_clusters_of_the_corpus() {
    let corpus = two_class_corpus(60, 1);
    let params = Hmm::params().n_states(8).n_clusters(2).dim(4).epochs(1);
    let brown = Brown::params().n_clusters(2).fit(&corpus).unwrap();
    let given = params.clone().with(HmmInputs::default().clusters(brown.clusters())).fit(&corpus);
    assert_same(&params.fit(&corpus).unwrap(), &given.unwrap());
}
