//! The estimated cost of a training run (`--dry-run`).

use super::time::seconds_per_iteration;
use crate::output::{Output, duration};
use anyhow::Result;
use clap::Args;
use latens::model::{AvailableMemory, Bytes, Cost, Device, resident_memory};
use serde::Serialize;

/// Options on the cost of training.
#[derive(Args)]
pub(crate) struct CostArgs {
    /// Print the estimated memory, number of operations and time per iteration of training, without training
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Train even if the estimated memory exceeds the available memory
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) force: bool,
}

/// The estimate of a training run.
#[derive(Serialize)]
struct Estimate {
    /// Peak memory of the whole program.
    memory_bytes: u64,
    parts: Vec<Part>,
    /// Memory that the program can still allocate, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    available_bytes: Option<u64>,
    multiply_adds_per_iteration: f64,
    /// A rough estimate; `null` where it is unknown, such as on a GPU.
    seconds_per_iteration: Option<f64>,
    iterations: u64,
}

#[derive(Serialize)]
struct Part {
    name: &'static str,
    bytes: u64,
}

/// Prints the estimated cost of a training run whose data is in memory.
pub(crate) fn show_cost(cost: &Cost, device: Device, output: &Output) -> Result<()> {
    let (now, peak) = resident_memory().unwrap_or_default();
    let read = Part { name: "program and text", bytes: now };
    let of_part =
        cost.parts().iter().map(|part| Part { name: part.name, bytes: part.bytes as u64 });
    let available = AvailableMemory::now();
    let estimate = Estimate {
        // Reading may have needed more than training will.
        memory_bytes: peak.max(now.saturating_add(cost.memory_bytes())),
        parts: [read].into_iter().chain(of_part).collect(),
        available_bytes: available.map(|available| available.bytes),
        multiply_adds_per_iteration: cost.multiply_adds_per_iteration(),
        seconds_per_iteration: seconds_per_iteration(cost, device),
        iterations: cost.n_iterations(),
    };
    output.result(&estimate, |out| {
        writeln!(out, "memory {}", Bytes(estimate.memory_bytes))?;
        for Part { name, bytes } in &estimate.parts {
            writeln!(out, "  {name} {}", Bytes(*bytes))?;
        }
        if let Some(AvailableMemory { bytes, limit }) = available {
            writeln!(out, "available {} {limit}", Bytes(bytes))?;
        }
        writeln!(out, "multiply-adds per iteration {:.2e}", estimate.multiply_adds_per_iteration)?;
        match estimate.seconds_per_iteration {
            Some(seconds) if seconds < 1.0 => writeln!(out, "time per iteration below 1 s")?,
            Some(seconds) => {
                writeln!(out, "time per iteration {} (rough estimate)", duration(seconds))?;
            }
            None => writeln!(out, "time per iteration unknown")?,
        }
        writeln!(out, "iterations {}", estimate.iterations)
    })?;
    if let Err(error) = cost.check_fits(available) {
        output.note(&format!("warning: {error}"));
    }
    Ok(())
}
