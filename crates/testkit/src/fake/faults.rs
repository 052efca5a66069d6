//! What goes wrong at a fake shard, and how often. All chances are per mille of the operations.

use std::time::Duration;

use forebay_store::ErrorClass;

use super::Dice;

/// How a shard behaves.
#[derive(Debug, Clone)]
pub struct Faults {
    /// Milliseconds until a commit is applied.
    pub commit_ms: (u64, u64),
    /// Milliseconds until its answer is back.
    pub answer_ms: (u64, u64),
    /// Milliseconds of a read, and of everything else.
    pub read_ms: (u64, u64),
    /// How often an operation is slow.
    pub slow: u32,
    /// Milliseconds that a slow one takes on top.
    pub slow_ms: (u64, u64),
    /// How often a batch is rolled back before COMMIT was sent.
    pub rolled_back: u32,
    /// What is said then.
    pub classes: Vec<ErrorClass>,
    /// How often COMMIT is lost before it has an effect.
    pub lost_before: u32,
    /// How often COMMIT has its effect, and its answer is lost.
    pub lost_after: u32,
    /// How often COMMIT hangs: its effect comes later, or never once its connection is killed.
    pub hangs: u32,
    /// How often asking for the outcome fails.
    pub resolve_fails: u32,
    /// How often a read fails.
    pub read_fails: u32,
    /// How often a renewal fails.
    pub renewal_fails: u32,
    /// How often a take-over fails.
    pub take_over_fails: u32,
    /// How often a take-over does not find the old owner's connections to kill.
    pub unkilled: u32,
    /// No room: inserts are refused.
    pub disk_full: bool,
    /// Everything fails.
    pub down: bool,
}

impl Faults {
    /// A healthy shard.
    pub fn none() -> Self {
        Self {
            commit_ms: (1, 4),
            answer_ms: (0, 1),
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
            take_over_fails: 0,
            unkilled: 0,
            disk_full: false,
            down: false,
        }
    }

    /// A healthy shard that takes no time at all.
    pub fn instant() -> Self {
        Self { commit_ms: (0, 0), answer_ms: (0, 0), read_ms: (0, 0), ..Self::none() }
    }

    pub(super) fn pause(&self, dice: &mut Dice, range: (u64, u64)) -> Duration {
        let slow = if dice.chance(self.slow) { dice.millis(self.slow_ms) } else { Duration::ZERO };
        dice.millis(range) + slow
    }

    pub(super) fn fate(&self, dice: &mut Dice) -> Fate {
        if self.down || dice.chance(self.rolled_back) {
            return Fate::RolledBack(if self.down {
                ErrorClass::Disconnected
            } else {
                *dice.pick(&self.classes)
            });
        }
        if dice.chance(self.lost_before) {
            Fate::LostBefore
        } else if dice.chance(self.lost_after) {
            Fate::LostAfter
        } else if dice.chance(self.hangs) {
            Fate::Hangs
        } else {
            Fate::Done
        }
    }
}

/// What becomes of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    RolledBack(ErrorClass),
    LostBefore,
    LostAfter,
    Hangs,
}
