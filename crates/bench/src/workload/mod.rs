//! Producers and consumers: the closed loop that most scenarios use.

pub mod measure;
pub mod stall;
pub mod state;
pub mod workers;
