//! The probabilities and scores of a fitted model.

use crate::fitted::model::Fhmm;
use latens_corpus::WordId;

impl Fhmm {
    /// Number of layers.
    pub fn n_layers(&self) -> usize {
        self.smoother.distribution().shape.n_layers
    }

    /// Number of hidden states per layer.
    pub fn n_states(&self) -> usize {
        self.smoother.distribution().shape.n_states
    }

    /// Number of words that the model distinguishes. Rare words may count as one.
    pub fn n_words(&self) -> usize {
        self.rows.n_rows
    }

    /// Probability of each state of a layer at the start of a sentence.
    ///
    /// # Panics
    /// If `layer` is out of range.
    pub fn start(&self, layer: usize) -> &[f32] {
        self.check_state(layer, 0);
        let distribution = self.smoother.distribution();
        &distribution.start[distribution.shape.layer(layer)]
    }

    /// Probability of each state of a layer after `state`.
    ///
    /// # Panics
    /// If `layer` or `state` is out of range.
    pub fn transition(&self, layer: usize, state: usize) -> &[f32] {
        self.check_state(layer, state);
        let k = self.n_states();
        &self.smoother.distribution().transition[(layer * k + state) * k..][..k]
    }

    /// The `n` words most characteristic of a state of a layer, best first, with their scores.
    ///
    /// The score is θ minus the logarithm of the mean of e^θ over the states of the layer. Words that share their scores
    /// with others are left out.
    ///
    /// # Panics
    /// If `layer` or `state` is out of range.
    pub fn top_words(&self, layer: usize, state: usize, n: usize) -> Vec<(&str, f32)> {
        let words = self.top_word_ids(layer, state, n).into_iter();
        words.map(|(word, score)| (self.lexicon.vocab.word(word), score)).collect()
    }

    /// Ids of [`Fhmm::top_words`].
    ///
    /// # Panics
    /// If `layer` or `state` is out of range.
    pub fn top_word_ids(&self, layer: usize, state: usize, n: usize) -> Vec<(WordId, f32)> {
        self.check_state(layer, state);
        let distribution = self.smoother.distribution();
        let score = |(word, row): (WordId, usize)| {
            let scores = &distribution.scores(row)[distribution.shape.layer(layer)];
            let mean = scores.iter().map(|s| s.exp()).sum::<f32>() / scores.len() as f32;
            (word, scores[state] - mean.ln())
        };
        let mut words: Vec<(WordId, f32)> = self.rows.own_words().map(score).collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        words.truncate(n);
        words
    }

    fn check_state(&self, layer: usize, state: usize) {
        let (n_layers, n_states) = (self.n_layers(), self.n_states());
        assert!(layer < n_layers, "layer {layer} of a model with {n_layers} layers");
        assert!(state < n_states, "state {state} of a model with {n_states} states per layer");
    }
}
