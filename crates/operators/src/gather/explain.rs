//! How a topic stands at all nodes.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::{BehindCall, MissingSource, Standing, TopicStanding};
use forebay_types::{Refusal, ShardId, TopicName};

use super::Gather;

/// How a topic stands at one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStanding {
    /// The node's name. Empty: it is alone and has none.
    pub node: String,
    /// By shard.
    pub shards: Vec<Standing>,
    /// Dequeue calls that wait for the topic at the node.
    pub polls: u64,
    /// Nodes whose items do not come to them, by name, and why.
    pub missing_sources: BTreeMap<String, String>,
}

/// A shard that no node has told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnservedShard {
    /// The shard.
    pub shard: ShardId,
    /// The last owner that is known. May be empty.
    pub owner: String,
}

impl Gather {
    /// How a topic stands at the nodes that answer, and shards that none of them serves.
    pub async fn standing(
        &self,
        name: &TopicName,
    ) -> Result<(Vec<NodeStanding>, Vec<UnservedShard>), Refusal> {
        let asked = self.ask_others(|links, address| async move {
            let standing = links.standing(&address, name).await?;
            Some((address, standing))
        });
        let (own, others) = tokio::join!(self.engine.standing(name.clone()), asked);
        let cluster = self.cluster();
        let named = |address: &str| {
            let node = cluster.nodes.iter().find(|node| node.peer_address == address);
            node.map_or_else(|| address.to_owned(), |node| node.name.clone())
        };
        let missing = |source: MissingSource| (named(&source.address), source.why.into_owned());
        let at_node = |node: String, standing: TopicStanding| {
            let TopicStanding { shards, polls, missing_sources } = standing;
            let missing_sources = missing_sources.into_iter().map(missing).collect();
            NodeStanding { node, shards, polls, missing_sources }
        };
        let mut all = vec![at_node(cluster.own.clone(), own?)];
        all.extend(others.into_iter().map(|(address, standing)| at_node(named(&address), standing)));
        let answered: BTreeSet<u32> = all.iter().flat_map(|it| &it.shards).map(|it| it.shard.0).collect();
        let owner = |id: u32| {
            let home = cluster.shards.iter().find(|home| home.id.0 == id)?;
            home.owner.as_ref().map(ToString::to_string)
        };
        let missing = self.incomplete(&answered);
        let unserved = |id| UnservedShard { shard: ShardId(id), owner: owner(id).unwrap_or_default() };
        Ok((all, missing.into_iter().map(unserved).collect()))
    }

    /// How many items the node delivers before an item that owns its shard. `None`: that is not known.
    pub async fn count_before(&self, call: &BehindCall, node: &str) -> Result<Option<u64>, Refusal> {
        let cluster = self.cluster();
        if cluster.own == node {
            return self.engine.count_before(call).await;
        }
        match cluster.nodes.iter().find(|other| other.name == node) {
            Some(other) => Ok(self.links.count_before(&other.peer_address, call).await),
            None => Ok(None),
        }
    }
}
