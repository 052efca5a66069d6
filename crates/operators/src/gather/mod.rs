//! Looks at the shards of all nodes. The node that took the call asks itself and each other node, and puts
//! the answers together.

mod changes;
mod consumers;
mod dead_groups;
mod explain;
mod history;
mod items;
mod operation_view;
mod operations;
mod recent;
mod see_to_operations;
mod topics;

use std::{collections::BTreeSet, sync::Arc};

use forebay_engine::{Charge, DesiredSettings, Engine, RETRY_AFTER, TenantBudget};
use forebay_membership::ClusterState;
use forebay_peers::{
    PeerLinks,
    history::History,
    looks::{Look, Part},
};
use forebay_types::{Namespace, Reason, Refusal, ShardId, TopicName};
use futures_util::future::join_all;
use tokio::sync::watch;

pub use explain::{NodeStanding, UnservedShard};
pub use items::ItemScan;
pub use operation_view::{LookExtent, OperationView, described};
pub use topics::TopicScan;

/// Bytes that the answers of all nodes may have for those who look through one node at one time. A tenant has
/// a quarter. The first look may have any number.
const LOOK_BYTES_MAX: usize = 64 << 20;
/// Looks of them that walk through all topics.
const WALKS_MAX: usize = 4;

/// Looks at the shards of all nodes.
#[derive(Clone)]
pub struct Gather {
    /// Knows the shards of this node.
    engine: Engine,
    /// The way to other nodes.
    links: Arc<PeerLinks>,
    /// Which nodes and shards there are.
    cluster: watch::Receiver<Arc<ClusterState>>,
    /// How figures of this node were.
    history: History,
    /// Bytes of looks that are under way.
    looks: Arc<TenantBudget>,
    /// Looks under way that walk through all topics.
    walks: Arc<TenantBudget>,
}

impl Gather {
    /// Looks through this engine, and through those of other nodes.
    pub fn new(
        engine: Engine,
        links: Arc<PeerLinks>,
        cluster: watch::Receiver<Arc<ClusterState>>,
        history: History,
    ) -> Self {
        let [looks, walks] = [LOOK_BYTES_MAX, WALKS_MAX].map(TenantBudget::new);
        Self { engine, links, cluster, history, looks, walks }
    }

    /// A place for a look, as long as it is held. Each node may answer with so many bytes. A node that has
    /// just started, and has not read yet which shards there are, could only say that nothing is there.
    pub fn admit(&self, namespace: &Namespace, bytes: usize) -> Result<Charge, Refusal> {
        if self.cluster().shards.is_empty() {
            let message = "this node knows of no shard yet; retry later";
            return Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER));
        }
        let nodes = 1 + self.others().len();
        self.looks.take(namespace, nodes * bytes).map_err(|_| full("calls that look at topics or items"))
    }

    /// A place for a walk through all topics.
    pub(crate) fn admit_walk(&self, namespace: &Namespace) -> Result<Charge, Refusal> {
        self.walks.take(namespace, 1).map_err(|_| full("calls that put topics in order by a figure"))
    }

    fn cluster(&self) -> Arc<ClusterState> {
        self.cluster.borrow().clone()
    }

    /// Where the other nodes that live answer.
    fn others(&self) -> Vec<String> {
        let cluster = self.cluster();
        let others = cluster.nodes.iter().filter(|node| node.live && node.name != cluster.own);
        others.map(|node| node.peer_address.clone()).collect()
    }

    /// Answers of the other nodes that live. All are asked at once. One that does not answer is left out.
    async fn ask_others<T, F>(&self, ask: impl Fn(Arc<PeerLinks>, String) -> F) -> Vec<T>
    where
        F: Future<Output = Option<T>>,
    {
        let asked = self.others().into_iter().map(|address| ask(self.links.clone(), address));
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Answers of this node and of the others that live to a look. All are asked at once.
    async fn look<L: Look>(&self, look: &L) -> Result<Vec<Part<L::Answer>>, Refusal> {
        let asked = self.ask_others(|links, address| async move { links.ask(&address, look).await });
        let (own, others) = tokio::join!(look.clone().look(&self.engine, &self.history), asked);
        Ok(std::iter::once(own?).chain(others).collect())
    }

    /// Policies of topics and namespaces: what is wanted of them and what is set for them, in the order of
    /// the names.
    pub async fn policies(
        &self,
        caller: Namespace,
        names: Vec<TopicName>,
    ) -> Result<Vec<DesiredSettings>, Refusal> {
        self.engine.policies(caller, names).await
    }

    /// Namespaces from one on, in order, of which something is wanted or for which something is set.
    pub async fn policy_namespaces(
        &self,
        caller: Namespace,
        from: Namespace,
        limit: usize,
    ) -> Result<Vec<Namespace>, Refusal> {
        self.engine.policy_namespaces(caller, from, limit).await
    }

    /// Whether there is such a shard.
    pub fn knows(&self, shard: ShardId) -> bool {
        self.incomplete(&BTreeSet::new()).contains(&shard.0)
    }

    /// The name of the last owner of a shard that is known. May be empty.
    pub fn owner(&self, shard: ShardId) -> String {
        let cluster = self.cluster();
        let home = cluster.shards.iter().find(|home| home.id == shard);
        home.and_then(|home| home.owner.as_ref()).map(ToString::to_string).unwrap_or_default()
    }

    /// The shards that are not among those that answered.
    pub fn incomplete(&self, answered: &BTreeSet<u32>) -> Vec<u32> {
        let cluster = self.cluster();
        let all: BTreeSet<u32> = cluster.shards.iter().map(|shard| shard.id.0).collect();
        all.difference(answered).copied().collect()
    }
}

fn full(what: &str) -> Refusal {
    let message = format!("too many {what} are under way on this node; retry later");
    Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
}
