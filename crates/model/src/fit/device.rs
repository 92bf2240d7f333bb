//! Devices that models are trained and used on.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The device that a model is trained or used on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// A device cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot use the device `{device}`: {problem}")]
pub struct DeviceError {
    /// The device.
    pub device: Device,
    /// The reason.
    pub problem: String,
}

impl DeviceError {
    /// A GPU cannot be used.
    pub fn cuda(problem: impl ToString) -> DeviceError {
        DeviceError { device: Device::Cuda, problem: problem.to_string() }
    }

    /// A GPU cannot be used by a program without the feature `cuda`.
    pub fn built_without_cuda() -> DeviceError {
        DeviceError::cuda("this program was built without CUDA")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Cuda => "cuda",
        })
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(name: &str) -> Result<Device, String> {
        match name {
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda),
            _ => Err("the device must be `cpu` or `cuda`".to_owned()),
        }
    }
}
