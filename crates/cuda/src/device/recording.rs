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
    /// All kernels and products with their arguments.
    notes: Vec<u64>,
    graph: Graph,
    /// Products use memory of their handle.
    _blas: Arc<CudaBlas>,
}

enum Graph {
    /// The work was done once.
    New,
    Ready(CudaGraph),
    /// CUDA cannot record the work, or it is not the same every time.
    Impossible,
}

// SAFETY: a graph may be used by any thread, but only by one at a time. `Device::replay`, the only function that uses
// graphs, has exclusive access to them.
unsafe impl Send for Recordings {}
// SAFETY: nothing uses a graph through a shared reference.
unsafe impl Sync for Recordings {}

impl Recordings {
    /// Shapes of mini-batches are few, but scoring alternates with training.
    const MAX_LEN: usize = 12;

    /// The recording of this work, which becomes the last one, or `None` if it is new.
    fn find(&mut self, notes: &[u64]) -> Option<&mut Recording> {
        let idx = self.0.iter().rposition(|recording| recording.notes == notes)?;
        let found = self.0.remove(idx);
        self.0.push(found);
        self.0.last_mut()
    }
}

impl Device {
    /// Does what `work` does, with a single launch from the third time on.
    ///
    /// `work` may only launch kernels and multiply matrices, with this handle. It is called once to note what it would
    /// launch, and again to launch it, unless that is recorded. The second time, it is recorded. The same kernels and products
    /// with other arrays, other sizes or other numbers are other work. No other thread may use this handle meanwhile.
    ///
    /// # Panics
    /// If `work` allocates, copies or waits.
    pub fn replay(
        &self,
        recordings: &mut Recordings,
        mut work: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let notes = Noting::begin(self, false);
        work()?;
        let notes = notes.end();
        let Some(recording) = recordings.find(&notes) else {
            // Work that is done once is not worth a recording. Besides, cuBLAS allocates its memory the first time.
            if recordings.0.len() == Recordings::MAX_LEN {
                recordings.0.remove(0);
            }
            recordings.0.push(Recording { notes, graph: Graph::New, _blas: self.blas.clone() });
            return work();
        };
        if let Graph::New = recording.graph {
            recording.graph = self.recorded(&notes, &mut work);
        }
        match &recording.graph {
            Graph::Ready(graph) => graph.launch().map_err(CudaError::failed("start recorded work")),
            // If the device itself failed, this reports it.
            Graph::New | Graph::Impossible => work(),
        }
    }

    fn recorded(&self, notes: &[u64], work: &mut dyn FnMut() -> Result<(), CudaError>) -> Graph {
        let Some(capture) = Capture::begin(self) else { return Graph::Impossible };
        let noting = Noting::begin(self, true);
        let done = work();
        // What is found by its notes later must be what was recorded.
        let is_same = noting.end() == notes;
        match (done, capture.end()) {
            (Ok(()), Some(graph)) if is_same => Graph::Ready(graph),
            _ => Graph::Impossible,
        }
    }
}

/// Notes launches until it is dropped, after a panic, too.
struct Noting<'a>(&'a Device);

impl Noting<'_> {
    fn begin(device: &Device, launches: bool) -> Noting<'_> {
        device.begin_notes(launches);
        Noting(device)
    }

    fn end(self) -> Vec<u64> {
        self.0.end_notes()
    }
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        self.0.end_notes();
    }
}

/// Records launches until it is dropped: a stream that records does nothing else.
struct Capture<'a>(Option<&'a Device>);

impl Capture<'_> {
    fn begin(device: &Device) -> Option<Capture<'_>> {
        // cuBLAS may load a kernel meanwhile, which the other modes forbid.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        device.stream.begin_capture(mode).ok().map(|()| Capture(Some(device)))
    }

    fn end(mut self) -> Option<CudaGraph> {
        let device = self.0.take()?;
        device.stream.end_capture(CUgraphInstantiate_flags(0)).ok().flatten()
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if let Some(device) = self.0.take() {
            let _ = device.stream.end_capture(CUgraphInstantiate_flags(0));
        }
    }
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordings").field("len", &self.0.len()).finish_non_exhaustive()
    }
}
