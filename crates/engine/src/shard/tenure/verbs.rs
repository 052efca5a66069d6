//! The owner's claim, and the shard's time. A step of that moves whatever began before it: leases,
//! generations of keys, delays.

use forebay_types::{Incarnation, Monotonic};

use super::spans::Step;
use crate::{
    clock::{self, Moment},
    planted::{Bug, on},
    shard::{OwnedShard, commit::in_flight::InFlight},
};

impl OwnedShard {
    /// Ranks up to this one are passed already, far ahead of node time: this shard's ranks begin above it.
    pub fn set_rank_floor(&mut self, rank: i64) {
        self.tenure.rank_floor = rank;
    }

    /// The shard's moment, given the node's.
    pub fn moment(&mut self, node: Moment) -> Moment {
        self.tenure.time.moment(node)
    }

    /// Whether it is this owner's.
    pub fn is_tenure_of(&self, epoch: u64, incarnation: Incarnation) -> bool {
        (self.tenure.epoch, self.tenure.incarnation) == (epoch, incarnation)
    }

    /// The shard is about to be released: from now on another node may own it.
    pub fn resign(&mut self) {
        self.tenure.trust.resign();
    }

    /// Whether no other node can own the shard. Answers that write nothing are given only then.
    pub fn is_trusted(&self, at: Monotonic) -> bool {
        self.tenure.trust.holds(at)
    }

    /// The node's time has stepped, and the shard's with it, as far as it was not ahead. What began before
    /// moves.
    pub fn step(&mut self, step: clock::Step) {
        let before = self.tenure.time.moment(step.before).now;
        let by = self.tenure.time.moment(step.after).now.since(before);
        if by.is_zero() || on(Bug::SpansEndWithAStep) {
            return;
        }
        // The batch on its way was built before.
        let last = self.commit.in_flight.as_ref().map(|batch| (batch.number, batch.marks.seq));
        let (number, seq) = last.unwrap_or((self.tenure.batch, self.tenure.marks.seq));
        self.contents.leases.step(number + 1, before, by);
        self.upkeep.generations.step(&self.settings, step.after.at);
        self.tenure.spans.step(Step { before, by, seq });
    }

    /// A batch is built. If one that was on its way at a step did not happen, its numbers are given out
    /// again.
    pub(in crate::shard) fn note_numbers(&mut self) {
        self.contents.leases.next_row(self.tenure.batch + 1);
        self.tenure.spans.given_out_again(self.tenure.marks.seq);
    }

    /// A batch is committed that scheduled items.
    pub(in crate::shard) fn scheduled(&mut self, batch: &InFlight) {
        let (seqs, steps) = &batch.scheduled;
        self.tenure.spans.scheduled(seqs, *steps);
    }
}
