//! Work that is recorded once and then started as a whole.
//!
//! A loop of many short kernels takes longer to start than to run. A CUDA graph starts all of them at once.

use super::error::CudaError;
use super::handle::Device;
use cudarc::cublas::CudaBlas;
use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use std::fmt;
use std::sync::Arc;

/// Recorded work, to be started again with [`Device::replay`].
#[derive(Default)]
pub struct Recordings(Vec<Recording>);

struct Recording {
    /// All kernels and products with their arguments, as [`Device::replay`] notes them.
    started: Vec<u64>,
    graph: Graph,
    /// Products use memory of their handle.
    _blas: Arc<CudaBlas>,
}

enum Graph {
    /// The work was done once.
    New,
    Ready(CudaGraph),
    /// CUDA cannot record the work.
    Impossible,
}

// SAFETY: a graph may be used by any thread, but only by one at a time. `Device::replay`, the only function that uses
// graphs, has exclusive access to them.
unsafe impl Send for Recordings {}
// SAFETY: nothing uses a graph through a shared reference.
unsafe impl Sync for Recordings {}

impl Recordings {
    /// Shapes of mini-batches are few, but scoring alternates with training.
    const MAX_LEN: usize = 8;

    /// The recording of this work, which becomes the last one, or `None` if it is new.
    fn find(&mut self, started: &[u64]) -> Option<&mut Recording> {
        let idx = self.0.iter().rposition(|recording| recording.started == started)?;
        let found = self.0.remove(idx);
        self.0.push(found);
        self.0.last_mut()
    }
}

impl Device {
    /// Does what `work` does, with a single start if the same was done before.
    ///
    /// `work` may only launch kernels and multiply matrices. It is called once to note what it launches, without
    /// launching it, and once more unless there is a recording. The same kernels and products with other arrays, other
    /// sizes or other numbers are other work. No other thread may use this handle meanwhile.
    ///
    /// # Panics
    /// If `work` allocates, copies or waits.
    pub fn replay(
        &self,
        recordings: &mut Recordings,
        mut work: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let started = self.noted(&mut work)?;
        let Some(recording) = recordings.find(&started) else {
            // Work that is done once is not worth a recording. Besides, cuBLAS allocates its memory the first time.
            if recordings.0.len() == Recordings::MAX_LEN {
                recordings.0.remove(0);
            }
            recordings.0.push(Recording { started, graph: Graph::New, _blas: self.blas.clone() });
            return work();
        };
        if let Graph::New = recording.graph {
            recording.graph = self.recorded(&mut work);
        }
        match &recording.graph {
            Graph::Ready(graph) => graph.launch().map_err(CudaError::failed("start recorded work")),
            // If the device itself failed, this reports it.
            Graph::New | Graph::Impossible => work(),
        }
    }

    /// What the work launches.
    fn noted(
        &self,
        work: &mut dyn FnMut() -> Result<(), CudaError>,
    ) -> Result<Vec<u64>, CudaError> {
        self.begin_notes();
        let done = work();
        let notes = self.end_notes();
        done.map(|()| notes)
    }

    fn recorded(&self, work: &mut dyn FnMut() -> Result<(), CudaError>) -> Graph {
        // cuBLAS may load a kernel meanwhile, which the other modes forbid.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        if self.stream.begin_capture(mode).is_err() {
            return Graph::Impossible;
        }
        let done = work();
        // After an error, too: a stream that records does nothing else.
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        match (done, graph) {
            (Ok(()), Ok(Some(graph))) => Graph::Ready(graph),
            _ => Graph::Impossible,
        }
    }
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordings").field("len", &self.0.len()).finish_non_exhaustive()
    }
}
