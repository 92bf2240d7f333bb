//! Processes that learn one model together.

use latens::model::group;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A place in a ring that other processes can connect to.
#[pyclass(frozen, module = "latens._latens")]
pub(crate) struct RingSeat {
    seat: Mutex<Option<group::RingSeat>>,
    address: SocketAddr,
}

#[pymethods]
impl RingSeat {
    /// Listens on a free port of an address of this machine.
    #[new]
    fn new(host: &str) -> PyResult<RingSeat> {
        let host: IpAddr = host
            .parse()
            .map_err(|_| PyValueError::new_err(format!("`{host}` is not an IP address")))?;
        let seat = group::RingSeat::new(host).map_err(failed)?;
        let address = seat.address().map_err(failed)?;
        Ok(RingSeat { seat: Mutex::new(Some(seat)), address })
    }

    /// The address that the process before this one connects to.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Joins the ring of these addresses. Waits for both neighbors.
    fn join(
        &self,
        py: Python<'_>,
        rank: usize,
        addresses: Vec<String>,
        token: [u8; 16],
        seconds: f64,
    ) -> PyResult<Ring> {
        let seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner).take();
        let seat = seat.ok_or_else(|| PyValueError::new_err("this seat has joined a ring"))?;
        let parse = |address: &String| address.parse().ok();
        let addresses: Option<Vec<SocketAddr>> = addresses.iter().map(parse).collect();
        let addresses = addresses.ok_or_else(|| PyValueError::new_err("invalid addresses"))?;
        let patience = Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err("`seconds` must be positive"))?;
        let ring = py.detach(|| seat.join(rank, &addresses, token, patience)).map_err(failed)?;
        Ok(Ring(ring))
    }
}

/// A process in a ring.
#[pyclass(frozen, module = "latens._latens")]
pub(crate) struct Ring(pub(crate) group::Ring);

fn failed(error: std::io::Error) -> PyErr {
    PyOSError::new_err(format!("cannot join the other workers: {error}"))
}
