//! Adds up gradients over the devices of several processes.

use latens_cuda::{Array, CudaError, Device, Nccl, NcclId};
use latens_model::FitError;
use latens_model::group::{Group, add_up};
use std::io;

/// How the gradients of several processes are added up.
pub(crate) struct Sums<'a> {
    way: Way<'a>,
    /// Σ ln p.
    log_prob: Array<f64>,
}

enum Way<'a> {
    /// On the devices, with NCCL.
    Devices(Nccl),
    /// In the memory of the machines.
    Machines(&'a dyn Group),
}

impl<'a> Sums<'a> {
    /// Uses NCCL if all processes have the library and a device of their own.
    pub(crate) fn new(device: &Device, group: &'a dyn Group) -> Result<Sums<'a>, FitError> {
        let log_prob = device.zeros(1).map_err(FitError::step("train on the device"))?;
        let nccl = join(device, group).map_err(FitError::step("join the other processes"))?;
        let way = nccl.map_or(Way::Machines(group), Way::Devices);
        Ok(Sums { way, log_prob })
    }

    /// Replaces a gradient by the sum over all processes. Returns the sum of `log_probs`, an array of one element.
    pub(crate) fn add_up(
        &mut self,
        device: &Device,
        gradient: &mut Array<f32>,
        (log_probs, n_sentences): (&Array<f64>, usize),
    ) -> Result<&Array<f64>, FitError> {
        let failed = || FitError::step("train on the device");
        let Sums { way, log_prob } = self;
        let total = |log_prob: &mut Array<f64>| -> Result<(), CudaError> {
            device.clear(log_prob)?;
            if n_sentences > 0 {
                device.add_sum(log_prob, log_probs, n_sentences)?;
            }
            Ok(())
        };
        total(log_prob).map_err(failed())?;
        match way {
            Way::Devices(nccl) => {
                nccl.sum(gradient).map_err(failed())?;
                nccl.sum_f64(log_prob).map_err(failed())?;
            }
            Way::Machines(group) => {
                let mut values = device.download(gradient).map_err(failed())?;
                let own = device.download(log_prob).map_err(failed())?[0];
                let sum =
                    add_up(*group, &mut values, own).map_err(FitError::step("add up gradients"))?;
                device.write(&values, gradient).map_err(failed())?;
                device.write(&[sum], log_prob).map_err(failed())?;
            }
        }
        Ok(log_prob)
    }
}

/// Joins the communicator of all processes, or returns `None` in all of them if one cannot: without the library, or if
/// processes share a device.
fn join(device: &Device, group: &dyn Group) -> io::Result<Option<Nccl>> {
    if group.size() == 1 || !can_all(group, Nccl::is_installed())? {
        return Ok(None);
    }
    let id = if group.rank() == 0 { Nccl::id().ok() } else { None };
    let mut values = id.unwrap_or([0; 128]).map(f32::from);
    group.sum(&mut values)?;
    let id: NcclId = values.map(|value| value as u8);
    if id == [0; 128] {
        return Ok(None);
    }
    let nccl = Nccl::join(device, group.rank(), group.size(), id).ok();
    Ok(if can_all(group, nccl.is_some())? { nccl } else { None })
}

/// Whether all processes can do something.
fn can_all(group: &dyn Group, can: bool) -> io::Result<bool> {
    let mut n = [f32::from(u8::from(can))];
    group.sum(&mut n)?;
    Ok(n[0] as usize == group.size())
}
