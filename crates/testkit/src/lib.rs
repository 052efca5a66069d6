//! testkit

pub mod contract;
pub mod fake;
pub mod servers;
pub mod sim;
