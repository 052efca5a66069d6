//! What Forebay's tests share: the contract of the stores, a fake store, database servers, the simulation.

pub mod contract;
pub mod fake;
mod program;
pub mod servers;
pub mod sim;

pub use program::program;
