//! What is written comes back, and what is damaged does not.

mod checkpoint;
mod damage;
mod round_trip;
mod toy;
