//! Compares the CUDA device with the CPU. Without a device, the tests are skipped.

use super::*;
use crate::learner::CpuLearner;
use crate::params::{Mask, Memory, Tying};
use latens_math::Rng;
use latens_nn::Squash;

/// Reports once on stderr, bypassing the test harness, that the tests are skipped.
fn skip(error: &CudaError) {
    use std::io::Write;
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipping the tests on a CUDA device: {error}");
    });
}

fn text(n_words: usize, n: usize, rng: &mut Rng) -> Vec<WordId> {
    (0..n).map(|_| WordId::from((rng.uniform() * n_words as f64) as usize)).collect()
}

/// Takes a step and returns its Σ ln p.
fn step<L: DeviceLearner>(learner: &mut L, batch: &Batch, choices: &Choices) -> f64 {
    let plan = learner.plan(batch);
    learner.begin_step(batch, &plan, choices).unwrap();
    learner.end_step().unwrap()
}

/// Tolerance of gradients, relative to their norm.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::Full => 1e-4,
        // TF32 has 11 significant bits.
        Precision::Fast => 1e-2,
    }
}

fn compare(params: &NeuralParams, n_words: usize, seed: u64) {
    for precision in [Precision::Full, Precision::Fast] {
        compare_with(precision, params, n_words, seed);
    }
}

fn compare_with(precision: Precision, params: &NeuralParams, n_words: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    // Nine steps: recurrent layers record their work in the second of a kind and start it as a whole later.
    let text = text(n_words, 343, &mut rng);
    let (network, reader) = (Network::new(params, n_words), Reader::new(params, &text));
    let mut weights = vec![0.0; network.layout.len()];
    network.init(&mut weights, &mut rng);
    let n_memory = reader.n_streams() * network.state_len();
    let state = LearnerState::new(params, weights, n_memory);
    let mut cuda = match CudaLearner::new(params, &network, &state, precision) {
        Ok(learner) => learner,
        Err(error) if error.is_unavailable() => return skip(&error),
        Err(error) => panic!("{error}"),
    };
    let mut cpu = CpuLearner::new(params, &network, state);
    let scale = 1.0 / reader.full_size() as f64;
    for at in 0..reader.len() {
        let batch = reader.batch(at, &[]);
        let choices = Choices { masks: None, learning_rate: 1e-3, scale };
        let [a, b] = [step(&mut cpu, &batch, &choices), step(&mut cuda, &batch, &choices)];
        let may_differ = 0.1 * tolerance(precision) * a.abs();
        assert!((a - b).abs() < may_differ, "ln p of step {at}: {a} and {b}");
        let gradient = cuda.device.download(&cuda.learned.gradient).unwrap();
        let gradient: Vec<f32> = gradient.iter().map(|g| -g * scale as f32).collect();
        // Weights drift apart with every step.
        let may_differ = tolerance(precision) * (1 + at / 4) as f64;
        assert_near(&gradient, cpu.gradient(), may_differ, "gradients");
    }
    let (a, b) = (cpu.state().unwrap(), cuda.state().unwrap());
    assert_near(&b.memory, &a.memory, tolerance(precision), "memories");
    assert_near(&b.weights, &a.weights, tolerance(precision), "weights");
    assert_near(&b.average, &a.average, tolerance(precision), "averages");
    assert_eq!(a.n_steps, b.n_steps);
    let (a, b) = (cpu.log_prob(&text).unwrap(), cuda.log_prob(&text).unwrap());
    assert!((a - b).abs() < tolerance(precision) * a.abs(), "ln p after steps: {a} and {b}");
}

fn assert_near(a: &[f32], b: &[f32], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    let length = norm(&mut b.iter().copied());
    assert!(difference <= tolerance * length, "{what} differ by {difference} of {length}");
}

#[test]
fn steps_agree_with_the_cpu() {
    let small = |params| NeuralParams { dim: 24, batch_size: 6, bptt: 7, dropout: 0.0, ..params };
    let (ff, rnn, lstm) =
        (small(NeuralParams::ff()), small(NeuralParams::rnn()), small(NeuralParams::lstm()));
    for (i, params) in [
        NeuralParams { batch_size: 50, ..ff.clone() },
        NeuralParams { tying: Tying::Separate, optimizer: Optimizer::Sgd, ..ff },
        NeuralParams { optimizer: Optimizer::Sgd, ..rnn.clone() },
        NeuralParams { memory: Memory::Reset, tying: Tying::Shared, ..rnn.clone() },
        NeuralParams { squash: Squash::Sigmoid, optimizer: Optimizer::AdamW, ..rnn },
        lstm.clone(),
        NeuralParams { memory: Memory::Reset, tying: Tying::Separate, n_layers: 1, ..lstm.clone() },
        NeuralParams { optimizer: Optimizer::AdamW, n_layers: 3, dim: 40, ..lstm.clone() },
        NeuralParams {
            optimizer: Optimizer::AdamW,
            n_layers: 3,
            hidden_dim: 31,
            activation_penalty: 0.7,
            average: 0.1,
            ..lstm
        },
    ]
    .into_iter()
    .enumerate()
    {
        compare(&params, 30 + 700 * i, i as u64);
    }
}

#[test]
fn steps_of_wide_layers_agree_with_the_cpu() {
    // Wider than the layers whose time steps are one kernel each.
    let wide = |params| NeuralParams {
        dim: 1200,
        n_layers: 1,
        batch_size: 6,
        bptt: 7,
        dropout: 0.0,
        ..params
    };
    for params in [wide(NeuralParams::rnn()), wide(NeuralParams::lstm())] {
        compare(&params, 40, 20);
    }
}

#[test]
fn dropout_drops_the_expected_fraction() {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) if error.is_unavailable() => return skip(&error),
        Err(error) => panic!("{error}"),
    };
    let n = 40_000;
    let ones = device.upload(&vec![1f32; n]).unwrap();
    let (mut out, mut again) = (device.zeros(n).unwrap(), device.upload(&vec![1f32; n]).unwrap());
    let drop = Dropout { rate: 0.3, seed: 5, period: None };
    device.dropout(&mut out, (&ones, 0..n), drop).unwrap();
    device.dropout_in_place((&mut again, 0..n), drop).unwrap();
    let (out, again) = (device.download(&out).unwrap(), device.download(&again).unwrap());
    assert_eq!(out, again);
    let n_zeros = out.iter().filter(|&&x| x == 0.0).count() as f64;
    // Four standard deviations of a binomial count.
    assert!((n_zeros - 12_000.0).abs() < 4.0 * (40_000.0f64 * 0.21).sqrt());
    assert!(out.iter().all(|&x| x == 0.0 || (x - 1.0 / 0.7).abs() < 1e-6));
}

/// Masks of the device differ from those of the CPU, so the gradient is compared with differences of the loss: between
/// weights that are moved along it, with the same masks.
#[test]
fn gradients_with_dropout_agree_with_differences() {
    let params = NeuralParams {
        dim: 24,
        hidden_dim: 31,
        n_layers: 3,
        batch_size: 6,
        bptt: 7,
        dropout: 0.4,
        input_dropout: Some(0.3),
        layer_dropout: Some(0.2),
        word_dropout: 0.2,
        weight_dropout: 0.5,
        mask: Mask::Sequence,
        // The reported loss is without the penalty.
        activation_penalty: 0.0,
        optimizer: Optimizer::Sgd,
        clip: 1e9,
        ..NeuralParams::lstm()
    };
    let (n_words, mut rng) = (50, Rng::new(3));
    let text = text(n_words, 157, &mut rng);
    let (network, reader) = (Network::new(&params, n_words), Reader::new(&params, &text));
    let mut weights = vec![0.0; network.layout.len()];
    network.init(&mut weights, &mut rng);
    let state = LearnerState::new(&params, weights, reader.n_streams() * network.state_len());
    let mut cuda = match CudaLearner::new(&params, &network, &state, Precision::Full) {
        Ok(learner) => learner,
        Err(error) if error.is_unavailable() => return skip(&error),
        Err(error) => panic!("{error}"),
    };
    let (batch, masks) = (reader.batch(0, &[]), Masks::new(&params, 9));
    // A step moves along the gradient by this much.
    let (rate, scale) = (0.02, 1.0 / reader.full_size() as f64);
    let learn = |learner: &mut CudaLearner<'_>| {
        learner.forget().unwrap();
        let choices = Choices { masks, learning_rate: rate, scale };
        step(learner, &batch, &choices)
    };
    let before = learn(&mut cuda);
    let gradient = cuda.device.download(&cuda.learned.gradient).unwrap();
    let square: f64 = gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
    let after = learn(&mut cuda);
    let expected = rate * scale * square;
    let risen = after - before;
    assert!((risen - expected).abs() < 0.02 * expected, "rose by {risen}, expected {expected}");
}

#[test]
fn rows_of_the_same_word_form_one_group() {
    let batch = Batch {
        n_streams: 2,
        inputs: vec![5, 3, 5, 5],
        targets: vec![3, 4, 6, 7],
        fresh: vec![true, false, false, true],
    };
    let plan = Plan::new(&batch);
    let numbers = &plan.numbers;
    assert_eq!(numbers[plan.words.clone()], [3, 5]);
    assert_eq!(numbers[plan.starts.clone()], [0, 1, 4]);
    assert_eq!(numbers[plan.places.clone()], [1, 0, 2, 3]);
    let fresh = plan.fresh.unwrap();
    assert_eq!(numbers[fresh..fresh + 4], [1, 0, 0, 1]);
}
