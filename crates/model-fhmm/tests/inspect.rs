//! The probabilities, posteriors and samples of a model against the arrays of its file and brute force.

use latens_corpus::{Corpus, WordId};
use latens_model::{Fit, ModelFile};
use latens_model_fhmm::{Fhmm, Inference, StateSample, Unknown};
use latens_testkit::two_class_corpus;

/// The arrays of a model file, read independently of the model.
struct Arrays {
    n_layers: usize,
    n_states: usize,
    rows: Vec<u32>,
    base: Vec<f64>,
    start: Vec<f64>,
    transition: Vec<f64>,
    scores: Vec<f64>,
}

impl Arrays {
    fn of(fhmm: &Fhmm) -> Arrays {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fhmm.save(&path).unwrap();
        let file = ModelFile::open(&path).unwrap();
        let read = |name: &str| -> Vec<f64> {
            let values = file.array::<f32>(name, file.shape(name).unwrap()).unwrap();
            values.iter().map(|&value| f64::from(value)).collect()
        };
        let shape = file.shape("start").unwrap();
        Arrays {
            n_layers: shape[0],
            n_states: shape[1],
            rows: file.vector::<u32>("rows").unwrap().to_vec(),
            base: read("base"),
            start: read("start"),
            transition: read("transition"),
            scores: read("scores"),
        }
    }

    fn n_joint(&self) -> usize {
        self.n_states.pow(self.n_layers as u32)
    }

    /// State of each layer in a joint state.
    fn states(&self, joint: usize) -> Vec<usize> {
        (0..self.n_layers)
            .map(|layer| joint / self.n_states.pow(layer as u32) % self.n_states)
            .collect()
    }

    /// p(row | states).
    fn emission(&self, states: &[usize]) -> Vec<f64> {
        let score = |row: usize| {
            let of_layer = |(layer, &state): (usize, &usize)| {
                self.scores[(row * self.n_layers + layer) * self.n_states + state]
            };
            (self.base[row] + states.iter().enumerate().map(of_layer).sum::<f64>()).exp()
        };
        let weights: Vec<f64> = (0..self.base.len()).map(score).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    fn start(&self, layer: usize) -> &[f64] {
        &self.start[layer * self.n_states..][..self.n_states]
    }

    fn transition(&self, layer: usize, state: usize) -> &[f64] {
        &self.transition[(layer * self.n_states + state) * self.n_states..][..self.n_states]
    }

    /// ln p, posterior (tokens × layers × states) and most likely path of a sentence, by enumeration of all paths.
    fn enumerate(&self, sentence: &[WordId]) -> (f64, Vec<f64>, Vec<u32>) {
        let (n, n_joint) = (sentence.len(), self.n_joint());
        let joint: Vec<Vec<usize>> = (0..n_joint).map(|joint| self.states(joint)).collect();
        let emission: Vec<Vec<f64>> = joint.iter().map(|states| self.emission(states)).collect();
        let (mut total, mut posterior) = (0.0, vec![0.0; n * self.n_layers * self.n_states]);
        let mut best = (0.0, vec![]);
        for path in 0..n_joint.pow(n as u32) {
            let path: Vec<usize> = (0..n).map(|t| path / n_joint.pow(t as u32) % n_joint).collect();
            let mut weight = 1.0;
            for (t, &now) in path.iter().enumerate() {
                weight *= emission[now][self.rows[sentence[t].index()] as usize];
                for (layer, &state) in joint[now].iter().enumerate() {
                    weight *= match t {
                        0 => self.start(layer)[state],
                        _ => self.transition(layer, joint[path[t - 1]][layer])[state],
                    };
                }
            }
            total += weight;
            for (t, &now) in path.iter().enumerate() {
                for (layer, &state) in joint[now].iter().enumerate() {
                    posterior[(t * self.n_layers + layer) * self.n_states + state] += weight;
                }
            }
            if weight > best.0 {
                let states = path.iter().flat_map(|&now| joint[now].iter().map(|&s| s as u32));
                best = (weight, states.collect());
            }
        }
        posterior.iter_mut().for_each(|p| *p /= total);
        (total.ln(), posterior, best.1)
    }
}

fn fit(inference: Inference) -> (Corpus, Fhmm) {
    let corpus = two_class_corpus(400, 1);
    let params = Fhmm::params().n_layers(2).n_states(3).epochs(3).pseudo_tokens(1.0);
    let fhmm = params.inference(inference).unknown(Unknown::Unk).fit(&corpus).unwrap();
    (corpus, fhmm)
}

fn as_f64(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn probabilities_are_those_of_the_file_and_sum_to_one() {
    let (_, fhmm) = fit(Inference::Auto);
    let arrays = Arrays::of(&fhmm);
    assert_eq!((fhmm.n_layers(), fhmm.n_states()), (2, 3));
    assert_eq!(fhmm.n_words(), arrays.base.len());
    for layer in 0..2 {
        assert_eq!(as_f64(fhmm.start(layer)), arrays.start(layer));
        assert!((fhmm.start(layer).iter().sum::<f32>() - 1.0).abs() < 1e-5);
        for state in 0..3 {
            assert_eq!(as_f64(fhmm.transition(layer, state)), arrays.transition(layer, state));
            assert!((fhmm.transition(layer, state).iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
#[should_panic(expected = "state 3 of a model with 3 states per layer")]
fn a_state_out_of_range_panics() {
    fit(Inference::Auto).1.transition(1, 3);
}

#[test]
fn top_words_are_ranked_by_their_scores_relative_to_the_layer() {
    let (corpus, fhmm) = fit(Inference::Auto);
    let (arrays, vocab) = (Arrays::of(&fhmm), &corpus.lexicon.vocab);
    for (layer, state) in [(0, 0), (0, 2), (1, 1)] {
        let score = |word: WordId| {
            let row = arrays.rows[word.index()] as usize;
            let scores = &arrays.scores[(row * 2 + layer) * 3..][..3];
            scores[state] - (scores.iter().map(|score| score.exp()).sum::<f64>() / 3.0).ln()
        };
        let top = fhmm.top_word_ids(layer, state, 1000);
        // All words but `<unk>`, which does not occur.
        assert_eq!(top.len(), vocab.len() - 1);
        for &(word, found) in &top {
            assert!((f64::from(found) - score(word)).abs() < 1e-5, "{word:?}");
        }
        assert!(top.is_sorted_by(|a, b| a.1 >= b.1), "{top:?}");
        let words = fhmm.top_words(layer, state, 3);
        assert!(words.into_iter().eq(top[..3].iter().map(|&(id, score)| (vocab.word(id), score))));
    }
}

#[test]
fn exact_posteriors_bounds_and_paths_agree_with_the_enumeration_of_all_paths() {
    let (corpus, fhmm) = fit(Inference::Exact);
    let arrays = Arrays::of(&fhmm);
    for text in ["a0 b1 a2", "b0", "a1 a0 b3 a0", ""] {
        let mut sentence = corpus.lexicon.ids(text);
        let n_tokens = sentence.len();
        sentence.push(WordId::EOS);
        let (log_prob, expected, path) = arrays.enumerate(&sentence);
        assert!((fhmm.bound(text) - log_prob).abs() < 1e-5 * log_prob.abs(), "{text}");
        let posterior = fhmm.posterior(text);
        assert_eq!((posterior.n_rows(), posterior.n_columns()), (n_tokens, 6));
        for (found, expected) in posterior.as_slice().iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{text}: {found} {expected}");
        }
        let viterbi = fhmm.viterbi(text);
        assert_eq!((viterbi.n_rows(), viterbi.n_columns()), (n_tokens, 2));
        assert_eq!(viterbi.as_slice(), &path[..n_tokens * 2], "{text}");
    }
}

#[test]
fn text_and_word_ids_give_the_same_rows() {
    for inference in [Inference::ExactMf, Inference::Tilted, Inference::Exact] {
        let (corpus, fhmm) = fit(inference);
        let mut sentence = corpus.lexicon.ids("a0 b1 zzz");
        sentence.push(WordId::EOS);
        let (posterior, by_ids) = (fhmm.posterior("a0 b1 zzz"), fhmm.posterior_of(&sentence));
        assert_eq!((posterior.n_rows(), by_ids.n_rows()), (3, 4));
        assert!(posterior.rows().zip(by_ids.rows()).all(|(a, b)| a == b));
        for row in posterior.rows() {
            for layer in row.chunks_exact(3) {
                assert!((layer.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
        let (viterbi, by_ids) = (fhmm.viterbi("a0 b1 zzz"), fhmm.viterbi_of(&sentence));
        assert!(viterbi.rows().zip(by_ids.rows()).all(|(a, b)| a == b));
        assert_eq!(fhmm.bound("a0 b1 zzz"), fhmm.bound_of(&sentence));
    }
}

#[test]
fn samples_follow_the_probabilities_of_the_model() {
    let (_, fhmm) = fit(Inference::Auto);
    let arrays = Arrays::of(&fhmm);
    const N: usize = 60_000;
    let StateSample { states, words } = fhmm.sample_states(N, 1);
    assert_eq!((states.n_rows(), states.n_columns(), words.len()), (N, 2, N));
    let is_start = |t: usize| t == 0 || words[t - 1] == WordId::EOS;
    // Each count is binomial: five standard deviations.
    let check = |counts: &[usize], probs: &[f64], what: &str| {
        let n = counts.iter().sum::<usize>() as f64;
        for (&count, p) in counts.iter().zip(probs) {
            let allowed = 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0;
            assert!((count as f64 - n * p).abs() < allowed, "{what}: {count} of {n}, p = {p}");
        }
    };
    for layer in 0..2 {
        let (mut starts, mut pairs) = (vec![0; 3], vec![vec![0; 3]; 3]);
        for t in 0..N {
            let state = states[(t, layer)] as usize;
            match is_start(t) {
                true => starts[state] += 1,
                false => pairs[states[(t - 1, layer)] as usize][state] += 1,
            }
        }
        check(&starts, arrays.start(layer), "start");
        for (state, counts) in pairs.iter().enumerate() {
            check(counts, arrays.transition(layer, state), "transition");
        }
    }
    for joint in 0..arrays.n_joint() {
        let expected = arrays.states(joint);
        let mut counts = vec![0; arrays.base.len()];
        for (word, states) in words.iter().zip(states.rows()) {
            if states.iter().zip(&expected).all(|(&a, &b)| a as usize == b) {
                counts[arrays.rows[word.index()] as usize] += 1;
            }
        }
        check(&counts, &arrays.emission(&expected), "emission");
    }
    assert_eq!(fhmm.sample_states(100, 7), fhmm.sample_states(100, 7));
    assert_ne!(fhmm.sample_states(100, 7), fhmm.sample_states(100, 8));
}
