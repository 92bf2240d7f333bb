//! Model files and checkpoints round-trip, and damage is detected.

mod checkpoint;
mod damage;
mod round_trip;
mod toy;
