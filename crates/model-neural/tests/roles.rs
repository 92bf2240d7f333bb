//! The contracts of all models, and the specifics of neural language models.

use latens_corpus::{Corpus, Sentences, WordId};
use latens_model::{Checkpoint, Fit, FitBuilder, FitError, LanguageModel, Model, Watch};
use latens_model_neural::{
    Architecture, FirstWeights, Memory, Neural, NeuralInputs, NeuralParams, Optimizer, Schedule,
    Squash, Tying,
};
use latens_testkit::{
    check_file_round_trip, check_language_model, check_resume, two_class_corpus, zipfian_corpus,
};
use std::ops::ControlFlow;

struct Toy {
    corpus: Corpus,
    valid: Sentences,
}

impl Toy {
    fn of(corpus: Corpus) -> Toy {
        let n = corpus.sentences.len();
        let valid = corpus.sentences.slice(n * 4 / 5..n);
        let sentences = corpus.sentences.slice(0..n * 4 / 5);
        Toy { corpus: Corpus { sentences, ..corpus }, valid }
    }

    fn new() -> Toy {
        Toy::of(zipfian_corpus(20, 60, 1))
    }

    fn builder(&self, params: &NeuralParams) -> FitBuilder<'_, '_, NeuralParams> {
        params.clone().valid(&self.valid)
    }

    fn fit_watched(&self, params: &NeuralParams, watch: &mut Watch) -> Result<Neural, FitError> {
        self.builder(params).watch(|progress| watch(progress)).fit(&self.corpus)
    }

    fn fit(&self, params: &NeuralParams) -> Neural {
        self.builder(params).fit(&self.corpus).unwrap()
    }

    fn fit_from(&self, params: &NeuralParams, init: &FirstWeights<'_>) -> Result<Neural, FitError> {
        let inputs = NeuralInputs::default().init(init);
        params.clone().with(inputs).valid(&self.valid).fit(&self.corpus)
    }

    fn resume(
        &self,
        params: &NeuralParams,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Neural, FitError> {
        let builder = params.clone().valid(&self.valid).checkpoint(checkpoint);
        builder.watch(|progress| watch(progress)).fit(&self.corpus)
    }
}

/// Parameters of one model per kind.
fn kinds() -> Vec<NeuralParams> {
    let small = |params: NeuralParams| params.dim(6).epochs(3).batch_size(7).bptt(4).dropout(0.2);
    let (ff, rnn, lstm) =
        (small(NeuralParams::ff()), small(NeuralParams::rnn()), small(NeuralParams::lstm()));
    vec![
        ff.clone().batch_size(30),
        ff.memory(Memory::Reset).tying(Tying::Separate),
        rnn.clone().optimizer(Optimizer::Sgd).learning_rate(2.0),
        rnn.memory(Memory::Reset).squash(Squash::Sigmoid).tying(Tying::Shared),
        lstm.clone(),
        lstm.memory(Memory::Reset)
            .optimizer(Optimizer::AdamW)
            .schedule(Schedule::Cosine)
            .learning_rate(0.01)
            .weight_decay(0.01)
            .n_layers(1),
    ]
}

/// Asserts that two models are bitwise equal as far as observable.
fn assert_same(a: &Neural, b: &Neural) {
    assert_eq!(
        (a.kind(), a.fitted_with(), a.n_weights()),
        (b.kind(), b.fitted_with(), b.n_weights())
    );
    for name in ["train_perplexity", "valid_perplexity", "best_epoch", "epochs", "tokens"] {
        assert_eq!(a.facts().get(name), b.facts().get(name), "{name}");
    }
    let text: Vec<WordId> = (0..100).map(|i: u32| WordId(i * i % a.n_words() as u32)).collect();
    assert_eq!(a.text_log_prob(&text).to_bits(), b.text_log_prob(&text).to_bits());
}

#[test]
fn all_kinds_satisfy_the_language_model_contract() {
    let toy = Toy::new();
    for params in kinds() {
        check_language_model(&toy.fit(&params), &toy.corpus.sentences);
    }
}

#[test]
fn model_files_round_trip_and_damage_is_detected() {
    let toy = Toy::new();
    for params in kinds() {
        let model = toy.fit(&params);
        check_file_round_trip(
            &model,
            |m, path| m.save(path),
            |path| Neural::open(path),
            assert_same,
        );
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
    let fit = |n_threads: usize, params: &NeuralParams| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| toy.fit(params))
    };
    for params in kinds() {
        // Large enough for parallel matrix products.
        let params = params.dim(150).epochs(1);
        assert_same(&fit(1, &params), &fit(3, &params));
    }
}

/// In five of six places, the next word is in the other class with probability 0.8, which is worth ln 2 − H(0.8) = 0.19
/// nats compared with the frequencies of the words. That the first word is in class a is worth ln 2 in the others.
#[test]
fn all_kinds_learn_the_classes_of_a_grammar() {
    let toy = Toy::of(two_class_corpus(200, 1));
    let mut counts = vec![1.0; toy.corpus.lexicon.vocab.len()];
    toy.corpus.sentences.tokens().iter().for_each(|word| counts[word.index()] += 1.0);
    let total = counts.iter().sum::<f64>();
    let of_frequencies =
        toy.valid.tokens().iter().map(|word| (counts[word.index()] / total).ln()).sum::<f64>();
    for params in kinds() {
        let rate = match (params.optimizer, params.architecture) {
            (Optimizer::AdamW, _) => 0.01,
            (Optimizer::Sgd, Architecture::Lstm) => 5.0,
            (Optimizer::Sgd, _) => 0.5,
        };
        let params = params
            .dim(16)
            .epochs(60)
            .schedule(Schedule::Constant)
            .learning_rate(rate)
            .clip(5.0)
            .dropout(0.0);
        let model = toy.fit(&params);
        let log_prob = model.text_log_prob(toy.valid.tokens());
        let gain = (log_prob - of_frequencies) / toy.valid.n_tokens() as f64;
        assert!(gain > 0.05, "{gain} of {:?}", model.fitted_with());
    }
}

#[test]
fn halving_continues_as_long_as_it_helps() {
    let toy = Toy::new();
    let params = kinds()[2].clone().epochs(100);
    let mut rates = Vec::new();
    let model = toy.fit_watched(&params, &mut |progress| {
        let rate = progress.metrics.iter().find(|(name, _)| *name == "learning_rate");
        rates.extend(rate.map(|&(_, rate)| rate));
        ControlFlow::Continue(())
    });
    assert_eq!(model.unwrap().facts()["epochs"], rates.len());
    assert!(rates.len() < 100 && rates[0] == 2.0);
    let halved = rates.iter().position(|&rate| rate < rates[0]).expect("it is halved");
    assert!(rates[halved - 1..].windows(2).all(|pair| pair[1] == pair[0] / 2.0), "{rates:?}");
}

#[test]
fn divergence_ends_the_training() {
    let toy = Toy::new();
    let wild = |params: &NeuralParams, learning_rate| {
        let params = params.clone().learning_rate(learning_rate).clip(1e30).dropout(0.0);
        toy.builder(&params).fit(&toy.corpus)
    };
    for params in [&kinds()[0], &kinds()[2], &kinds()[4]] {
        let error = wild(params, 1e12).map(drop).unwrap_err();
        // Some networks diverge within the epoch, others cannot score the validation text after it.
        let is_diverged = matches!(error, FitError::Diverged { epoch: 1, .. });
        let is_unscorable = matches!(error, FitError::Unscorable { .. });
        assert!(is_diverged || is_unscorable, "{error}");
        assert!(error.to_string().contains("lower `learning_rate`"), "{error}");
    }
}

#[test]
fn one_sentence_suffices_and_an_empty_corpus_is_rejected() {
    let corpus = two_class_corpus(5, 1);
    for params in kinds() {
        let one = Corpus { sentences: corpus.sentences.slice(0..1), ..corpus.clone() };
        let model = params.clone().fit(&one).unwrap();
        assert!(model.log_prob(one.sentences.get(0)).is_finite());
        let none = Corpus { sentences: corpus.sentences.slice(0..0), ..corpus.clone() };
        let error = params.fit(&none).map(drop).unwrap_err();
        assert!(error.to_string().contains("at least 1 sentence"), "{error}");
    }
}

/// A two-dimensional linear filter for the vocabulary of a corpus.
fn filter(corpus: &Corpus, scale: f64) -> FirstWeights<'_> {
    let n = corpus.lexicon.vocab.len();
    let numbers = |len: usize, seed: u32| -> Vec<f32> {
        (0..len as u32).map(|i| ((i * 37 + seed * 11) % 21) as f32 / 20.0 - 0.5).collect()
    };
    FirstWeights {
        vocab: &corpus.lexicon.vocab,
        dim: 2,
        recurrent: vec![0.5, 0.2, -0.3, 0.4],
        input: numbers(2 * n, 1),
        output: numbers(2 * n, 2),
        bias: numbers(n, 3),
        scale,
        max_output_norm: 10.0,
    }
}

/// ln p of the first words of a text under the linear filter.
fn filtered_log_probs(filter: &FirstWeights<'_>, text: &[WordId]) -> Vec<f64> {
    let number = |values: &[f32], i: usize| f64::from(values[i]);
    let (mut x, mut before) = ([0.0; 2], WordId::EOS);
    let read = text.iter().map(|&word| {
        let r = &filter.recurrent;
        x = [0, 1].map(|i| {
            number(r, 2 * i) * x[0]
                + number(r, 2 * i + 1) * x[1]
                + number(&filter.input, 2 * before.index() + i)
        });
        before = word;
        let logits: Vec<f64> = (0..filter.bias.len())
            .map(|w| {
                number(&filter.bias, w)
                    + number(&filter.output, 2 * w) * x[0]
                    + number(&filter.output, 2 * w + 1) * x[1]
            })
            .collect();
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        logits[word.index()] - sum.ln()
    });
    read.collect()
}

#[test]
fn an_initialized_network_agrees_with_its_filter() {
    let toy = Toy::new();
    let text = &toy.corpus.sentences.tokens()[..60];
    for squash in [Squash::Tanh, Squash::Sigmoid] {
        // Small hidden vectors stay in the linear range of the activations.
        let filter = filter(&toy.corpus, 0.01);
        let params = NeuralParams::rnn().dim(2).epochs(0).squash(squash);
        let model = toy.fit_from(&params, &filter).unwrap();
        let mut scorer = model.scorer();
        // The logistic function is centered at ½, so the effect of the zero initial state must decay first.
        let n_to_fade = if squash == Squash::Sigmoid { 40 } else { 0 };
        let expected = filtered_log_probs(&filter, text).into_iter();
        for (i, (expected, &word)) in expected.zip(text).enumerate() {
            let log_prob = scorer.read(word);
            let agrees = i < n_to_fade || (log_prob - expected).abs() < 1e-3;
            assert!(agrees, "{squash:?}, word {i}: {log_prob} and {expected}");
        }
    }
}

#[test]
fn long_output_rows_of_a_filter_are_scaled_down() {
    let toy = Toy::new();
    let begun = |max_output_norm, shrink: f32| {
        let mut filter = FirstWeights { max_output_norm, ..filter(&toy.corpus, 0.5) };
        filter.output.iter_mut().for_each(|o| *o = shrink * o.signum() / 2f32.sqrt());
        let params = NeuralParams::rnn().dim(2).epochs(0);
        toy.fit_from(&params, &filter).unwrap()
    };
    // All rows have norm 1 or 0.2.
    let text = toy.valid.tokens();
    let (whole, cut, short) = (begun(1.1, 1.0), begun(0.2, 1.0), begun(1.1, 0.2));
    assert!((cut.text_log_prob(text) - short.text_log_prob(text)).abs() < 1e-3);
    assert!((whole.text_log_prob(text) - short.text_log_prob(text)).abs() > 1.0);
}

#[test]
fn an_incompatible_filter_is_rejected() {
    let toy = Toy::new();
    let refusal = |params: NeuralParams, init: &FirstWeights<'_>| {
        toy.fit_from(&params, init).map(drop).unwrap_err().to_string()
    };
    let fitting = filter(&toy.corpus, 1.0);
    let rnn = || NeuralParams::rnn().dim(2);
    let other = refusal(rnn().dim(3), &fitting);
    assert!(other.contains("`dim` must be 2"), "{other}");
    let lstm = refusal(NeuralParams::lstm(), &fitting);
    assert!(lstm.contains("`init` must be unset except for `rnn`"), "{lstm}");
    let tied = refusal(rnn().tying(Tying::Shared), &fitting);
    assert!(tied.contains("`tying` must be `separate`"), "{tied}");
    let other = zipfian_corpus(30, 60, 2);
    let words = refusal(rnn(), &filter(&other, 1.0));
    assert!(words.contains("`init` must be a model with the same vocabulary"), "{words}");
}

#[test]
fn scores_depend_on_the_history() {
    let toy = Toy::new();
    let words = |model: &Neural, text: &[u32]| {
        let mut scorer = model.scorer();
        text.iter().for_each(|&word| assert!(scorer.read(WordId(word)) < 0.0));
        scorer.read(WordId(2))
    };
    for params in kinds() {
        let model = toy.fit(&params);
        let (a, b) = (words(&model, &[3, 1]), words(&model, &[4, 1]));
        assert_eq!(a == b, params.memory == Memory::Reset, "{params:?}");
    }
}
