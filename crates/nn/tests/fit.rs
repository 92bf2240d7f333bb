//! Training of whole networks.

use latens_math::Rng;
use latens_math::linalg::{Accum, MatRef, Par};
use latens_nn::{
    AdamW, AdamWParams, Buffer, CharCnn, CharCnnParams, CharCnnScratch, Dropout, Layout, Linear,
    Residual, ResidualScratch, Schedule, Spellings, clip_factor, cross_entropy, norm,
};

/// A residual and a linear layer that classify points as inside or outside a circle.
struct Network {
    residual: Residual,
    output: Linear,
    layout: Layout,
}

impl Network {
    fn new() -> Network {
        let mut layout = Layout::new();
        let residual = Residual::new(&mut layout, "residual", 2, 16);
        let output = Linear::new(&mut layout, "output", 16, 2);
        Network { residual, output, layout }
    }

    /// Returns the loss per example before each of `n_steps` steps, and the final weights.
    fn fit(&self, n_steps: u64, dropout: f64, par: Par) -> (Vec<f64>, Vec<f32>) {
        let (points, classes) = points_and_classes();
        let n = classes.len();
        let x = MatRef::from_row_major_slice(&points, n, 2);
        let mut weights = vec![0.0; self.layout.len()];
        self.residual.init(&mut weights, &mut Rng::new(1));
        self.output.init(&mut weights, &mut Rng::new(2));
        let mut adam = AdamW::new(AdamWParams::default(), weights.len());
        let schedule = Schedule::Cosine { rate: 0.02, n_steps, n_warmup: 10 };
        let (mut hidden, mut logits, mut d_hidden) = (Buffer::new(), Buffer::new(), Buffer::new());
        hidden.resize(n, 16);
        d_hidden.resize(n, 16);
        logits.resize(n, 2);
        let mut scratch = ResidualScratch::default();
        let mut gradient = vec![0.0; weights.len()];
        let mut losses = vec![];
        for step in 0..n_steps {
            gradient.fill(0.0);
            let dropout = (dropout > 0.0).then(|| Dropout::new(dropout, step));
            self.residual.forward(&weights, x, &mut scratch, hidden.view_mut(), dropout, par);
            self.output.forward(&weights, hidden.view(), logits.view_mut(), par);
            let scale = 1.0 / n as f64;
            losses.push(cross_entropy(logits.view_mut(), &classes, scale, par) / n as f64);
            let d_x = Some((d_hidden.view_mut(), Accum::Replace));
            self.output.backward(&weights, hidden.view(), logits.view(), &mut gradient, d_x, par);
            let d_out = d_hidden.view();
            self.residual.backward(&weights, x, &mut scratch, d_out, &mut gradient, None, par);
            let scale = clip_factor(norm(&gradient), 5.0);
            adam.update(&mut weights, &gradient, schedule.rate(step), scale);
        }
        (losses, weights)
    }
}

fn points_and_classes() -> (Vec<f32>, Vec<u32>) {
    let mut rng = Rng::new(3);
    let points: Vec<f32> = (0..400).map(|_| 2.0 * rng.uniform() as f32 - 1.0).collect();
    let inside = |point: &[f32]| u32::from(point[0] * point[0] + point[1] * point[1] < 0.64);
    let classes = points.chunks(2).map(inside).collect();
    (points, classes)
}

#[test]
fn a_residual_network_learns_a_circle() {
    let (losses, _) = Network::new().fit(300, 0.0, Par::Seq);
    assert!((0.5..1.2).contains(&losses[0]), "{}", losses[0]);
    assert!(losses[299] < 0.05, "{}", losses[299]);
}

#[test]
fn a_residual_network_learns_a_circle_with_dropout() {
    let (losses, _) = Network::new().fit(300, 0.2, Par::Seq);
    assert!(losses[299] < 0.35, "{}", losses[299]);
}

#[test]
fn training_does_not_depend_on_the_number_of_threads() {
    let alone = Network::new().fit(20, 0.2, Par::Seq);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert!(pool.install(|| Network::new().fit(20, 0.2, Par::rayon(0))) == alone);
}

#[test]
fn a_character_network_learns_a_suffix() {
    // The class of a word is whether it ends with character 1. Character 0 marks the start and end of a word.
    let mut rng = Rng::new(1);
    let (mut chars, mut offsets, mut classes) = (vec![], vec![0], vec![]);
    for _ in 0..100 {
        let word: Vec<u32> = (0..3 + (rng.uniform() * 5.0) as u32)
            .map(|_| 1 + (rng.uniform() * 3.0) as u32)
            .collect();
        classes.push(u32::from(word.last() == Some(&1)));
        chars.push(0);
        chars.extend(word);
        chars.push(0);
        offsets.push(chars.len());
    }
    let words = Spellings { chars: &chars, offsets: &offsets };
    let mut layout = Layout::new();
    let params = CharCnnParams { dim: 2, ..CharCnnParams::default() };
    let cnn = CharCnn::new(&mut layout, "words", 4, &params);
    let mut weights = vec![0f32; layout.len()];
    cnn.init(&mut weights, &mut rng);
    let mut adam = AdamW::new(AdamWParams::default(), weights.len());
    let (mut logits, mut scratch) = (Buffer::new(), CharCnnScratch::default());
    logits.resize(100, 2);
    let mut loss = f64::INFINITY;
    for _ in 0..60 {
        let mut gradient = vec![0.0; weights.len()];
        cnn.forward(&weights, words, &mut scratch, logits.view_mut(), Par::Seq);
        loss = cross_entropy(logits.view_mut(), &classes, 0.01, Par::Seq) / 100.0;
        cnn.backward(&weights, words, &mut scratch, logits.view(), &mut gradient, Par::Seq);
        adam.update(&mut weights, &gradient, 0.02, 1.0);
    }
    assert!(loss < 0.05, "{loss}");
}
