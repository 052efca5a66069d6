//! Changes of owner, for the checks after a run.

use forebay_types::Incarnation;

use super::journal::Moment;

/// A change of owner.
#[derive(Debug, Clone, Copy)]
pub struct TakeOverRecord {
    /// When it took effect.
    pub done: Moment,
    /// The process of the new owner.
    pub process: usize,
    /// The new epoch.
    pub epoch: u64,
    /// The new owner's random name.
    pub incarnation: Incarnation,
    /// The last owner had given the shard up, so nobody's acks were held up.
    pub released: bool,
}

/// A shard was given up.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseRecord {
    /// When that took effect.
    pub done: Moment,
    /// The process that owned it.
    pub process: usize,
}

/// A process tried to take a shard over.
#[derive(Debug, Clone, Copy)]
pub struct AttemptRecord {
    /// When it began.
    pub begun: Moment,
    /// The process.
    pub process: usize,
    /// The epoch that it had seen.
    pub epoch: u64,
}
