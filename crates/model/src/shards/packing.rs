//! Arrays and a vocabulary as the bytes of a container.

use super::arrays::{Arrays, Numbers};
use latens_corpus::{Vocab, vocab_arrays, write_vocab};
use latens_store::{Container, ContainerError, container_bytes};
use serde::{Deserialize, Serialize};

/// The arrays of a container besides those of its vocabulary: a group, a name and a type for each.
pub(super) type Types = Vec<(String, String, String)>;

#[derive(Serialize, Deserialize)]
struct Packed<M> {
    meta: M,
    types: Types,
}

/// The bytes of a container with groups of arrays.
pub(super) fn pack(
    kind: &'static str,
    meta: &impl Serialize,
    vocab: Option<&Vocab>,
    groups: &[(String, &Arrays)],
) -> Vec<u8> {
    let all = || groups.iter().flat_map(|(group, arrays)| arrays.0.iter().map(move |a| (group, a)));
    let types = all()
        .map(|(group, (name, numbers))| {
            (group.clone(), name.clone(), numbers.type_name().to_owned())
        })
        .collect();
    let names: Vec<String> = all().map(|(group, (name, _))| format!("{group}/{name}")).collect();
    let lengths = all().map(|(_, (_, numbers))| numbers.bytes().len() as u64);
    let mut arrays: Vec<(&str, u64)> = vocab.map_or(vec![], |vocab| vocab_arrays(vocab).to_vec());
    arrays.extend(names.iter().map(String::as_str).zip(lengths));
    container_bytes(kind, &Packed { meta, types }, &arrays, |out| {
        if let Some(vocab) = vocab {
            write_vocab(vocab, out)?;
        }
        all().try_for_each(|(_, (_, numbers))| out.array(numbers.bytes()))
    })
}

/// Maximum number of shards of a run.
pub(super) const MAX_SHARDS: usize = 1 << 20;

/// Checks the number of shards of a file, which may be forged.
pub(super) fn check_n_shards(file: &Container, n_shards: usize) -> Result<(), ContainerError> {
    match n_shards {
        1..=MAX_SHARDS => Ok(()),
        n => {
            Err(file
                .problem(format!("the number of shards must be from 1 to {MAX_SHARDS}, got {n}")))
        }
    }
}

/// The metadata and the groups of arrays of a container.
pub(super) fn unpack<M: for<'de> Deserialize<'de>>(
    file: &Container,
) -> Result<(M, Vec<(String, Arrays)>), ContainerError> {
    let Packed { meta, types } = file.meta::<Packed<M>>()?;
    let mut groups: Vec<(String, Arrays)> = Vec::new();
    for (group, name, type_name) in types {
        let numbers = Numbers::read(file, &format!("{group}/{name}"), &type_name)?;
        if groups.last().is_none_or(|(last, _)| *last != group) {
            groups.push((group, Arrays::new()));
        }
        let (_, arrays) = groups.last_mut().expect("a group was just pushed");
        arrays.0.insert(name, numbers);
    }
    Ok((meta, groups))
}
