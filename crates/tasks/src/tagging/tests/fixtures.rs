//! Texts, encoders and parameters for the tests of taggers.

use crate::tagging::features::encoder::Encoder;
use crate::tagging::features::examples::Examples;
use crate::tagging::features::lexical::Lexical;
use crate::tagging::features::rows::read_rows;
use crate::tagging::features::word_encoder::WordEncoder;
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::learn::data::TaggerInputs;
use crate::tagging::params::{Kind, Optimizer, Pairs, TaggerParams};
use crate::tagging::spans::Scheme;
use latens_corpus::{Inputs, TaggedSentences};
use latens_model::file::{ModelFile, ModelWriter};
use latens_model::{FeatureRows, FileError, Fit, ParamError, Params, Tagger};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub(crate) const TEXT: &str = "The P B-X\ndog Q I-X\nbarks R O\n\na P B-Y\ncat Q B-X\n\nThe P O\ncat-2 Q B-Y\n, R I-Y\nsleeps R O\n\n\
                    barks R B-X\n";

pub(crate) fn read(text: &str) -> TaggedSentences {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.conll");
    std::fs::write(&path, text).unwrap();
    TaggedSentences::read(&Inputs::new([path])).unwrap()
}

pub(crate) fn inputs(column: usize, encoders: Vec<Encoder>) -> TaggerInputs {
    TaggerInputs { encoders, ..TaggerInputs::default().column(column) }
}

pub(crate) fn fit(
    params: &TaggerParams,
    text: &TaggedSentences,
    encoders: Vec<Encoder>,
) -> FeatureTagger {
    params.clone().with(inputs(2, encoders)).fit(text).unwrap()
}

/// Features of letters, of either sign. Words that start with `s` have no features.
pub(crate) struct Letters {
    is_dense: bool,
}

impl Letters {
    pub(crate) fn new(is_dense: bool) -> Letters {
        Letters { is_dense }
    }
}

impl WordEncoder for Letters {
    fn n_features(&self) -> usize {
        4
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        for word in words {
            let letter = |i: usize| f32::from(word.as_bytes()[i % word.len()] % 7) - 3.0;
            match (word.starts_with('s'), self.is_dense) {
                (true, _) => out.push_sparse([]),
                (false, true) => out.push_dense(&[letter(0), letter(1), letter(2), letter(3)]),
                (false, false) => {
                    out.push_sparse([(3, letter(0)), (u32::from(word.len() > 3), 1.0)])
                }
            }
        }
    }

    fn knows(&self, word: &str) -> bool {
        !word.starts_with('s')
    }
}

#[derive(Default, Serialize, Deserialize)]
struct NoParams {}

impl Params for NoParams {
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }
}

/// A dense and a sparse encoder. Their files contain only the kind.
pub(crate) fn encoders() -> Vec<Encoder> {
    let encoder = |is_dense: bool| {
        let mut file = Vec::new();
        let params = NoParams {}.validate().unwrap();
        ModelWriter::new(if is_dense { "dense" } else { "sparse" }, &params)
            .write_to(&mut file)
            .unwrap();
        let model = Box::new(Letters { is_dense });
        Encoder { name: "letters".into(), features: "letters".into(), model, file: file.into() }
    };
    vec![encoder(true), encoder(false)]
}

pub(crate) fn open(path: &Path) -> Result<FeatureTagger, FileError> {
    FeatureTagger::from_file(&ModelFile::open(path)?, &|file, _| {
        Ok(Box::new(Letters { is_dense: file.kind() == "dense" }))
    })
}

/// Parameters of every kind of tagger.
pub(crate) fn kinds() -> Vec<TaggerParams> {
    let crf = TaggerParams { l2: 0.1, n_iterations: 30, window: 1, ..TaggerParams::default() };
    let local = TaggerParams { kind: Kind::Local, n_hidden: 0, ..crf.clone() };
    vec![
        crf.clone(),
        TaggerParams {
            pairs: Pairs::All,
            spans: Scheme::Bioes,
            pos_column: Some(1),
            ..crf.clone()
        },
        TaggerParams { lexical: false, window: 2, ..crf.clone() },
        TaggerParams { l1: 0.2, min_count: 2, ..crf.clone() },
        TaggerParams { optimizer: Optimizer::Perceptron, epochs: 8, ..crf },
        TaggerParams { direct_words: vec!["The".into()], ..local.clone() },
        TaggerParams { n_hidden: 3, ..local },
    ]
}

pub(crate) fn examples(text: &TaggedSentences, params: &TaggerParams) -> Examples {
    let tags: Vec<u16> = (0..text.n_tokens()).map(|token| (token * token % 3) as u16).collect();
    let ends = text.iter().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    let lexical = match params.has_lexical() {
        true => Lexical::read(text, params.pos_column, params.min_count),
        false => Lexical::default(),
    };
    let blocks = encoders().iter().map(|encoder| read_rows(encoder, text, 0.5).2).collect();
    let counts = (0..tags.len()).map(|token| params.kind == Kind::Crf || token != 2).collect();
    Examples {
        n_tags: 3,
        ends: ends.collect(),
        tags,
        counts,
        lexical,
        blocks,
        window: params.window,
    }
}

pub(crate) fn assert_same(a: &FeatureTagger, b: &FeatureTagger) {
    assert_eq!(
        (a.tags(), a.internal_tags(), a.facts().get("loss")),
        (b.tags(), b.internal_tags(), b.facts().get("loss"))
    );
    let pos = ["P", "Q", "P", "R"];
    let words = ["The", "zebra", "sleeps", ","];
    assert_eq!(a.marginals(&words, Some(&pos)), b.marginals(&words, Some(&pos)));
    assert_eq!(a.tag_with_pos(&words, &pos), b.tag_with_pos(&words, &pos));
    words.iter().for_each(|word| assert_eq!(a.n_seen(word), b.n_seen(word)));
}
