//! Which other nodes answer this one. Each node reports whom it does not reach, and one that most others do
//! not reach gives its shards away: it lives by the catalog, but calls that are passed on to it get lost.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_engine::{TaskName, Tasks};
use forebay_types::{Clock, Monotonic, NodeName};
use futures_util::future::join_all;
use tokio::{sync::watch, task::AbortHandle};

use crate::{links::ClusterLinks, shared::ClusterState};

/// How often each node is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A node that has not answered for so long is out of reach. A short disturbance is not reported.
const UNREACHED_AFTER: Duration = Duration::from_secs(3);

/// The nodes that this one does not reach, as they are found.
pub(crate) struct PeerReach {
    /// By name.
    unreached: watch::Receiver<Vec<NodeName>>,
    /// Asks them, until it is aborted.
    task: AbortHandle,
}

impl PeerReach {
    /// Asks the other nodes of the cluster from now on.
    pub fn start(
        tasks: &dyn Tasks,
        links: Arc<dyn ClusterLinks>,
        cluster: watch::Receiver<Arc<ClusterState>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (sender, unreached) = watch::channel(Vec::new());
        let asks = async move {
            let mut answers = Answers::default();
            let mut tick = tokio::time::interval(ASK_EVERY);
            loop {
                tick.tick().await;
                let others = others(&cluster.borrow());
                let asked = others.iter().map(|(_, address)| links.answers(address));
                let answered = join_all(asked.collect::<Vec<_>>()).await;
                let answered = others.into_iter().map(|(name, _)| name).zip(answered);
                let unreached = answers.observe(answered, clock.monotonic());
                sender.send_if_modified(|told| {
                    *told != unreached && {
                        log(told, &unreached);
                        *told = unreached;
                        true
                    }
                });
            }
        };
        let task = tasks.start(TaskName::PeerReach, Box::pin(asks));
        Self { unreached, task }
    }

    /// The nodes that have not answered for a while.
    pub fn unreached(&self) -> Vec<NodeName> {
        self.unreached.borrow().clone()
    }
}

impl Drop for PeerReach {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The other nodes that live by the catalog, and where they answer.
fn others(cluster: &ClusterState) -> Vec<(NodeName, String)> {
    let others = cluster.nodes.iter().filter(|node| node.live && node.name != cluster.own);
    others.filter_map(|node| Some((node.name.parse().ok()?, node.peer_address.clone()))).collect()
}

fn log(before: &[NodeName], now: &[NodeName]) {
    for name in now.iter().filter(|name| !before.contains(name)) {
        tracing::warn!("node {name} lives and does not answer this node");
    }
    for name in before.iter().filter(|name| !now.contains(name)) {
        tracing::info!("node {name} answers this node again, or is gone");
    }
}

/// When each node answered last.
#[derive(Debug, Default)]
struct Answers(BTreeMap<NodeName, Monotonic>);

impl Answers {
    /// Takes in who was asked, and who answered. Returns the nodes that have not for a while.
    fn observe(&mut self, asked: impl Iterator<Item = (NodeName, bool)>, now: Monotonic) -> Vec<NodeName> {
        let answered = |(name, answers): (NodeName, bool)| {
            // A node that is asked for the first time has the time to begin.
            let last = self.0.get(&name).copied().filter(|_| !answers).unwrap_or(now);
            (name, last)
        };
        self.0 = asked.map(answered).collect();
        let unreached = self.0.iter().filter(|(_, last)| now.since(**last) >= UNREACHED_AFTER);
        unreached.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_reached_until_it_has_not_answered_for_a_while() {
        let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
        let name = |name: &str| name.parse::<NodeName>().unwrap();
        let asked = |a, b| [(name("a"), a), (name("b"), b)].into_iter();
        let mut answers = Answers::default();
        assert_eq!(answers.observe(asked(true, false), at(0)), []);
        assert_eq!(answers.observe(asked(true, false), at(2_999)), []);
        assert_eq!(answers.observe(asked(true, false), at(3_000)), [name("b")]);
        assert_eq!(answers.observe(asked(false, true), at(4_000)), []);
        // Who is not asked any more is forgotten.
        assert_eq!(answers.observe([(name("b"), true)].into_iter(), at(9_000)), []);
        assert_eq!(answers.observe(asked(false, true), at(9_500)), []);
    }
}
