//! Sums over devices. One device cannot have two places in a group, so a group has one process here.

use crate::kit::{Done, Rng, device};
use latens_cuda::{CudaError, Nccl};
use std::io::Write;

#[test]
fn a_group_of_one_process_keeps_its_values() {
    let Some(device) = device(&[]) else { return };
    let id = match Nccl::id() {
        Err(CudaError::NoLibrary { library }) => {
            let _ = writeln!(std::io::stderr(), "skipping the test of NCCL: {library} not found");
            return;
        }
        id => id.done("create an id"),
    };
    let nccl = Nccl::join(&device, 0, 1, id).done("join");
    let values = Rng::new(1).normals(1000);
    let mut array = device.upload(&values).done("upload");
    nccl.sum(&mut array).done("sum");
    assert_eq!(device.download(&array).done("download"), values);
    let values: Vec<f64> = values.into_iter().map(f64::from).collect();
    let mut array = device.upload(&values).done("upload");
    nccl.sum_f64(&mut array).done("sum");
    assert_eq!(device.download(&array).done("download"), values);
}
