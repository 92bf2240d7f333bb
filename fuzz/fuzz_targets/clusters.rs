//! Word clusters in the `paths` format. What is read can be written, and read again.
#![no_main]

use latens::brown::Brown;
use latens::corpus::{Lexicon, Preprocessing};
use latens::model::WordClusters;
use latens_fuzz::use_model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let read = |mut text: &[u8]| WordClusters::read_paths(&mut text, &Preprocessing::default());
    let Ok((lexicon, clusters)) = read(data) else { return };
    let text = written(&lexicon, &clusters);
    let (same_lexicon, same_clusters) = read(&text).expect("what was written can be read");
    assert_eq!(written(&same_lexicon, &same_clusters), text);
    if let Ok(model) = Brown::from_clusters(lexicon, clusters) {
        use_model(&model);
    }
});

fn written(lexicon: &Lexicon, clusters: &WordClusters) -> Vec<u8> {
    let mut text = Vec::new();
    clusters.write_paths(&lexicon.vocab, &mut text).expect("a vector takes any bytes");
    text
}
