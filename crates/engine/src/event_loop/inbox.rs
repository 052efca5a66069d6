//! Events that wait for the event loop. Calls are served in turn by tenant, so that nobody waits behind all
//! calls of another one.

use std::collections::VecDeque;

use forebay_types::Namespace;

use crate::{
    api::SettingsTable,
    messages::event::Event,
    shard::work::{Cost, FairQueue, Work},
};

/// About how many members of calls one turn handles: the tenants' turns are cut to that.
const MEMBERS_PER_TURN: usize = 1_000;

/// A call of a tenant.
struct Call {
    /// The tenant.
    namespace: Namespace,
    /// Its members.
    members: usize,
    /// The call.
    event: Event,
}

impl Work for Call {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        Cost { rows: self.members.max(1), bytes: 0 }
    }
}

/// Events that wait.
#[derive(Default)]
pub(super) struct Inbox {
    /// Events that are no tenant's call: reports of the shards' tasks, and calls of operators.
    reports: VecDeque<Event>,
    /// Calls, in turn by tenant.
    calls: FairQueue<Call>,
}

impl Inbox {
    /// An event waits.
    pub fn push(&mut self, event: Event) {
        match event.tenant() {
            Some((namespace, members)) => {
                let namespace = namespace.clone();
                self.calls.push(Call { namespace, members, event });
            }
            None => self.reports.push_back(event),
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.calls.is_empty()
    }

    /// The next report.
    pub fn next_report(&mut self) -> Option<Event> {
        self.reports.pop_front()
    }

    /// A turn begins to take calls.
    pub fn begin_calls(&mut self, set: &SettingsTable) {
        self.calls.begin_by_weight(MEMBERS_PER_TURN, set);
    }

    /// The next call.
    pub fn next_call(&mut self) -> Option<Event> {
        self.calls.pop(|_| true).map(|turn| turn.work.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::reply::Reply;
    use forebay_types::{ItemId, Receipt, Seq, ShardId};

    fn ack(namespace: &str, members: usize) -> Event {
        let item = ItemId { shard: ShardId(1), seq: Seq(1) };
        let acks = vec![Receipt { item, delivery: 1, nonce: 1 }; members];
        Event::Ack { namespace: namespace.into(), acks, notice: None, reply: Reply::channel().0 }
    }

    fn next(inbox: &mut Inbox) -> Option<String> {
        let event = inbox.next_call()?;
        event.tenant().map(|(namespace, _)| namespace.to_string())
    }

    #[test]
    fn a_call_does_not_wait_behind_all_calls_of_another_tenant() {
        let mut inbox = Inbox::default();
        (0..100).for_each(|_| inbox.push(ack("greedy", 1_000)));
        (0..3).for_each(|_| inbox.push(ack("modest", 1)));
        inbox.begin_calls(&SettingsTable::default());
        let order: Vec<String> = std::iter::from_fn(|| next(&mut inbox)).collect();
        assert!(order[..5].iter().filter(|tenant| *tenant == "modest").count() == 3, "{:?}", &order[..5]);
        assert_eq!((order.len(), inbox.is_empty()), (103, true));
    }

    #[test]
    fn reports_wait_apart_from_calls() {
        let mut inbox = Inbox::default();
        inbox.push(ack("tenant", 1));
        inbox.push(Event::Status(tokio::sync::oneshot::channel().0));
        assert!(inbox.next_report().is_some() && inbox.next_report().is_none());
        assert!(!inbox.is_empty() && inbox.next_call().is_some() && inbox.is_empty());
    }
}
