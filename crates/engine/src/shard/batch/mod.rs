//! Builds a shard's next batch, and applies or undoes it once it is resolved.
//!
//! Building changes nothing that the shard is known to hold: what the batch will change is noted in
//! [`InFlight`](super::commit::in_flight::InFlight). No two things in one batch touch one item; the second
//! one waits.

pub(crate) mod apply;
mod builder;
mod change;
mod enqueue;
mod handoff;
mod lease;
mod operation;
mod order;
mod page_share;
mod settle;
mod shares;
mod sweep;
mod sweep_due;
mod sweep_expiry;
mod sweep_retention;
pub(crate) mod undo;
mod update;

use std::collections::BTreeSet;

use rand::rngs::StdRng;

pub(crate) use self::builder::BuiltBatch;
use self::{
    builder::BatchBuilder,
    shares::{Class, Shares},
};
use super::{OwnedShard, work::WaitingPolls};
use crate::{api::SettingsTable, clock::Moment};

/// The context of building, beside the shard.
pub(crate) struct BuildContext<'a> {
    /// Node time.
    pub moment: Moment,
    /// Random numbers for nonces.
    pub rng: &'a mut StdRng,
    /// How many topics a namespace has on this node.
    pub topics_of: &'a dyn Fn(&str) -> usize,
    /// How many more topics the node takes.
    pub topics_left: usize,
    /// Polls to which new items may be handed directly.
    pub waiting: WaitingPolls,
    /// The settings of topics and namespaces.
    pub set: &'a SettingsTable,
}

impl OwnedShard {
    /// Builds the next batch, if anything waits: each class of work has its share, and inside a class the
    /// tenants take turns. No batch is in flight.
    pub fn build(&mut self, context: BuildContext<'_>) -> BuiltBatch {
        debug_assert!(self.commit.in_flight.is_none(), "one batch is in flight at a time");
        let BuildContext { moment, rng, topics_of, topics_left, waiting, set } = context;
        let moment = self.tenure.time.moment(moment);
        self.note_company(moment);
        self.note_numbers();
        let Some(allowed) = self.commit.disk.allowed(moment.at) else {
            self.commit.disk.set_barren(moment.at);
            return BuiltBatch::nothing();
        };
        let mut builder = BatchBuilder::new(self, moment, allowed, rng, topics_left, set);
        if std::mem::take(&mut builder.shard.commit.probe) {
            return builder.finish_probe();
        }
        if builder.record_topology() {
            return builder.finish(BTreeSet::new());
        }
        let (before, shares) = (builder.spent, Shares::of(&mut builder));
        // A class may end with work that costs more than it has left. That is not taken from the next one.
        let most = |builder: &BatchBuilder<'_>, class| {
            (before + shares.up_to(class)).max(builder.spent + shares.own(class))
        };
        order::add_orders(&mut builder);
        let limit = most(&builder, Class::Settlement);
        settle::add_requests(&mut builder, limit);
        let limit = most(&builder, Class::Timeout);
        settle::add_timeouts(&mut builder, limit);
        let limit = most(&builder, Class::Restore);
        lease::add_restores(&mut builder, limit);
        let limit = most(&builder, Class::Lease);
        lease::add_leases(&mut builder, limit);
        let limit = most(&builder, Class::Enqueue);
        enqueue::add_enqueues(&mut builder, limit, shares.long_call, topics_of);
        // Settlements get the room that leases did not use, whose acks wait.
        settle::add_requests(&mut builder, before + shares.up_to(Class::Enqueue));
        sweep::add_page(&mut builder);
        change::add_changes(&mut builder, shares.changes());
        operation::add_page(&mut builder, shares.operation(), topics_of);
        let handed_off = handoff::add_handoffs(&mut builder, waiting);
        lease::compact(&mut builder);
        sweep::drop_idle_topics(&mut builder);
        let built = builder.finish(handed_off);
        if built.batch.is_none() {
            self.commit.disk.set_barren(moment.at);
        }
        self.debug_check();
        built
    }
}
