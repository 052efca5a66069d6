//! testkit

pub mod fake;
pub mod servers;
