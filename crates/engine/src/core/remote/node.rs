//! Another node whose items can be had.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_types::{Monotonic, Namespace, TopicName};

use crate::{
    api::{PeerLink, Subscription},
    messages::tenant_budget::{Charge, TenantBudget},
};

/// Fetches under way from one node; a tenant may have a quarter of them: that node has room for as many that
/// are for one item each.
const FETCHES_MAX: usize = 240;
/// Subscriptions of one message.
const SUBSCRIPTIONS_MAX: usize = 512;
/// How long a node that answers late is not asked, at first and at most.
const SUSPENDED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// A node.
#[derive(Debug)]
pub(crate) struct RemoteNode {
    /// Where it answers, `host:port`.
    pub address: String,
    /// The number of the link, as the node knows it.
    pub link: u64,
    /// It answered late, and is not asked before.
    suspended_until: Option<Monotonic>,
    /// For how long it was suspended last.
    suspended: Duration,
    /// Places for fetches.
    places: Arc<TenantBudget>,
    /// News for it, by topic.
    untold: BTreeMap<TopicName, Option<u32>>,
    /// The way to it.
    subscriptions: tokio::sync::mpsc::Sender<Vec<Subscription>>,
}

impl RemoteNode {
    /// Was linked just now.
    pub fn new(address: String, link: PeerLink) -> Self {
        let PeerLink { number: link, subscriptions } = link;
        Self {
            address,
            link,
            suspended_until: None,
            suspended: Duration::ZERO,
            places: TenantBudget::new(FETCHES_MAX),
            untold: BTreeMap::new(),
            subscriptions,
        }
    }

    /// Takes a place for a fetch. `None`: the tenant, or all together, have as many as may be.
    pub fn place(&self, namespace: &Namespace) -> Option<Charge> {
        self.places.take(namespace, 1).ok()
    }

    /// It is to be told this, once there is room on the way.
    pub fn tell(&mut self, subscription: Subscription) {
        self.untold.insert(subscription.name, subscription.wanted);
    }

    /// Sends as much as there is room for. Returns whether something is left.
    pub fn flush(&mut self) -> bool {
        while !self.untold.is_empty()
            && let Ok(room) = self.subscriptions.try_reserve()
        {
            let next = std::iter::from_fn(|| self.untold.pop_first());
            let next = next.take(SUBSCRIPTIONS_MAX).map(|(name, wanted)| Subscription { name, wanted });
            room.send(next.collect());
        }
        !self.untold.is_empty() && !self.subscriptions.is_closed()
    }

    /// It answered late, and is not asked before.
    pub fn suspended_until(&self) -> Option<Monotonic> {
        self.suspended_until
    }

    /// It answered late, and is not asked yet.
    pub fn is_suspended(&self, at: Monotonic) -> bool {
        self.suspended_until.is_some_and(|until| at < until)
    }

    /// It did not answer in time. The second time in a row it is left alone for twice as long.
    pub fn is_late(&mut self, at: Monotonic) {
        if self.is_suspended(at) {
            return;
        }
        let (first, most) = SUSPENDED;
        if self.suspended == first {
            tracing::warn!("the node at {} answers late: its items do not come here for now", self.address);
        }
        self.suspended = (self.suspended * 2).clamp(first, most);
        self.suspended_until = Some(at.plus(self.suspended));
    }

    /// It answered in time.
    pub fn answered(&mut self) {
        if self.suspended > SUSPENDED.0 {
            tracing::info!("the node at {} answers in time again", self.address);
        }
        (self.suspended, self.suspended_until) = (Duration::ZERO, None);
    }
}
