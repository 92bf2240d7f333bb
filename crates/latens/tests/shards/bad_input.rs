use super::runs::Texts;
use latens::corpus::{Inputs, VocabLimits};
use latens::model::shards::{Arrays, Broadcast, Part, Round, ShardError, ShardKind, Statistics};
use serde_json::json;
use std::error::Error;

fn message(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn kind() -> &'static dyn ShardKind {
    latens::shard_kind("hmm").unwrap()
}

fn begin(texts: &Texts, min_count: u64) -> Broadcast {
    let lexicon = texts.lexicon(VocabLimits { min_count, ..VocabLimits::default() });
    let params = json!({
        "n_states": 4, "constraint": "none", "parameterization": "scalar", "epochs": 3,
    });
    kind().begin(params, lexicon, 7, Arrays::new()).unwrap()
}

fn statistics(texts: &Texts, broadcast: &Broadcast) -> Vec<Statistics> {
    let parts = texts.parts(7);
    let of_shard = |(shard, part): (usize, &Part)| {
        let text = kind().read(broadcast, shard, part).unwrap();
        kind().statistics(broadcast, &text, None).unwrap()
    };
    parts.iter().enumerate().map(of_shard).collect()
}

fn next(broadcast: &Broadcast, parts: Vec<Statistics>) -> Broadcast {
    match kind().update(broadcast, kind().merge(parts).unwrap()).unwrap() {
        Round::Next(next) => *next,
        other => panic!("{other:?}"),
    }
}

fn merge_error(parts: Vec<Statistics>) -> String {
    message(&kind().merge(parts).unwrap_err())
}

#[test]
fn statistics_that_do_not_belong_together_are_refused_by_the_name_of_their_shard() {
    let texts = Texts::new(100);
    let broadcast = begin(&texts, 1);
    let parts = statistics(&texts, &broadcast);

    let mut mixed = parts.clone();
    mixed[3] = statistics(&texts, &begin(&texts, 2)).swap_remove(3);
    assert_eq!(merge_error(mixed), "shard 4 of 7: computed with another vocabulary");

    let second = next(&broadcast, parts.clone());
    let mut mixed = parts.clone();
    mixed[5] = statistics(&texts, &second).swap_remove(5);
    assert_eq!(merge_error(mixed), "shard 6 of 7: computed in round 1, not in round 0");

    let twice = vec![parts[1].clone(), parts[1].clone()];
    assert_eq!(merge_error(twice), "shard 2 of 7: its statistics were given twice");
    assert_eq!(merge_error(vec![]), "there are no statistics to merge");

    let some = kind().merge(vec![parts[0].clone(), parts[4].clone()]).unwrap();
    let error = kind().update(&broadcast, some.clone()).unwrap_err();
    assert_eq!(message(&error), "statistics of shards 2, 3, 4, 6, 7 of 7 are missing");
    let error = kind().update(&second, some).unwrap_err();
    assert_eq!(message(&error), "shards 1, 5 of 7: computed in round 0, not in round 1");
}

#[test]
fn a_text_that_cannot_be_read_is_an_error_that_names_the_shard() {
    let texts = Texts::new(100);
    let broadcast = begin(&texts, 1);
    let read = |part: &Part| message(&kind().read(&broadcast, 2, part).err().unwrap());
    let missing = Part::Files(Box::new(Inputs::new([texts.folder.path().join("none")])));
    let error = read(&missing);
    assert!(error.starts_with("shard 3 of 7: cannot read its text: cannot read `"), "{error}");
    let empty = texts.folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let error = read(&Part::Files(Box::new(Inputs::new([empty]))));
    assert!(error.starts_with("shard 3 of 7") && error.ends_with("is empty"), "{error}");
    let error = read(&Part::Lines(vec![String::new()]));
    assert!(error.contains("there are no words"), "{error}");
    let error = kind().read(&broadcast, 7, &missing).err().unwrap();
    assert_eq!(message(&error), "there is no shard 8: the run has 7 shards");
}

#[test]
fn a_text_that_changed_between_rounds_is_an_error_of_its_shard() {
    let texts = Texts::new(100);
    let broadcast = begin(&texts, 2);
    let second = next(&broadcast, statistics(&texts, &broadcast));
    let text = kind().read(&begin(&texts, 1), 0, &texts.parts(7)[0]).unwrap();
    let error = message(&kind().statistics(&second, &text, None).unwrap_err());
    assert!(error.contains("shard 1 of 7: its text was encoded"), "{error}");
}

#[test]
fn damaged_files_are_refused() {
    let texts = Texts::new(60);
    let broadcast = begin(&texts, 1);
    let bytes = broadcast.to_bytes();
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Broadcast::from_bytes(&damaged, "b").is_err(), "byte {at}");
    }
    assert!(Statistics::from_bytes(&bytes, "b").unwrap_err().to_string().contains("of kind"));
    let parts = statistics(&texts, &broadcast);
    let bytes = parts[0].to_bytes();
    assert!(Statistics::from_bytes(&bytes[..bytes.len() - 8], "s").is_err());
}

#[test]
fn unknown_kinds_and_parameters_are_errors() {
    assert!(matches!(latens::shard_kind("rnn"), Err(ShardError::UnknownKind { .. })));
    let texts = Texts::new(60);
    let lexicon = texts.lexicon(VocabLimits::default());
    let begin = |params| kind().begin(params, lexicon.clone(), 2, Arrays::new());
    let error = begin(json!({ "states": 4 })).unwrap_err();
    assert!(message(&error).contains("unknown field `states`"), "{}", message(&error));
    assert!(message(&begin(json!({ "n_states": 0 })).unwrap_err()).contains("`n_states`"));
    let none = kind().begin(json!({}), lexicon.clone(), 0, Arrays::new());
    assert!(message(&none.unwrap_err()).contains("`n_shards`"));
}
