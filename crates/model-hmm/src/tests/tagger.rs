//! Models with tags.

use crate::fit::HmmInputs;
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory, Parameterization, WordEmbedding};
use crate::train::tagged_text::TaggedText;
use latens_corpus::{Corpus, Inputs, Preprocessing, TaggedSentences, VocabLimits, WordId};
use latens_model::{Fit, FitBuilder, Model, TagError, TagInput, TagOutputs, Tagger, WordClusters};
use latens_testkit::{check_file_round_trip, check_language_model, check_resume};

const TEXT: &str = "the D\ncat N\nsleeps V\n\nthe D\ndog N\nbarks V\n\na D\ndog N\nsees V\nthe D\ncat N\n\n\
                    a D\ncat N\nwalks V\n\nthe D\ndog N\nwalks V\n\nboxes N\nsleep V\n\n";

/// A small tagged text. Words with fewer than `min_count` occurrences are unknown.
struct Toy {
    corpus: Corpus,
    tags: TaggedText,
    clusters: WordClusters,
}

impl Toy {
    fn new(min_count: u64) -> Toy {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.conll");
        std::fs::write(&path, TEXT).unwrap();
        let (inputs, limits) = (Inputs::new([path]), VocabLimits { min_count, max_vocab: 0 });
        let corpus = Corpus::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        let tagged = TaggedSentences::read(&inputs).unwrap();
        let tags = TaggedText::of(&tagged, 1, &corpus).unwrap();
        let cluster = |id: usize| match corpus.lexicon.vocab.word(WordId::from(id)) {
            "<eos>" => None,
            "the" | "a" => Some(0),
            "cat" | "dog" => Some(1),
            _ => Some(2),
        };
        let of_word = (0..corpus.lexicon.vocab.len()).map(cluster).collect();
        let paths = ["00", "01", "1"].map(str::to_owned).to_vec();
        let clusters = WordClusters::new(of_word, paths).unwrap();
        Toy { corpus, tags, clusters }
    }

    fn builder(&self, params: &HmmParams) -> FitBuilder<'_, '_, HmmParams> {
        params.clone().with(HmmInputs::default().clusters(&self.clusters).tags(&self.tags))
    }

    fn fit(&self, params: &HmmParams) -> Hmm {
        self.builder(params).fit(&self.corpus).unwrap()
    }
}

fn params() -> HmmParams {
    let (n_states, n_clusters, dim) = (12, 3, 6);
    let (epochs, batch_tokens, learning_rate) = (60, 20, 0.05);
    let small = HmmParams { n_states, n_clusters, dim, ..HmmParams::default() };
    HmmParams { epochs, batch_tokens, learning_rate, ..small }
}

fn kinds() -> Vec<HmmParams> {
    vec![
        params(),
        HmmParams { word_vectors: WordEmbedding::Chars, ..params() },
        HmmParams {
            word_vectors: WordEmbedding::Chars,
            constraint: Constraint::None,
            state_dropout: Some(0.25),
            ..params()
        },
        HmmParams {
            word_vectors: WordEmbedding::Chars,
            constraint: Constraint::Uniform,
            n_clusters: 2,
            ..params()
        },
        HmmParams { parameterization: Parameterization::Factored, ..params() },
        HmmParams { parameterization: Parameterization::Scalar, ..params() },
    ]
}

fn assert_same(a: &Hmm, b: &Hmm) {
    let (a, b) = (a.tagger().unwrap(), b.tagger().unwrap());
    assert_eq!(a.tags(), b.tags());
    for words in [&["the", "dog", "walks"][..], &["boxes"], &["a", "cat", "boxing", "sees"]] {
        assert_eq!(a.tag(words), b.tag(words));
        words.iter().for_each(|word| assert_eq!(a.n_seen(word), b.n_seen(word)));
    }
    let posteriors = [a, b].map(|tagger| {
        let ids = tagger.hmm.lexicon.ids("the dog sees boxes");
        (tagger.hmm.posterior_of(&ids), tagger.tags.emission.to_vec())
    });
    assert_eq!(posteriors[0], posteriors[1]);
}

#[test]
fn every_kind_of_model_learns_the_tags() {
    for min_count in [1, 2] {
        let toy = Toy::new(min_count);
        for params in kinds() {
            let hmm = toy.fit(&params);
            let tagger = hmm.tagger().unwrap();
            let names = |words: &[&str]| -> Vec<&str> {
                let tags = tagger.tag(words).unwrap();
                tags.iter().map(|&tag| tagger.tags()[tag as usize].as_str()).collect()
            };
            assert_eq!(names(&["the", "cat", "walks"]), ["D", "N", "V"], "{params:?}");
            assert_eq!(names(&[]), [""; 0]);
            let role = hmm.as_tagger().unwrap();
            assert_eq!(role.tag(&["the", "cat"]), tagger.tag(&["the", "cat"]));
        }
    }
}

#[test]
fn the_tag_is_the_most_likely_one_under_the_posterior_of_states() {
    let toy = Toy::new(2);
    for params in kinds() {
        let hmm = toy.fit(&HmmParams { epochs: 3, ..params });
        let (tagger, n) = (hmm.tagger().unwrap(), hmm.space.n_states());
        let words = ["dog", "the", "boxing", "sees", "cat"];
        let ids = [hmm.lexicon.ids(&words.join(" ")), vec![WordId::EOS]].concat();
        let posterior = hmm.sentence_posterior(&ids).unwrap();
        for (at, &tag) in tagger.tag(&words).unwrap().iter().enumerate() {
            let score = |tag: usize| -> f64 {
                let g = |(state, p): (u32, f32)| {
                    f64::from(p) * f64::from(tagger.tags.emission[tag * n + state as usize])
                };
                posterior.row(at).map(g).sum()
            };
            let scores: Vec<f64> = (0..tagger.tags.len()).map(score).collect();
            assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{scores:?}");
            assert!(scores.iter().all(|&other| other <= scores[tag as usize] + 1e-6));
        }
    }
}

#[test]
fn words_of_an_impossible_sentence_are_tagged_independently() {
    let toy = Toy::new(1);
    let scalar = HmmParams { parameterization: Parameterization::Scalar, prior: 0.0, ..params() };
    let hmm = toy.fit(&HmmParams { epochs: 100, ..scalar });
    let words = ["walks", "walks", "boxes", "the"];
    assert_eq!(hmm.posterior_of(&hmm.lexicon.ids(&words.join(" "))), None);
    let tagger = hmm.tagger().unwrap();
    let tags = tagger.tag(&words).unwrap();
    assert_eq!(tagger.tags()[tags[3] as usize], "D");
    assert_eq!(tags.len(), 4);
}

#[test]
fn sentences_are_tagged_together_as_each_is_alone() {
    let scalar = HmmParams { parameterization: Parameterization::Scalar, prior: 0.0, ..params() };
    let sentences: Vec<Vec<&str>> =
        ["the cat walks", "", "dog sees the zebra", "walks walks boxes the", "the", "a dog barks"]
            .map(|text| text.split(' ').filter(|word| !word.is_empty()).collect())
            .to_vec();
    for min_count in [1, 2] {
        for params in kinds().into_iter().chain([scalar.clone()]) {
            let hmm = Toy::new(min_count).fit(&HmmParams { epochs: 20, ..params });
            let tagger = hmm.tagger().unwrap();
            let alone: Vec<_> = sentences.iter().map(|words| tagger.tag(words)).collect();
            assert_eq!(tagger.tag_all(&sentences), alone);
            let together = tagger.tag_all_with(
                &TagInput::of_words(&sentences),
                TagOutputs::default().marginals(true),
            );
            for ((together, tags), words) in together.into_iter().zip(alone).zip(&sentences) {
                // A word may be unknown.
                let Ok(together) = together else {
                    assert!(tags.is_err());
                    continue;
                };
                assert_eq!(together.tags, tags.unwrap());
                let (marginals, alone) =
                    (together.marginals.unwrap(), tagger.tag_marginals(words, None).unwrap());
                assert_eq!(marginals.n_rows(), words.len());
                let pairs = marginals.as_slice().iter().zip(alone.as_slice());
                pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
            }
        }
    }
}

/// Without a device, only the sentences that it would get are checked.
#[cfg(feature = "cuda")]
#[test]
fn a_gpu_gives_the_tags_of_the_cpu() {
    use crate::fitted::tagger::on_gpu::sentence;
    let scalar = HmmParams { parameterization: Parameterization::Scalar, prior: 0.0, ..params() };
    let sentences: Vec<Vec<&str>> = [
        "the cat walks",
        "",
        "dog boxing the zebra",
        "walks walks boxes the",
        "zebra",
        "a dog sees",
    ]
    .map(|text| text.split_whitespace().collect())
    .to_vec();
    for min_count in [1, 2] {
        for params in kinds().into_iter().chain([scalar.clone()]) {
            let hmm = Toy::new(min_count).fit(&HmmParams { epochs: 20, ..params });
            let (tagger, what) = (hmm.tagger().unwrap(), format!("{:?}", hmm.params));
            for words in &sentences {
                let of_device = sentence(&tagger, words).map(|found| found.emitters(&hmm).unwrap());
                assert_eq!(of_device, tagger.emitters_of(words), "{what}");
            }
            let Ok(mut on_gpu) = tagger.on_gpu().unwrap() else { continue };
            let (inputs, outputs) =
                (TagInput::of_words(&sentences), TagOutputs::default().marginals(true));
            let found = on_gpu.tag_all_with(&inputs, outputs).unwrap();
            for (found, expected) in found.into_iter().zip(tagger.tag_all_with(&inputs, outputs)) {
                let (found, expected) = match (found, expected) {
                    (Ok(found), Ok(expected)) => (found, expected),
                    (found, expected) => {
                        assert_eq!(found, expected, "{what}");
                        continue;
                    }
                };
                assert_eq!(found.tags, expected.tags, "{what}");
                let (found, expected) = (found.marginals.unwrap(), expected.marginals.unwrap());
                for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
                    assert!((a - b).abs() < 1e-4, "{what}: {a} and {b}");
                }
            }
            let refused = on_gpu.tag_all_with(&inputs, outputs.n_best(2)).unwrap();
            assert_eq!(refused, vec![Err(TagError::NoSequences); sentences.len()]);
        }
    }
}

#[test]
fn unknown_words_are_tagged_or_rejected() {
    let hmm = Toy::new(1).fit(&params());
    let error = hmm.tagger().unwrap().tag(&["the", "zebra"]).unwrap_err();
    assert_eq!(error, TagError::UnknownWord { word: "zebra".into() });
    for (min_count, kind) in [(2, 0), (1, 1), (2, 1), (1, 2), (1, 3), (2, 5)] {
        let hmm = Toy::new(min_count).fit(&kinds()[kind]);
        let tagger = hmm.tagger().unwrap();
        assert_eq!(tagger.tag(&["the", "zebra", "\u{20ac}"]).unwrap().len(), 3);
    }
}

#[test]
fn training_counts_cover_words_outside_the_vocabulary() {
    for min_count in [1, 2, 4] {
        let hmm = Toy::new(min_count).fit(&HmmParams { epochs: 0, ..params() });
        let tagger = hmm.tagger().unwrap();
        let counts = ["the", "walks", "boxes", "zebra", "<unk>"].map(|word| tagger.n_seen(word));
        assert_eq!(counts, [4, 2, 1, 0, 0]);
    }
}

#[test]
fn a_character_based_model_is_a_language_model() {
    for (min_count, kind) in [(1, 1), (2, 1), (1, 2), (1, 3)] {
        let toy = Toy::new(min_count);
        let hmm = toy.fit(&kinds()[kind]);
        check_language_model(&hmm, &toy.corpus.sentences);
        // Unknown words have a fixed total probability.
        let unknown = [hmm.lexicon.ids("the zebra"), vec![WordId::EOS]].concat();
        assert!(latens_model::LanguageModel::log_prob(&hmm, &unknown).is_finite());
    }
}

#[test]
fn tags_need_independent_sentences() {
    let toy = Toy::new(1);
    let fitted = toy.builder(&params().memory(Memory::Carry)).fit(&toy.corpus);
    let refusal = fitted.unwrap_err().to_string();
    assert!(refusal.contains("`memory` must be `reset`"), "{refusal}");
}

#[test]
fn saving_and_opening_preserves_the_tagger() {
    for (min_count, params) in
        [1, 2].into_iter().flat_map(|n| kinds().into_iter().map(move |p| (n, p)))
    {
        let hmm = Toy::new(min_count).fit(&HmmParams { epochs: 2, ..params });
        check_file_round_trip(&hmm, |m, path| m.save(path), |path| Hmm::open(path), assert_same);
    }
}

#[test]
fn resumed_training_gives_the_same_tagger() {
    for params in kinds() {
        let (toy, params) = (Toy::new(1), params.epochs(3));
        check_resume(
            |watch| toy.builder(&params).watch(|progress| watch(progress)).fit(&toy.corpus),
            |checkpoint, watch| {
                let builder = toy.builder(&params).checkpoint(checkpoint);
                builder.watch(|progress| watch(progress)).fit(&toy.corpus)
            },
            assert_same,
        );
    }
}
