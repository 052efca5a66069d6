//! What `forebay status` sees: a few calls, however many topics there are.

use std::time::Duration;

use forebay_client::{
    Caller, Client, Code, Error, Node, Operation, OperationState, Shard, Timestamp, TopicFigures,
    TopicListQuery,
};
use forebay_types::{Clock as _, SystemClock};
use futures_util::future::{join, join_all};

use super::flags::Status;
use crate::failure::Failure;

/// Topics of each kind that are asked for.
pub const TOPICS_MAX: usize = 100;
/// Operations that are looked at twice.
const OPERATIONS_MAX: usize = 5;
/// An operation that is younger is left alone.
const BEGINNING: Duration = Duration::from_secs(60);

/// What was seen.
pub struct Picture {
    /// When, by this machine's clock.
    pub now: Timestamp,
    /// The addresses that are called without TLS.
    pub plain: Vec<String>,
    /// As whom.
    pub caller: Caller,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The shards. `None`: the caller may not see them.
    pub shards: Option<Vec<Shard>>,
    /// Topics with an old ready item, the oldest first.
    pub old: Vec<TopicFigures>,
    /// Topics with dead letters, those with the most first.
    pub dead: Vec<TopicFigures>,
    /// Shards that could not be asked for topics.
    pub incomplete: Vec<u32>,
    /// Operations in which nothing happens.
    pub stuck: Vec<Operation>,
    /// Commands name the namespace.
    pub all_namespaces: bool,
    /// What the caller may not see.
    pub not_seen: Vec<&'static str>,
}

impl Picture {
    /// How many nodes are live, or about to begin or end, of how many. `None`: not known.
    pub fn live_nodes(&self) -> Option<(usize, usize)> {
        // Who may not see the shards is told only how to reach nodes.
        self.shards.as_ref()?;
        let live = self.nodes.iter().filter(|node| node.state != "silent").count();
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
    let caller = client.who_am_i().await?;
    let mut not_seen = Vec::new();
    let nodes = client.nodes().await?;
    let shards = allowed(client.shards().await, "nodes and shards", &mut not_seen)?;
    let list = |filter: String, order: &str| {
        let query = TopicListQuery {
            all_namespaces: flags.all_namespaces,
            filter,
            order_by: order.to_owned(),
            page_size: TOPICS_MAX as u32,
            page_token: String::new(),
        };
        client.list_topics(query)
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

/// What the caller may see.
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
    let list = client.operations(TOPICS_MAX as u32, String::new()).await?;
    let is_suspect = |it: &Operation| {
        matches!(it.state, OperationState::Running | OperationState::Cancelling)
            && it.started_at.is_some_and(|at| now.since(at) > BEGINNING)
    };
    let suspects = list.operations.into_iter().filter(is_suspect).take(OPERATIONS_MAX);
    let looks = suspects.map(async |before| {
        let after = client.operation(&before.id, Some(before.version)).await?;
        Ok((after.version == before.version && !after.state.has_ended()).then_some(after))
    });
    let looked = join_all(looks).await.into_iter().collect::<Result<Vec<_>, Error>>()?;
    Ok(looked.into_iter().flatten().collect())
}
