//! The faults of a fake shard. All probabilities are per mille of the operations.

use std::time::Duration;

use forebay_store::ErrorClass;

use super::dice::Dice;

/// How a shard behaves.
#[derive(Debug, Clone)]
pub struct Faults {
    /// Milliseconds until a commit is applied.
    pub commit_ms: (u64, u64),
    /// Microseconds more for each of its rows.
    pub row_us: u64,
    /// Microseconds more for each item that returns after a delivery, and for each topic that it creates.
    pub dear_row_us: u64,
    /// Milliseconds until its answer arrives.
    pub answer_ms: (u64, u64),
    /// Milliseconds until the answer of a read, or of any other operation, arrives.
    pub reply_ms: (u64, u64),
    /// Milliseconds of a read and of every other operation.
    pub read_ms: (u64, u64),
    /// How often an operation is slow.
    pub slow: u32,
    /// Additional milliseconds of a slow operation.
    pub slow_ms: (u64, u64),
    /// How often a batch is rolled back before COMMIT was sent.
    pub rolled_back: u32,
    /// The classes of the errors in that case.
    pub classes: Vec<ErrorClass>,
    /// How often COMMIT is lost before it takes effect.
    pub lost_before: u32,
    /// How often COMMIT takes effect and its answer is lost.
    pub lost_after: u32,
    /// How often COMMIT hangs. It takes effect later, or perhaps never if its connection is killed.
    pub hangs: u32,
    /// How often resolving an outcome fails.
    pub resolve_fails: u32,
    /// How often a read fails.
    pub read_fails: u32,
    /// How often a renewal fails.
    pub renewal_fails: u32,
    /// How often a generation of the dedupe table can't be dropped.
    pub drop_fails: u32,
    /// How often a take-over fails.
    pub take_over_fails: u32,
    /// How often a server restarts once a read-back has seen a commit that is not on disk.
    pub forgets: u32,
    /// How often a take-over does not find the old owner's connections to kill.
    pub unkilled: u32,
    /// The disk is full: inserts are refused.
    pub disk_full: bool,
    /// The disk is so full that leases are refused too.
    pub disk_full_for_leases: bool,
    /// All connections for reading are in use.
    pub readers_busy: bool,
    /// Everything fails.
    pub down: bool,
}

impl Faults {
    /// A healthy shard.
    pub fn none() -> Self {
        Self {
            commit_ms: (1, 4),
            row_us: 0,
            dear_row_us: 0,
            answer_ms: (0, 1),
            reply_ms: (0, 0),
            read_ms: (1, 4),
            slow: 0,
            slow_ms: (0, 0),
            rolled_back: 0,
            classes: vec![ErrorClass::Replay],
            lost_before: 0,
            lost_after: 0,
            hangs: 0,
            resolve_fails: 0,
            read_fails: 0,
            renewal_fails: 0,
            drop_fails: 0,
            take_over_fails: 0,
            forgets: 0,
            unkilled: 0,
            disk_full: false,
            disk_full_for_leases: false,
            readers_busy: false,
            down: false,
        }
    }

    /// A healthy shard that takes no time at all.
    pub fn instant() -> Self {
        Self { commit_ms: (0, 0), answer_ms: (0, 0), read_ms: (0, 0), ..Self::none() }
    }

    /// The duration of an operation.
    pub(super) fn pause(&self, dice: &mut Dice, range: (u64, u64)) -> Duration {
        let slow = if dice.chance(self.slow) { dice.millis(self.slow_ms) } else { Duration::ZERO };
        dice.millis(range) + slow
    }

    /// The outcome of a commit.
    pub(super) fn commit_outcome(&self, dice: &mut Dice) -> CommitOutcome {
        if self.down || dice.chance(self.rolled_back) {
            return CommitOutcome::RolledBack(if self.down {
                ErrorClass::Disconnected
            } else {
                *dice.pick(&self.classes)
            });
        }
        if dice.chance(self.lost_before) {
            CommitOutcome::LostBefore
        } else if dice.chance(self.lost_after) {
            CommitOutcome::LostAfter
        } else if dice.chance(self.hangs) {
            CommitOutcome::Hangs
        } else {
            CommitOutcome::Done
        }
    }
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    /// It is committed.
    Done,
    /// It is rolled back.
    RolledBack(ErrorClass),
    /// COMMIT is lost before it takes effect.
    LostBefore,
    /// COMMIT takes effect and its answer is lost.
    LostAfter,
    /// COMMIT hangs.
    Hangs,
}
