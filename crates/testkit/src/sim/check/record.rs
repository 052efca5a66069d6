//! Record of a run, which the checker reads.

use forebay_engine::Settings;
use forebay_types::ShardId;

use crate::{
    fake::{AttemptRecord, CommitRecord, Moment, ReleaseRecord, TakeOverRecord},
    sim::history::{Call, Stall},
};

/// A broken invariant: its name and a sentence.
pub type Finding = (&'static str, String);

/// Batches that one shard committed.
#[derive(Debug, Clone)]
pub struct ShardLog {
    /// Its number.
    pub id: ShardId,
    /// Its batches, in order.
    pub log: Vec<CommitRecord>,
    /// Its owners, in order.
    pub owners: Vec<TakeOverRecord>,
    /// When it was given up, in order.
    pub releases: Vec<ReleaseRecord>,
    /// Take-overs that were tried, in order.
    pub tried: Vec<AttemptRecord>,
}

impl ShardLog {
    /// The process that owned it at a moment.
    pub fn owner_at(&self, at: Moment) -> Option<usize> {
        let taken = self.owners.iter().rfind(|owner| owner.done.event < at.event)?;
        let given_up =
            |release: &ReleaseRecord| release.done.event > taken.done.event && release.done.event < at.event;
        (!self.releases.iter().any(given_up)).then_some(taken.process)
    }
}

/// The record of a finished run.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// Every clock was right throughout.
    pub exact_time: bool,
    /// Processes pass calls on to each other.
    pub forwards: bool,
    /// There were no faults, so order and answers must be perfect.
    pub strict: bool,
    /// No shard failed or was slow. Processes may have died.
    pub healthy: bool,
    /// No batch was sent a second time.
    pub sent_once: bool,
    /// Shards were removed while processes ran: one that a caller names may not be there.
    pub shards_change: bool,
    /// Some processes treat dedupe keys as the release before does.
    pub older: bool,
    /// Tasks that stood still for a while.
    pub stalls: Vec<Stall>,
    /// The shards with which each process was configured, from the first process on.
    pub configured: Vec<Vec<ShardId>>,
    /// The engines' settings.
    pub settings: Settings,
    /// Every call.
    pub calls: Vec<Call>,
    /// Every shard.
    pub shards: Vec<ShardLog>,
    /// Processes that died or were stopped before the end.
    pub deaths: Vec<(usize, Moment)>,
    /// Graceful stops with healthy shards: the process, when it was told to stop, and when it had stopped.
    pub stops: Vec<(usize, Moment, Moment)>,
    /// Processes that were told to stop, and when.
    pub told: Vec<(usize, Moment)>,
}

impl RunRecord {
    /// Whether the process of a call stood still during it. Then its answer may have been late for long.
    pub fn stood_still(&self, call: &Call) -> bool {
        self.stalls.iter().any(|stall| {
            let ended = stall.end.is_some_and(|end| end.event < call.start.event);
            let begun = stall.begin.event < call.end.event;
            stall.whole && stall.process == call.process && begun && !ended
        })
    }
}
