//! The rows of a shard that ownership rests on: the fence and the heartbeat. They change under the conditions
//! of the store's statements (`store/src/sql/fence.rs`). `tests/rows.rs` holds both to one meaning.

use forebay_store::{Claim, Fence, HighWaterMarks, Observation};
use forebay_types::{Incarnation, Seq, Timestamp, TopicId};

/// One owner's time in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenure {
    /// The fence's epoch.
    pub epoch: u64,
    /// The owner's random name.
    pub incarnation: Incarnation,
}

/// A shard's rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Rows {
    /// Observation of them that any process can make.
    pub seen: Observation,
    /// The batches that were stored, one bit a call.
    pub stored: u8,
    /// A batch was stored that is not of the owner whom the fence names.
    pub foreign: bool,
    /// Only the epoch is compared: a planted mistake.
    pub ignore_incarnation: bool,
    /// Renewals and batches since the candidate's look are not compared: a planted mistake.
    pub ignore_signs_of_life: bool,
}

impl Rows {
    /// The fence.
    pub fn fence(&self) -> Fence {
        let Observation { epoch, incarnation, batch, .. } = self.seen;
        let marks = HighWaterMarks { seq: Seq(0), topic: TopicId(0), rank: 0, time: Timestamp::default() };
        Fence { epoch, incarnation, batch, marks }
    }

    /// Returns the owner's tenure of the shard, whether it has been released or not.
    pub fn tenure(&self) -> Tenure {
        Tenure { epoch: self.seen.epoch, incarnation: self.seen.incarnation }
    }

    fn is_of(&self, tenure: Tenure) -> bool {
        let same = self.seen.incarnation == tenure.incarnation || self.ignore_incarnation;
        self.seen.epoch == tenure.epoch && same
    }

    /// Takes the shard over, unless it has changed since it was seen.
    pub fn take_over(&mut self, claim: &Claim, seen: &Observation) -> Option<Fence> {
        let signs = |rows: &Observation| match self.ignore_signs_of_life {
            true => (rows.epoch, 0, 0),
            false => (rows.epoch, rows.batch, rows.renewals),
        };
        if signs(&self.seen) != signs(seen) {
            return None;
        }
        let now = &mut self.seen;
        now.epoch += 1;
        now.renewals += 1;
        now.incarnation = claim.incarnation;
        now.address.clone_from(&claim.address);
        now.lease = claim.lease;
        now.successor.clear();
        Some(self.fence())
    }

    /// Stores a call's batch, if it is the owner's next one.
    pub fn commit(&mut self, tenure: Tenure, number: u64, call: usize) -> bool {
        if !self.is_of(tenure) || self.seen.batch + 1 != number {
            return false;
        }
        self.foreign |= tenure != self.tenure();
        self.seen.batch = number;
        self.stored |= 1 << call;
        true
    }

    /// Renews the claim, if this owner holds it.
    pub fn renew(&mut self, tenure: Tenure) -> bool {
        let is_of = self.is_of(tenure);
        self.seen.renewals += u64::from(is_of);
        is_of
    }

    /// Releases the shard, if this owner holds it.
    pub fn release(&mut self, tenure: Tenure, successor: &str) -> bool {
        let is_of = self.renew(tenure);
        if is_of {
            self.seen.address.clear();
            successor.clone_into(&mut self.seen.successor);
        }
        is_of
    }

    /// Rows that were never owned.
    pub fn new(ignore_incarnation: bool, ignore_signs_of_life: bool) -> Self {
        Self { ignore_incarnation, ignore_signs_of_life, ..Self::default() }
    }
}
