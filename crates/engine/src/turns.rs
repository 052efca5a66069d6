//! Which shards may form a batch now. However short a batch is, it costs its server the statements around it, a fence and a
//! COMMIT, so the shards of one server take turns with small ones: what waits meanwhile makes the next one longer.
//!
//! A full batch gains nothing by waiting and goes at once; so does one of a server that has few under way. How many are few
//! depends on what waits: a batch of a handful of rows is mostly overhead, and waits for any other, as long as every shard
//! still has its turn soon. Nobody waits for a batch that is out for long: it may be stuck with its shard alone.

use std::time::Duration;

use forebay_types::Monotonic;

use crate::{core::Core, shard::Owned};

/// How long a batch that is out counts as one of those that its server is busy with.
const COUNTS: Duration = Duration::from_millis(100);
/// A batch of fewer rows costs its server less than the statements around it do.
const SHORT: usize = 64;
/// Within this time each shard of a server has its turn, if its server can do that.
const ROUND: Duration = Duration::from_millis(5);

/// What a server's shards have to do.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    /// Batches under way.
    under_way: usize,
    /// How long it would take if each shard that has something to do had its turn, one after the other.
    round: Duration,
}

impl Core {
    /// Forms the next batches. The shard after the one that was served last comes first, so that none is passed over.
    pub fn form_in_turn(&mut self, at: Monotonic) {
        let mut loads = vec![Load::default(); self.shards.len()];
        for shard in &self.shards {
            let Some(owned) = &shard.owned else { continue };
            let load = &mut loads[shard.server];
            load.under_way += usize::from(counts_until(owned, at).is_some());
            if owned.in_flight.is_some() || owned.waiting_rows() > 0 {
                load.round += owned.commit_took;
            }
        }
        let (first, end) = (self.turn, self.shards.len());
        for place in (first..end).chain(0..first) {
            let shard = &self.shards[place];
            let server = shard.server;
            let held = shard.owned.as_ref().is_some_and(|owned| self.must_wait(owned, loads[server]));
            self.shards[place].held = held;
            if !held && self.form(place, at) {
                loads[server].under_way += 1;
                self.turn = (place + 1) % end;
            }
        }
    }

    /// Its server has enough to do, and what waits does not fill a batch.
    fn must_wait(&self, owned: &Owned, server: Load) -> bool {
        if server.under_way == 0 {
            return false;
        }
        let rows = owned.waiting_rows();
        let most = self.settings.batches_per_server;
        let at_once = match rows < SHORT {
            true => most.min(1 + (server.round.as_micros() / ROUND.as_micros()) as usize),
            false => most,
        };
        let full = rows >= self.settings.batch_rows || owned.admitted >= owned.batch_bytes;
        server.under_way >= at_once && !full
    }
}

/// Until when its server counts as busy with the batch of this shard that is under way.
pub(crate) fn counts_until(owned: &Owned, at: Monotonic) -> Option<Monotonic> {
    let until = owned.in_flight.as_ref()?.sent_at.plus(COUNTS);
    (at < until).then_some(until)
}
