//! Every kernel against a plain twin on the processor, in double precision, over shapes at which kernels change their
//! way. Without a device there is nothing to compare: the tests say so (`--nocapture` shows it) and pass.
//!
//! Arrays on the device have numbers around what is used of them that are none (NaN): whatever reads too much spoils its
//! result, and whatever writes too much is seen. Every operation is done twice, and must give the same bits.

mod kit;
mod formats;
mod memory;
mod product;
mod layers;
mod norms;
mod transition;
mod transition_half;
mod emission;
mod recursion;
mod groups;
mod listed;
mod lockstep;
mod optimizer;
mod counts;
mod recurrent;
mod words;

/// The kernels that each file compares.
const COMPARED: &[&[&str]] = &[
    layers::KERNELS,
    norms::KERNELS,
    formats::KERNELS,
    transition::KERNELS,
    transition_half::KERNELS,
    emission::KERNELS,
    recursion::KERNELS,
    groups::KERNELS,
    listed::KERNELS,
    lockstep::KERNELS,
    optimizer::KERNELS,
    counts::KERNELS,
    recurrent::KERNELS,
    words::KERNELS,
];

#[test]
fn every_kernel_has_a_twin() {
    let source = include_str!("../../src/device.rs");
    let (_, list) = source.split_once("const KERNELS: &[&str] = &[").expect("a list of kernels");
    let (list, _) = list.split_once("];").expect("an end of the list");
    let mut kernels: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut compared: Vec<&str> = COMPARED.concat();
    kernels.sort_unstable();
    compared.sort_unstable();
    assert_eq!(kernels, compared, "the kernels that there are, and those that are compared");
}
