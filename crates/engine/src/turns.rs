//! Which shards may form a batch now. However short a batch is, it costs its server the statements around it, a fence and a
//! COMMIT, so the shards of one server take turns with small ones: what waits meanwhile makes the next one longer.
//!
//! A full batch gains nothing by waiting and goes at once; so does one of a server that has few under way. Nobody waits for
//! a batch that is out for long: it may be stuck with its shard alone.

use std::time::Duration;

use forebay_types::Monotonic;

use crate::{core::Core, shard::Owned};

/// How long a batch that is out counts as one of those that its server is busy with.
const COUNTS: Duration = Duration::from_millis(100);

impl Core {
    /// Forms the next batches. The shard after the one that was served last comes first, so that none is passed over.
    pub fn form_in_turn(&mut self, at: Monotonic) {
        let mut under_way = vec![0; self.shards.len()];
        for shard in &self.shards {
            under_way[shard.server] +=
                usize::from(shard.owned.as_ref().is_some_and(|owned| counts_until(owned, at).is_some()));
        }
        let (first, end) = (self.turn, self.shards.len());
        for place in (first..end).chain(0..first) {
            let server = self.shards[place].server;
            let busy = under_way[server] >= self.settings.batches_per_server;
            let held = busy && !self.shards[place].owned.as_ref().is_some_and(|owned| self.is_full(owned));
            self.shards[place].held = held;
            if !held && self.form(place, at) {
                under_way[server] += 1;
                self.turn = (place + 1) % end;
            }
        }
    }

    /// What waits fills a batch.
    fn is_full(&self, owned: &Owned) -> bool {
        owned.waiting_rows() >= self.settings.batch_rows || owned.admitted >= owned.batch_bytes
    }
}

/// Until when its server counts as busy with the batch of this shard that is under way.
pub(crate) fn counts_until(owned: &Owned, at: Monotonic) -> Option<Monotonic> {
    let until = owned.in_flight.as_ref()?.sent_at.plus(COUNTS);
    (at < until).then_some(until)
}
