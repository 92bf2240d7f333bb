//! The exams that every model takes, and what this one promises beyond them.

use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, VocabLimits, WordId};
use latens_model::{
    Checkpoint, Device, FeatureRows, FitError, LanguageModel, Params, TokenEncoder, Valid, Watch,
    WordClusters, unwatched,
};
use latens_model_hmm::{
    Constraint, Features, Hmm, HmmParams, Learning, Memory, Parameterization, Training,
};
use latens_testkit::{
    check_file_round_trip, check_language_model, check_resume, check_token_encoder,
    two_class_corpus, zipfian_corpus,
};
use std::ops::ControlFlow;

/// A small text, more text to measure on, and clusters of its words.
struct Toy {
    corpus: Corpus,
    valid: Sentences,
    clusters: WordClusters,
}

const N_CLUSTERS: usize = 3;

impl Toy {
    /// Words that were seen once are unknown words.
    fn new() -> Toy {
        let Corpus { lexicon, sentences } = zipfian_corpus(40, 30, 3);
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let seen = lexicon.vocab.words().zip(lexicon.vocab.counts().iter().copied());
        let vocab = Vocab::from_counts(seen, &limits);
        assert!(vocab.count(WordId::UNK) > 0, "the text has unknown words");
        let id = |&word: &WordId| vocab.id(lexicon.vocab.word(word));
        let words = |sentence: &[WordId]| -> Vec<WordId> {
            sentence[..sentence.len() - 1].iter().map(id).collect()
        };
        let sentences = Sentences::from_words(sentences.iter().map(words));
        Toy::of(Corpus { lexicon: Lexicon { vocab, limits, ..lexicon }, sentences })
    }

    fn of(corpus: Corpus) -> Toy {
        let vocab = &corpus.lexicon.vocab;
        // As in lists of clusters, the end of a sentence is in none.
        let cluster = |word: usize| {
            let counts = vocab.count(WordId::from(word)) > 0 && word != WordId::EOS.index();
            counts.then_some((word % N_CLUSTERS) as u32)
        };
        let paths = ["0", "10", "11"].map(str::to_owned).to_vec();
        let clusters = WordClusters::new((0..vocab.len()).map(cluster).collect(), paths).unwrap();
        let valid = corpus.sentences.slice(0..corpus.sentences.len() / 3);
        Toy { corpus, valid, clusters }
    }

    fn training(&self, params: &HmmParams) -> Training<'_> {
        let with_clusters = params.constraint == Constraint::Brown;
        Training {
            corpus: &self.corpus,
            valid: Some(&self.valid),
            clusters: with_clusters.then_some(&self.clusters),
            tags: None,
            device: Device::Cpu,
        }
    }

    fn fit_watched(&self, params: &Valid<HmmParams>, watch: &mut Watch) -> Result<Hmm, FitError> {
        Hmm::fit(params, &self.training(params), watch)
    }

    fn fit(&self, params: &HmmParams) -> Hmm {
        self.fit_watched(&params.clone().validate().unwrap(), &mut unwatched).unwrap()
    }

    fn resume(
        &self,
        params: &Valid<HmmParams>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Hmm, FitError> {
        Hmm::resume(params, &self.training(params), checkpoint, watch)
    }
}

/// One model of each kind.
fn kinds() -> Vec<HmmParams> {
    use {Constraint as C, Parameterization as P};
    let params = |constraint, parameterization| HmmParams {
        n_states: 12,
        n_clusters: N_CLUSTERS,
        constraint,
        parameterization,
        dim: 6,
        epochs: 3,
        batch_tokens: 60,
        learning_rate: 0.05,
        ..HmmParams::default()
    };
    vec![
        HmmParams { dropout: 0.2, ..params(C::Brown, P::Neural) },
        HmmParams { state_dropout: 0.5, ..params(C::Brown, P::Factored) },
        params(C::None, P::Neural),
        HmmParams { state_dropout: 0.5, ..params(C::Uniform, P::Neural) },
        params(C::Brown, P::Scalar),
        HmmParams { prior: 0.0, ..params(C::Uniform, P::Scalar) },
        // Clusters are for words that have some: their number says nothing here.
        HmmParams { prior: 0.0, n_states: 7, n_clusters: 32, ..params(C::None, P::Scalar) },
        HmmParams {
            learning: Learning::Gradient,
            state_dropout: 0.25,
            ..params(C::Brown, P::Scalar)
        },
        HmmParams { memory: Memory::Carry, run_tokens: 30, ..params(C::Brown, P::Neural) },
        HmmParams { memory: Memory::Carry, ..params(C::Uniform, P::Scalar) },
    ]
}

/// Whether two models are the same to the last bit, as far as anyone can tell.
fn assert_same(a: &Hmm, b: &Hmm) {
    assert_eq!(a.params(), b.params());
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
        assert_eq!(a.posterior(sentence), b.posterior(sentence));
        assert_eq!(a.best_states(sentence), b.best_states(sentence));
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
fn it_is_an_encoder_of_each_kind_of_features() {
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
fn its_file_gives_it_back_and_damage_is_noticed() {
    let toy = Toy::new();
    for params in kinds() {
        check_file_round_trip(&toy.fit(&params), Hmm::save, Hmm::open, assert_same);
    }
}

#[test]
fn an_interrupted_training_learns_the_same_model() {
    let toy = Toy::new();
    for params in kinds() {
        let params = params.validate().unwrap();
        check_resume(
            |watch| toy.fit_watched(&params, watch),
            |checkpoint, watch| toy.resume(&params, checkpoint, watch),
            assert_same,
        );
    }
}

#[test]
fn threads_change_nothing() {
    let toy = Toy::new();
    let fit = |n_threads: usize, params: &HmmParams| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| toy.fit(params))
    };
    for params in kinds() {
        assert_same(&fit(1, &params), &fit(3, &params));
    }
    // Large enough that products of matrices are worth dividing.
    let large = HmmParams { n_states: 384, dim: 96, epochs: 1, ..kinds()[0].clone() };
    let scalar = HmmParams { n_states: 384, epochs: 2, ..kinds()[4].clone() };
    for params in [&large, &HmmParams { constraint: Constraint::None, ..large.clone() }, &scalar] {
        assert_same(&fit(1, params), &fit(3, params));
    }
}

#[test]
fn running_text_is_learned_as_one_long_sentence() {
    let toy = Toy::new();
    // The ends of sentences become words inside of one.
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
        let carried = HmmParams { memory: Memory::Carry, run_tokens: n, ..apart.clone() };
        let (expected, hmm, apart) = (one.fit(&apart), toy.fit(&carried), toy.fit(&apart));
        for name in ["train_perplexity", "valid_perplexity"] {
            assert_eq!(hmm.facts().get(name), expected.facts().get(name), "{name}");
            assert_ne!(hmm.facts().get(name), apart.facts().get(name), "{name}");
        }
        // What is read before matters after the end of a sentence, too.
        let (mut scorer, text) = (hmm.scorer(), toy.valid.tokens());
        let sum: f64 = text.iter().map(|&word| scorer.read(word)).sum();
        let fresh: f64 = toy.valid.iter().map(|sentence| hmm.log_prob(sentence)).sum();
        assert!(fresh < sum - 1e-3 * sum.abs(), "{sum} {fresh}");
    }
}

#[test]
fn models_of_short_lists_of_states_keep_all_promises() {
    use Learning::{Em, Gradient};
    // More words than are worked on together.
    let toy = Toy::of(zipfian_corpus(900, 400, 1));
    for (parameterization, learning, state_dropout) in [
        (Parameterization::Neural, Em, 0.5),
        (Parameterization::Scalar, Em, 0.0),
        (Parameterization::Scalar, Gradient, 0.5),
    ] {
        // Two states of sixteen for each word.
        let params = HmmParams {
            n_states: 16,
            n_clusters: 8,
            constraint: Constraint::Uniform,
            parameterization,
            learning,
            state_dropout,
            dim: 6,
            epochs: 3,
            batch_tokens: 60,
            ..HmmParams::default()
        };
        let params = params.validate().unwrap();
        let fit = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| toy.fit(&params))
        };
        let hmm = fit(1);
        assert_same(&hmm, &fit(3));
        check_language_model(&hmm, &toy.corpus.sentences);
        check_file_round_trip(&hmm, Hmm::save, Hmm::open, assert_same);
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
        let params = HmmParams {
            n_states: 9,
            n_clusters: N_CLUSTERS,
            constraint,
            parameterization: Parameterization::Scalar,
            epochs: 30,
            prior: 0.0,
            ..HmmParams::default()
        };
        let mut perplexities = Vec::new();
        toy.fit_watched(&params.validate().unwrap(), &mut |progress| {
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
fn all_ways_learn_the_classes_of_a_grammar() {
    let toy = Toy::of(two_class_corpus(200, 1));
    for params in kinds() {
        let untrained = toy.fit(&HmmParams { epochs: 0, ..params.clone() });
        let trained = toy.fit(&HmmParams { epochs: 15, batch_tokens: 200, ..params });
        let log_prob = |hmm: &Hmm| toy.valid.iter().map(|s| hmm.log_prob(s)).sum::<f64>();
        let gain = (log_prob(&trained) - log_prob(&untrained)) / toy.valid.n_tokens() as f64;
        assert!(gain > 0.3, "{gain} of {:?}", trained.params());
    }
}

#[test]
fn unknown_words_are_words_where_the_text_has_some() {
    let toy = Toy::new();
    let hmm = toy.fit(&kinds()[0]);
    let sentence = [toy.corpus.lexicon.ids("w0 never-seen w1"), vec![WordId::EOS]].concat();
    assert_eq!(sentence[1], WordId::UNK);
    assert!(hmm.can_emit(WordId::UNK) && hmm.log_prob(&sentence).is_finite());
    assert_eq!(hmm.best_states(&sentence).unwrap().len(), 4);
}

#[test]
fn unknown_words_are_impossible_where_the_text_has_none() {
    let toy = Toy::of(two_class_corpus(50, 1));
    assert_eq!(toy.corpus.lexicon.vocab.count(WordId::UNK), 0);
    for params in kinds() {
        let hmm = toy.fit(&params);
        check_language_model(&hmm, &toy.corpus.sentences);
        let sentence = [WordId(2), WordId::UNK, WordId::EOS];
        assert!(!hmm.can_emit(WordId::UNK));
        assert_eq!(hmm.log_prob(&sentence), f64::NEG_INFINITY);
        assert_eq!(hmm.posterior(&sentence), None);
        let mut rows = FeatureRows::new();
        hmm.encode(&sentence, &mut rows);
        assert!(rows.len() == 3 && rows.columns().is_empty());
    }
}

#[test]
fn held_out_text_that_is_impossible_decides_nothing() {
    let mut toy = Toy::of(two_class_corpus(50, 1));
    toy.valid = Sentences::from_words([[WordId(2)], [WordId::UNK]]);
    for params in [&kinds()[0], &kinds()[4]] {
        let hmm = toy.fit(params);
        assert!(!hmm.facts().contains_key("valid_perplexity"));
        let training = Training { valid: None, ..toy.training(params) };
        let last = Hmm::fit(&params.clone().validate().unwrap(), &training, &mut unwatched);
        assert_same(&hmm, &last.unwrap());
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let toy = Toy::new();
    let refusal = |params: &HmmParams, training: &Training<'_>| {
        let params = params.clone().validate().unwrap();
        Hmm::fit(&params, training, &mut unwatched).map(drop).unwrap_err().to_string()
    };
    let params = &kinds()[0];
    let training = toy.training(params);
    let none = refusal(params, &Training { clusters: None, ..training });
    assert!(none.contains("needs clusters of words"), "{none}");
    let more = refusal(&HmmParams { n_clusters: 4, ..params.clone() }, &training);
    assert!(more.contains("`n_clusters` must be 3"), "{more}");

    let words = toy.clusters.of_word().to_vec();
    let paths = toy.clusters.paths().to_vec();
    let lacking = words.iter().map(|cluster| cluster.filter(|&cluster| cluster != 1));
    let lacking = WordClusters::new(lacking.collect(), paths.clone()).unwrap();
    let lacking = refusal(params, &Training { clusters: Some(&lacking), ..training });
    assert!(lacking.contains("needs a cluster for every word"), "{lacking}");
    // States of a cluster without words would swallow probability. One of two such gets the end of sentences.
    let without = words.iter().map(|cluster| cluster.map(|_| 0));
    let without = WordClusters::new(without.collect(), paths).unwrap();
    let without = refusal(params, &Training { clusters: Some(&without), ..training });
    assert!(without.contains("needs words in every cluster"), "{without}");
    // So would states that are drawn for no word.
    let sparse = HmmParams { n_states: 4096, n_clusters: 2048, ..kinds()[3].clone() };
    let sparse = refusal(&sparse, &toy.training(&sparse));
    assert!(sparse.contains("`n_states` must be"), "{sparse}");

    let empty =
        Corpus { sentences: toy.corpus.sentences.slice(0..0), lexicon: toy.corpus.lexicon.clone() };
    let empty = refusal(params, &Training { corpus: &empty, ..training });
    assert!(empty.contains("at least 1 sentence"), "{empty}");
}
