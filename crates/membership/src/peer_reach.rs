//! Which other nodes answer this one. Each node reports whom it does not reach, and one that most others do
//! not reach gives its shards away: it lives by the catalog, but calls that are passed on to it get lost.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_engine::{TaskName, Tasks};
use forebay_types::{Clock, Monotonic, NodeName};
use futures_util::future::join_all;
use tokio::{sync::watch, task::AbortHandle};

use crate::{
    links::ClusterLinks,
    shared::{ClusterState, NodeState},
};

/// How often each node is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A node that has not answered for so long is out of reach. A short disturbance is not reported.
const UNREACHED_AFTER: Duration = Duration::from_secs(3);

/// The answers of the other nodes, as they come.
pub(crate) struct PeerReach {
    /// As of the last round of questions.
    seen: watch::Receiver<PeerAnswers>,
    /// Asks them, until it is aborted.
    task: AbortHandle,
}

/// Which other nodes answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PeerAnswers {
    /// Nodes that live by the catalog and have not answered for a while.
    unreached: Vec<NodeName>,
    /// Nodes that answered the last question, whether they live by the catalog or not.
    answering: Vec<NodeName>,
}

impl PeerReach {
    /// Asks the other nodes of the cluster from now on.
    pub fn start(
        tasks: &dyn Tasks,
        links: Arc<dyn ClusterLinks>,
        cluster: watch::Receiver<Arc<ClusterState>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (sender, seen) = watch::channel(PeerAnswers::default());
        let asks = async move {
            let mut answers = Answers::default();
            let mut tick = tokio::time::interval(ASK_EVERY);
            loop {
                tick.tick().await;
                let others = others(&cluster.borrow());
                let asked = others.iter().map(|other| links.answers(&other.address));
                let answered = join_all(asked.collect::<Vec<_>>()).await;
                let seen = answers.observe(others.into_iter().zip(answered), clock.monotonic());
                sender.send_if_modified(|told| {
                    *told != seen && {
                        log(&told.unreached, &seen.unreached);
                        *told = seen;
                        true
                    }
                });
            }
        };
        let task = tasks.start(TaskName::PeerReach, Box::pin(asks));
        Self { seen, task }
    }

    /// The nodes that have not answered for a while.
    pub fn unreached(&self) -> Vec<NodeName> {
        self.seen.borrow().unreached.clone()
    }

    /// Whether a node has not answered for a while.
    pub(crate) fn is_unreached(&self, name: &NodeName) -> bool {
        self.seen.borrow().unreached.contains(name)
    }

    /// Whether a node answered the last question.
    pub(crate) fn is_answering(&self, name: &NodeName) -> bool {
        self.seen.borrow().answering.contains(name)
    }
}

impl Drop for PeerReach {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A node that is asked.
struct Other {
    name: NodeName,
    /// Where it answers.
    address: String,
    /// It lives by the catalog.
    live: bool,
}

/// The other nodes that live by the catalog, and those that own shards: one that is cut off from the catalog
/// alone is not dead.
fn others(cluster: &ClusterState) -> Vec<Other> {
    let others = cluster.nodes.iter().filter(|node| node.name != cluster.own);
    let asked = others.filter(|node| node.live || node.shards > 0);
    let other = |node: &NodeState| {
        Some(Other { name: node.name.parse().ok()?, address: node.peer_address.clone(), live: node.live })
    };
    asked.filter_map(other).collect()
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
    /// Takes in who was asked, and who answered.
    fn observe(&mut self, asked: impl Iterator<Item = (Other, bool)>, now: Monotonic) -> PeerAnswers {
        let mut seen = PeerAnswers::default();
        let mut last_answers = BTreeMap::new();
        for (other, answers) in asked {
            // A node that is asked for the first time has the time to begin.
            let last = self.0.get(&other.name).copied().filter(|_| !answers).unwrap_or(now);
            if other.live && now.since(last) >= UNREACHED_AFTER {
                seen.unreached.push(other.name.clone());
            }
            if answers {
                seen.answering.push(other.name.clone());
            }
            last_answers.insert(other.name, last);
        }
        self.0 = last_answers;
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_reached_until_it_has_not_answered_for_a_while() {
        let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
        let name = |name: &str| name.parse::<NodeName>().unwrap();
        let other = |name: &str, live| Other { name: name.parse().unwrap(), address: String::new(), live };
        let asked = |a, b| [(other("a", true), a), (other("b", true), b)].into_iter();
        let mut answers = Answers::default();
        assert_eq!(answers.observe(asked(true, false), at(0)).unreached, []);
        assert_eq!(answers.observe(asked(true, false), at(2_999)).unreached, []);
        assert_eq!(answers.observe(asked(true, false), at(3_000)).unreached, [name("b")]);
        assert_eq!(answers.observe(asked(false, true), at(4_000)).unreached, []);
        // A node that is not asked any more is forgotten.
        assert_eq!(answers.observe([(other("b", true), true)].into_iter(), at(9_000)).unreached, []);
        assert_eq!(answers.observe(asked(false, true), at(9_500)).unreached, []);
        // One that is dead by the catalog is not reported, and may answer.
        let seen =
            answers.observe([(other("a", false), false), (other("b", false), true)].into_iter(), at(20_000));
        assert_eq!(seen, PeerAnswers { unreached: vec![], answering: vec![name("b")] });
    }
}
