//! Another node whose items can be had.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_types::{Monotonic, Namespace};

use crate::{
    api::{PeerLink, Subscription},
    core::news::NewsQueue,
    messages::tenant_budget::{Charge, TenantBudget},
};

/// Fetches under way from one node; a tenant may have a quarter of them: that node has room for as many.
const FETCHES_MAX: usize = 240;
/// How long a node that answers late is not asked, at first and at most.
const SUSPENDED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// A node.
#[derive(Debug)]
pub(crate) struct RemoteNode {
    /// Where it answers, `host:port`.
    pub address: String,
    /// The number of the link, as the node knows it.
    pub link: u64,
    /// Tenants whose fetches it answered late. The fetches of one may be many, and wait for each other there.
    late: BTreeMap<Namespace, Suspension>,
    /// The log has that it answers late.
    is_said: bool,
    /// Places for fetches.
    places: Arc<TenantBudget>,
    /// News for it of the polls that wait here.
    pub news: NewsQueue<Subscription>,
}

/// A node is not asked for the items of a tenant.
#[derive(Debug)]
struct Suspension {
    /// It is not asked before.
    until: Monotonic,
    /// For how long it was suspended last.
    span: Duration,
}

impl RemoteNode {
    /// Was linked just now.
    pub fn new(address: String, link: PeerLink) -> Self {
        let PeerLink { number: link, subscriptions } = link;
        Self {
            address,
            link,
            late: BTreeMap::new(),
            is_said: false,
            places: TenantBudget::new(FETCHES_MAX),
            news: NewsQueue::new(subscriptions),
        }
    }

    /// Takes a place for a fetch. `None`: the tenant, or all together, have as many as may be.
    pub fn place(&self, namespace: &Namespace) -> Option<Charge> {
        self.places.take(namespace, 1).ok()
    }

    /// It is to be told this, once there is room on the way.
    pub fn tell(&mut self, subscription: Subscription) {
        self.news.insert(subscription.name.clone(), subscription);
    }

    /// Until when it is not asked for items of a tenant, because it answered late. It may be over.
    pub fn suspended_until(&self, namespace: &Namespace) -> Option<Monotonic> {
        self.late.get(namespace).map(|suspension| suspension.until)
    }

    /// It answered late, and is not asked for items of a tenant yet.
    pub fn is_suspended(&self, namespace: &Namespace, at: Monotonic) -> bool {
        self.suspended_until(namespace).is_some_and(|until| at < until)
    }

    /// It is not asked for items of some tenant.
    pub fn is_late(&self, at: Monotonic) -> bool {
        self.late.values().any(|suspension| at < suspension.until)
    }

    /// It did not answer a tenant in time. The second time in a row it is left alone for twice as long.
    pub fn suspend(&mut self, namespace: &Namespace, at: Monotonic) {
        if self.is_suspended(namespace, at) {
            return;
        }
        let (first, most) = SUSPENDED;
        // Tenants that have not asked since count as new. All are looked at as often as their number doubles.
        let is_remembered = |suspension: &Suspension| at < suspension.until.plus(most);
        if self.late.len().is_power_of_two() {
            self.late.retain(|_, suspension| is_remembered(suspension));
        }
        let before = self.late.get(namespace).filter(|suspension| is_remembered(suspension));
        let before = before.map_or(Duration::ZERO, |suspension| suspension.span);
        if before >= first && !std::mem::replace(&mut self.is_said, true) {
            tracing::warn!("the node at {} answers late: its items do not come here for now", self.address);
        }
        let span = (before * 2).clamp(first, most);
        self.late.insert(namespace.clone(), Suspension { until: at.plus(span), span });
    }

    /// It answered a tenant in time.
    pub fn answered(&mut self, namespace: &Namespace) {
        self.late.remove(namespace);
        if self.late.is_empty() && std::mem::take(&mut self.is_said) {
            tracing::info!("the node at {} answers in time again", self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_late_for_one_tenant_is_asked_for_the_others() {
        let (subscriptions, _sent) = tokio::sync::mpsc::channel(1);
        let mut node = RemoteNode::new("a:1".to_owned(), PeerLink { number: 1, subscriptions });
        let at = |ms| Monotonic::from_start(Duration::from_millis(ms));
        let [one, other] = ["one", "other"].map(Namespace::from);
        node.suspend(&one, at(0));
        assert!(node.is_suspended(&one, at(999)) && !node.is_suspended(&other, at(999)));
        assert!(node.is_late(at(999)) && !node.is_late(at(1_000)));
        // It is late again, for twice as long, and at most for five seconds.
        node.suspend(&one, at(1_000));
        node.suspend(&one, at(1_001));
        assert_eq!(node.suspended_until(&one), Some(at(3_000)));
        node.suspend(&one, at(3_000));
        node.suspend(&one, at(7_000));
        assert_eq!(node.suspended_until(&one), Some(at(12_000)));
        // An answer to another tenant says nothing of this one.
        node.answered(&other);
        assert!(node.is_late(at(11_999)) && node.is_said);
        node.answered(&one);
        assert!(!node.is_late(at(11_999)) && !node.is_said);
        // Tenants that have not asked for long are forgotten.
        node.suspend(&one, at(20_000));
        node.suspend(&other, at(26_000));
        assert_eq!(node.late.len(), 1);
        node.suspend(&other, at(99_000));
        assert_eq!(node.suspended_until(&other), Some(at(100_000)), "as if for the first time");
    }
}
