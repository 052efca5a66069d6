//! Checks the rows that a batch changed against each other.

use forebay_store::{Sweep, TopicCounts, TopicTally};
use forebay_types::{Seq, State, Timestamp};

use super::{change::AppliedBatch, tables::Tables};

impl Tables {
    /// Checks everything that the batch changed.
    pub(super) fn audit(&self, done: &mut AppliedBatch) {
        if !self.strict {
            return;
        }
        for topic in done.topics.clone() {
            let Some(entry) = self.topics.get(&topic) else { continue };
            let counted = self.counts(topic);
            if counted != entry.actual {
                let (name, actual) = (&entry.name, entry.actual);
                done.violation("CONSERVATION", format!("{name} is counted {counted:?}, and has {actual:?}"));
            }
            let TopicCounts { ready, scheduled, dead } = entry.actual;
            if let Some(TopicTally { tally, .. }) = entry.counted
                && tally.present() != ready + scheduled + dead
            {
                let (name, actual) = (&entry.name, entry.actual);
                let what =
                    format!("{name} has {actual:?}, which is not what came in and did not leave: {tally:?}");
                done.violation("CONSERVATION", what);
            }
        }
        for sweep in Sweep::ALL {
            let checkpoint = self.checkpoints.get(&sweep).copied().unwrap_or(Timestamp::MIN);
            if let Some((at, seq)) = self.sweep(sweep).first().filter(|(at, _)| *at < checkpoint) {
                let (name, seq) = (sweep.name(), seq.0);
                let what = format!("{name}: the row of item {seq} at {at:?} is before {checkpoint:?}");
                done.violation("CHECKPOINT-SAFE", what);
            }
        }
        for seq in done.items.clone() {
            self.audit_item(seq, done);
        }
    }

    fn audit_item(&self, seq: Seq, done: &mut AppliedBatch) {
        let leased = self.lease_of(seq).is_some();
        let Some(item) = self.items.get(&seq) else {
            let timed = self.schedule.iter().chain(&self.expiry).any(|(_, other)| *other == seq);
            if leased || timed {
                done.violation("CONSERVATION", format!("item {} was removed without its other rows", seq.0));
            }
            return;
        };
        let due = (Timestamp::from_micros(item.key.rank), seq);
        if (item.state == State::Scheduled) != self.schedule.contains(&due) {
            done.violation("CONSERVATION", format!("item {} disagrees with its schedule row", seq.0));
        }
        if leased && item.state == State::Scheduled {
            done.violation("LEASE-EXCLUSIVE", format!("item {} is scheduled and leased", seq.0));
        }
        if let Some(end) = item.attributes.expires_at
            && !leased
            && !self.expiry.contains(&(end, seq))
        {
            done.violation("TIME", format!("item {} would never expire", seq.0));
        }
    }
}
