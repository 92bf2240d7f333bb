//! Compares every kernel with a plain twin on the CPU in double precision, over shapes around the sizes at which kernels
//! change their code path. Without a device these tests are skipped, and say so on stderr.
//!
//! Arrays on the device have canaries (NaN) around the range that is used: reading them spoils the result, and writing
//! them is detected. Every operation runs twice and must give the same bits.

mod kit;
mod memory;
mod recording;
mod nccl;
mod blas;
mod nn;
mod hmm;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The kernels that the tests in a folder compare: the names in their calls of `device(&[…])`.
fn compared(folder: &Path) -> BTreeSet<String> {
    let mut kernels = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        for call in source.split(" = device(&[").skip(1) {
            let (names, _) = call.split_once(']').unwrap();
            kernels.extend(names.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    kernels
}

#[test]
fn every_kernel_has_a_twin() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins");
    let compared = &compared(&tests.join("nn")) | &compared(&tests.join("hmm"));
    let kernels: BTreeSet<String> = latens_cuda::KERNELS.iter().map(|&name| name.into()).collect();
    assert_eq!(compared, kernels, "kernels that tests compare, and all kernels");
}
