//! testkit

pub mod contract;
pub mod fake;
mod program;
pub mod servers;
pub mod sim;

pub use program::program;
