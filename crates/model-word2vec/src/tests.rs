//! Training steps against the definition of the loss.

use crate::learner::Learner;
use crate::worker::Worker;
use crate::{Algorithm, Word2vecParams};
use latens_corpus::Corpus;
use latens_math::Rng;
use latens_math::hogwild::SharedRows;
use pulp::{Simd, WithSimd};

const DIM: usize = 7;

fn params() -> Word2vecParams {
    Word2vecParams { dim: DIM, n_negatives: 4, learning_rate: 1.0, ..Word2vecParams::default() }
}

fn corpus() -> Corpus {
    latens_testkit::two_class_corpus(50, 1)
}

fn random(n: usize, rng: &mut Rng) -> Vec<f32> {
    (0..n).map(|_| rng.normal() as f32).collect()
}

/// L = −ln σ(u_w · h) − Σ_v ln σ(−u_v · h), as defined.
fn loss(outputs: &[f64], hidden: &[f64], word: usize, negatives: &[usize]) -> f64 {
    let score = |word: usize| -> f64 {
        outputs[word * DIM..][..DIM].iter().zip(hidden).map(|(u, h)| u * h).sum()
    };
    let log_sigmoid = |x: f64| -(-x).exp().ln_1p();
    let wrong: f64 = negatives.iter().map(|&word| log_sigmoid(-score(word))).sum();
    -log_sigmoid(score(word)) - wrong
}

/// ∂f/∂x_i by central differences.
fn gradient(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let h = 1e-5;
    let at = |i: usize, change: f64| {
        let mut x = x.to_vec();
        x[i] += change;
        f(&x)
    };
    (0..x.len()).map(|i| (at(i, h) - at(i, -h)) / (2.0 * h)).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Makes one prediction with learning rate 1 and returns the loss and the step of the hidden vector.
struct Predict<'w, 'a> {
    worker: &'w mut Worker<'a>,
    hidden: &'w [f32],
    word: u32,
}

impl WithSimd for Predict<'_, '_> {
    type Output = (f64, Vec<f32>);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Predict { worker, hidden, word } = self;
        SharedRows::new(hidden, DIM).load(0, &mut worker.hidden);
        worker.predict(simd, word);
        let error = SharedRows::new(&[0.0; DIM], DIM);
        error.store(0, &worker.error);
        (worker.loss().sum, error.to_vec())
    }
}

#[test]
fn a_prediction_takes_a_gradient_step_on_its_loss() {
    let (corpus, params, mut rng) = (corpus(), params(), Rng::new(5));
    let n = corpus.lexicon.vocab.len() * DIM;
    let (inputs, outputs) = (random(n, &mut rng), random(n, &mut rng));
    let hidden = random(DIM, &mut rng);
    for word in 2..12u32 {
        let learner = Learner::new(&params, &corpus, &inputs, &outputs);
        let mut worker = Worker::new(&learner);
        worker.begin(1.0, Rng::new(u64::from(word)));
        let mut negatives: Vec<usize> = worker.words[1..].iter().map(|&w| w as usize).collect();
        negatives.retain(|&negative| negative != word as usize);
        assert!(negatives.len() >= 2);
        let predict = Predict { worker: &mut worker, hidden: &hidden, word };
        let (found_loss, step) = pulp::Arch::new().dispatch(predict);

        let (u, h, word) = (wide(&outputs), wide(&hidden), word as usize);
        assert!((found_loss - loss(&u, &h, word, &negatives)).abs() < 1e-5);
        let by_hidden = gradient(&h, |h| loss(&u, h, word, &negatives));
        for (step, gradient) in step.iter().zip(by_hidden) {
            assert!((f64::from(*step) + gradient).abs() < 1e-5, "{step} against {gradient}");
        }
        let by_outputs = gradient(&u, |u| loss(u, &h, word, &negatives));
        for ((after, before), gradient) in learner.outputs.to_vec().iter().zip(&u).zip(by_outputs) {
            assert!((f64::from(*after) - before + gradient).abs() < 1e-5);
        }
        assert_eq!(learner.inputs.to_vec(), inputs, "a prediction changes no input");
    }
}

#[test]
fn only_the_words_of_a_window_are_updated() {
    // Two words, each in the window of the other: whatever is drawn, only their inputs may change.
    let corpus = corpus();
    for algorithm in [Algorithm::Cbow, Algorithm::SkipGram] {
        let params = Word2vecParams { algorithm, subsample: 0.0, ..params() };
        let [inputs, outputs] = Learner::first_rows(&params, corpus.lexicon.vocab.len());
        let outputs: Vec<f32> = outputs.iter().map(|_| 0.1).collect();
        let learner = Learner::new(&params, &corpus, &inputs, &outputs);
        let mut worker = Worker::new(&learner);
        worker.learn_block(&[5, 8, 1].map(latens_corpus::WordId), 0.1, Rng::new(1));
        assert_eq!(worker.loss().n, 2);
        let after = learner.inputs.to_vec();
        for word in 0..corpus.lexicon.vocab.len() {
            let rows = word * DIM..(word + 1) * DIM;
            let changed = after[rows.clone()] != inputs[rows];
            assert_eq!(changed, word == 5 || word == 8, "word {word}");
        }
    }
}
