//! One owner's tenure of a shard: the fence as it is known to be, and how long the owner may trust it.

pub(super) mod spans;
mod verbs;

use std::time::Duration;

use forebay_store::{Fence, HighWaterMarks};
use forebay_types::{Incarnation, Monotonic, Timestamp};

use self::spans::Spans;
use super::commit::in_flight::InFlight;
use crate::{api::Settings, claim::Trust, clock::ShardTime};

/// The owner's claim and its last batch.
#[derive(Debug)]
pub(super) struct Tenure {
    /// The fence's epoch.
    pub epoch: u64,
    /// The owner's random name.
    pub incarnation: Incarnation,
    /// The shard's time when it was taken over: all that others have stored is older.
    pub began_at: Timestamp,
    /// When an item with a dedupe key was stored last, at the latest.
    pub keyed_at: Timestamp,
    /// The last resolved batch.
    pub batch: u64,
    /// The highest values given out.
    pub marks: HighWaterMarks,
    /// Below it, ranks of this shard are raised, because the fence's rank was far ahead of node time.
    pub rank_floor: i64,
    /// How long no other node can own the shard.
    pub trust: Trust,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
    /// How long the last commit took.
    pub commit_took: Duration,
    /// The shard's time, which is never behind the fence's.
    pub time: ShardTime,
    /// Steps of its time.
    pub spans: Spans,
}

impl Tenure {
    /// Begins with a take-over whose call began at `began`.
    pub fn new(
        fence: &Fence,
        settings: &Settings,
        began: Monotonic,
        batch_bytes: usize,
        at: Monotonic,
    ) -> Self {
        Self {
            epoch: fence.epoch,
            incarnation: fence.incarnation,
            began_at: fence.marks.time,
            keyed_at: fence.marks.time,
            batch: fence.batch,
            marks: fence.marks,
            rank_floor: i64::MIN,
            trust: Trust::new(settings.shard_lease, began),
            batch_bytes,
            commit_took: Duration::ZERO,
            time: ShardTime::new(fence.marks.time, at),
            spans: Spans::default(),
        }
    }

    /// A batch is committed. `last` is its number, or that of the empty batch that confirmed it.
    pub fn committed(&mut self, batch: &InFlight, last: u64, took: Duration) {
        self.batch = last;
        self.marks = batch.marks;
        self.commit_took = took;
        self.trust.renewed(batch.sent_at);
    }

    /// A rank that this shard has not passed yet.
    pub fn next_rank(&mut self, rank: i64) -> i64 {
        if rank > self.rank_floor {
            return rank;
        }
        self.rank_floor += 1;
        self.rank_floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{at, build, commit, items, part, put, shard};

    #[test]
    fn a_claim_is_trusted_for_four_fifths_of_the_lease_from_the_start_of_a_call() {
        let mut shard = shard(); // a lease of 1.5 s
        assert!(shard.is_trusted(at(1_199)) && !shard.is_trusted(at(1_200)));
        shard.renewed(at(1_000));
        assert!(shard.is_trusted(at(2_199)) && !shard.is_trusted(at(2_200)));
        shard.renewed(at(500));
        assert!(shard.is_trusted(at(2_199)), "a renewal that took longer takes nothing back");
    }

    #[test]
    fn a_shard_that_is_about_to_be_released_is_trusted_no_more() {
        let mut shard = shard();
        shard.resign();
        assert!(!shard.is_trusted(at(0)));
        shard.renewed(at(1));
        assert!(!shard.is_trusted(at(2)), "whatever is renewed until then");
    }

    #[test]
    fn a_committed_batch_renews_the_claim_as_of_when_it_was_sent() {
        let mut shard = shard();
        put(&mut shard, part(1, items(1)));
        build(&mut shard, 1_000);
        commit(&mut shard, 1_100);
        assert!(shard.is_trusted(at(2_199)) && !shard.is_trusted(at(2_200)));
        assert_eq!((shard.tenure.batch, shard.tenure.commit_took), (1, Duration::from_millis(100)));
    }

    #[test]
    fn a_batch_that_an_empty_one_confirmed_has_the_number_of_that() {
        let mut shard = shard();
        put(&mut shard, part(1, items(1)));
        build(&mut shard, 0);
        shard.committed(2, at(0), Duration::ZERO).unwrap();
        assert_eq!(shard.tenure.batch, 2);
    }

    #[test]
    fn ranks_are_raised_up_to_the_floor_and_no_further() {
        let mut shard = shard();
        assert_eq!(shard.tenure.next_rank(5), 5);
        shard.set_rank_floor(10);
        let ranks = [5, 6, 13, 14].map(|rank| shard.tenure.next_rank(rank));
        assert_eq!(ranks, [11, 12, 13, 14]);
    }
}
