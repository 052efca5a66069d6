//! Picture of the cluster for `forebay status`: a few calls, however many topics there are.

use std::time::Duration;

use forebay_client::{
    Client, Code, Error, Timestamp,
    v1::{
        ListOperationsRequest, ListTopicsRequest, Node, NodeState, Operation, OperationState, Shard, Topic,
        WhoAmIRequest, WhoAmIResponse,
    },
};
use forebay_proto::time::from_timestamp;
use forebay_types::{ALL_NAMESPACES, Clock as _, SystemClock};
use futures_util::future::{join, join_all};

use super::flags::Status;
use crate::{failure::Failure, verbs::follow};

/// Topics of each kind that are asked for.
pub const TOPICS_MAX: usize = 100;
/// Operations that are looked at twice.
const OPERATIONS_MAX: usize = 5;
/// An operation that is younger is left alone.
const BEGINNING: Duration = Duration::from_secs(60);

/// The cluster as it was seen.
pub struct Picture {
    /// When, by this machine's clock.
    pub now: Timestamp,
    /// The addresses that are called without TLS.
    pub plain: Vec<String>,
    /// As whom.
    pub caller: WhoAmIResponse,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The shards. `None`: the caller may not see them.
    pub shards: Option<Vec<Shard>>,
    /// Topics with an old ready item, the oldest first.
    pub old: Vec<Topic>,
    /// Topics with dead letters, those with the most first.
    pub dead: Vec<Topic>,
    /// Shards that could not be asked for topics.
    pub incomplete: Vec<u32>,
    /// Operations in which nothing happens.
    pub stuck: Vec<Operation>,
    /// Commands name the namespace.
    pub all_namespaces: bool,
    /// Parts that the caller may not see.
    pub not_seen: Vec<&'static str>,
}

impl Picture {
    /// How many nodes are live, or about to begin or end, of how many. `None`: not known.
    pub fn live_nodes(&self) -> Option<(usize, usize)> {
        // A caller that may not see the shards is told only how to reach nodes.
        self.shards.as_ref()?;
        let live = self.nodes.iter().filter(|node| node.state() != NodeState::Silent).count();
        Some((live, self.nodes.len()))
    }

    /// How many shards have an owner, of how many. `None`: not known.
    pub fn served(&self) -> Option<(usize, usize)> {
        let shards = self.shards.as_ref()?;
        Some((shards.iter().filter(|shard| !shard.owner.is_empty()).count(), shards.len()))
    }
}

/// Looks.
pub async fn take(client: &Client, flags: &Status) -> Result<Picture, Failure> {
    let caller = client.ask(WhoAmIRequest {}).await?;
    let mut not_seen = Vec::new();
    let nodes = client.nodes().await?;
    let shards = allowed(client.shards().await, "nodes and shards", &mut not_seen)?;
    let list = |filter: String, order: &str| {
        let request = ListTopicsRequest {
            namespace: if flags.all_namespaces { ALL_NAMESPACES } else { client.namespace() }.to_owned(),
            filter,
            order_by: order.to_owned(),
            page_size: TOPICS_MAX as u32,
            ..Default::default()
        };
        client.ask(request)
    };
    let (old, dead) = join(
        list(format!("ready_age > {}s", flags.age.as_secs()), "-oldest"),
        list(format!("dead > {}", flags.dead_letters), "-dead"),
    )
    .await;
    let old = allowed(old, "topics", &mut not_seen)?;
    let dead = if old.is_some() { Some(dead?) } else { None };
    let mut lists =
        [old, dead].map(|list| list.map(|it| (it.topics, it.incomplete_shards)).unwrap_or_default());
    let mut incomplete: Vec<u32> = lists.iter_mut().flat_map(|list| std::mem::take(&mut list.1)).collect();
    incomplete.sort_unstable();
    incomplete.dedup();
    let [(old, _), (dead, _)] = lists;
    let now = SystemClock::default().wall();
    let stuck = allowed(stuck(client, now).await, "operations", &mut not_seen)?.unwrap_or_default();
    let config = flags.connection.servers.config()?;
    let tls = config.tls != Default::default();
    let is_plain = |addr: &String| !addr.starts_with("https://") && (!tls || addr.starts_with("http://"));
    let plain = config.endpoints.into_iter().filter(is_plain).collect();
    let all_namespaces = flags.all_namespaces;
    Ok(Picture { now, plain, caller, nodes, shards, old, dead, incomplete, stuck, all_namespaces, not_seen })
}

/// Returns the answer if the caller may see it.
fn allowed<T>(
    answer: Result<T, Error>,
    what: &'static str,
    not_seen: &mut Vec<&'static str>,
) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code() == Code::PermissionDenied => {
            not_seen.push(what);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Operations in which nothing happens for a few seconds, though they are not waiting for their turn.
async fn stuck(client: &Client, now: Timestamp) -> Result<Vec<Operation>, Error> {
    let (namespace, page_size) = (client.namespace().to_owned(), TOPICS_MAX as u32);
    let request = ListOperationsRequest { namespace, page_size, ..Default::default() };
    let list = client.ask(request).await?;
    let is_suspect = |it: &Operation| {
        matches!(it.state(), OperationState::Running | OperationState::Cancelling)
            && it.started_at.is_some_and(|at| now.since(from_timestamp(at)) > BEGINNING)
    };
    let suspects = list.operations.into_iter().filter(is_suspect).take(OPERATIONS_MAX);
    let looks = suspects.map(async |before| {
        let after = follow::look(client, &before.id, Some(before.version)).await?;
        Ok((after.version == before.version && !follow::has_ended(&after)).then_some(after))
    });
    let looked = join_all(looks).await.into_iter().collect::<Result<Vec<_>, Error>>()?;
    Ok(looked.into_iter().flatten().collect())
}
