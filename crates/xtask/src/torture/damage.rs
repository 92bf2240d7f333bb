//! Changes bytes of model files. A damaged file is refused; a forged one, whose checksums are valid, is refused or used,
//! but never makes the program panic or answer NaN.

use super::effort::Effort;
use super::kinds::Trained;
use super::model_file::{Array, Contents};
use super::random::Random;
use super::runner::{Expected, Runner};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;

const FILE: &str = "damaged";

pub(crate) fn run(
    runner: &mut Runner,
    all: &[Trained],
    effort: &Effort,
    random: &mut Random,
) -> Result<()> {
    for trained in all {
        for _ in 0..effort.n_damages {
            let whole = trained.model.to_bytes()?;
            fs::write(runner.path(FILE), damaged(whole, random))?;
            runner.counts.damaged_files += 1;
            use_file(runner, trained, Expected::Refusal, random)?;

            fs::write(runner.path(FILE), forged(&trained.model, random).to_bytes()?)?;
            runner.counts.forged_files += 1;
            let n_failures = runner.counts.failures;
            use_file(runner, trained, Expected::Either, random)?;
            if runner.counts.failures > n_failures {
                let kept = format!("forged-{}-{n_failures}", trained.kind.name);
                fs::copy(runner.path(FILE), runner.path(&kept))?;
            }
        }
    }
    Ok(())
}

/// Uses the file in one of the ways in which the model can be used.
fn use_file(
    runner: &mut Runner,
    trained: &Trained,
    expected: Expected,
    random: &mut Random,
) -> Result<()> {
    let uses: Vec<String> = trained.uses(FILE).collect();
    let command: &String = random.choose(&uses);
    runner.run(command, expected).map(drop)
}

/// A file of which bits, or the end, differ.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => bytes.truncate(at),
        1 => bytes.push(0),
        2 => bytes[at..].fill(0xa5),
        _ => bytes[at] ^= 1 << random.below(8),
    }
    bytes
}

/// A model with swapped arrays, values out of range, or other numbers in its header.
fn forged(model: &Contents, random: &mut Random) -> Contents {
    let mut forged = model.clone();
    let names: Vec<String> = forged.arrays.keys().cloned().collect();
    match random.below(5) {
        0 => {
            // Arrays of one type and length: others are refused at once.
            let (a, b) = (random.choose(&names).clone(), random.choose(&names).clone());
            let (first, second) = (forged.arrays[&a].clone(), forged.arrays[&b].clone());
            if (first.dtype.as_str(), first.bytes.len()) == (&second.dtype, second.bytes.len()) {
                forged.arrays.insert(a, second);
                forged.arrays.insert(b, first);
            }
        }
        1 => change_number(&mut forged.header["parameters"], random),
        2 => {
            forged.arrays.remove(random.choose(&names));
        }
        _ => {
            for _ in 0..=random.below(3) {
                let name = random.choose(&names);
                forged
                    .arrays
                    .get_mut(name)
                    .into_iter()
                    .for_each(|array| change_value(array, random));
            }
        }
    }
    forged
}

fn change_value(array: &mut Array, random: &mut Random) {
    const FLOATS: [f64; 11] =
        [0.0, 1.0, -1.0, 1e-44, 1e-30, 1e10, 1e19, 3e38, -3e38, f64::NAN, f64::NEG_INFINITY];
    let (size, float) = (array.size(), *random.choose(&FLOATS));
    let integer = *random.choose(&[0, 1, 2, u64::from(u32::MAX), u64::MAX]);
    let n_values = array.bytes.len() / size;
    if n_values == 0 {
        return;
    }
    let at = random.below(n_values) * size;
    let value = match array.dtype.as_str() {
        "F32" => (float as f32).to_le_bytes().to_vec(),
        "F64" => float.to_le_bytes().to_vec(),
        _ => integer.to_le_bytes()[..size].to_vec(),
    };
    array.bytes[at..at + size].copy_from_slice(&value);
}

/// Changes one of the numbers of the parameters.
fn change_number(parameters: &mut Value, random: &mut Random) {
    let numbers =
        [json!(0), json!(1), json!(7), json!(u32::MAX), json!(u64::MAX), json!(1e308), json!(-1)];
    let Some(parameters) = parameters.as_object_mut() else { return };
    let mut fields: Vec<&mut Value> =
        parameters.values_mut().filter(|value| value.is_number()).collect();
    if !fields.is_empty() {
        let at = random.below(fields.len());
        *fields[at] = random.choose(&numbers).clone();
    }
}
