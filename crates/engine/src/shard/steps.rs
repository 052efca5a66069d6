//! A step of time moves what began before it: leases, generations of keys, delays.

use super::{OwnedShard, in_flight::InFlight, spans::Step};
use crate::{
    clock,
    planted::{Bug, on},
};

impl OwnedShard {
    /// The node's time has stepped, and the shard's with it, as far as it was not ahead. What began before
    /// moves.
    pub fn step(&mut self, step: clock::Step) {
        let before = self.time.moment(step.before).now;
        let by = self.time.moment(step.after).now.since(before);
        if by.is_zero() || on(Bug::SpansEndWithAStep) {
            return;
        }
        // The batch on its way was built before.
        let last = self.in_flight.as_ref().map(|batch| (batch.number, batch.marks.seq));
        let (number, seq) = last.unwrap_or((self.tenure.batch, self.tenure.marks.seq));
        self.leases.step(number + 1, before, by);
        self.generations.step(&self.settings, step.after.at);
        self.spans.step(Step { before, by, seq });
    }

    /// A batch is built. If one that was on its way at a step did not happen, its numbers are given out
    /// again.
    pub(super) fn note_numbers(&mut self) {
        self.leases.next_row(self.tenure.batch + 1);
        self.spans.given_out_again(self.tenure.marks.seq);
    }

    /// A batch is committed that scheduled items.
    pub(super) fn scheduled(&mut self, batch: &InFlight) {
        let (seqs, steps) = &batch.scheduled;
        self.spans.scheduled(seqs, *steps);
    }
}
