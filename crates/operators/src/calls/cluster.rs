//! ListNodes and ListShards.

use std::sync::Arc;

use forebay_access::Scope;
use forebay_edge::rpc::page_token::not_of_this_list;
use forebay_engine::{BreakerPhase, ShardState as EngineState, ShardStatus};
use forebay_membership::{ClusterState, NodeState as Member, Presence, ShardHome};
use forebay_proto::{
    time::to_timestamp,
    v1::{self, NodeState, ShardState},
};
use forebay_types::{Refusal, Timestamp};

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
};
use crate::cluster::HoldUp;

impl Admin {
    pub(super) fn cluster(&self) -> Arc<ClusterState> {
        self.cluster.borrow().clone()
    }

    pub(super) async fn own_shards(&self) -> Vec<ShardStatus> {
        self.status.get().await.map(|status| status.shards.clone()).unwrap_or_default()
    }

    /// The nodes of the cluster, as those see them who may see all.
    pub(super) async fn nodes(&self, cluster: &ClusterState) -> Vec<v1::Node> {
        // The engine knows which programs give items to this node.
        let status = self.status.get().await;
        let givers = status.as_ref().map_or(&[][..], |status| &status.givers);
        cluster.nodes.iter().map(|it| node(it, it.name == cluster.own, givers)).collect()
    }
}

/// Serves ListNodes. Who does not see all learns how to reach the nodes.
pub async fn nodes(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListNodesRequest,
) -> Result<v1::ListNodesResponse, Refusal> {
    let v1::ListNodesRequest { page_size, page_token } = request;
    let cluster = admin.cluster();
    let nodes = admin.nodes(&cluster).await;
    let (nodes, next_page_token) =
        page(nodes, page_size, |node| node.name > page_token, |it| it.name.clone());
    let sees_all = ctx.caller.may_everywhere(Scope::Observe);
    let nodes = if sees_all { nodes } else { nodes.into_iter().map(for_clients).collect() };
    Ok(v1::ListNodesResponse { nodes, next_page_token })
}

/// Serves ListShards.
pub async fn shards(
    admin: &Admin,
    _: &Ctx,
    request: v1::ListShardsRequest,
) -> Result<v1::ListShardsResponse, Refusal> {
    let v1::ListShardsRequest { page_size, page_token } = request;
    let after = match page_token.as_str() {
        "" => 0,
        token => token.parse::<u32>().map_err(|_| not_of_this_list())?,
    };
    let own = admin.own_shards().await;
    let cluster = admin.cluster();
    let home = |id: u32| cluster.shards.iter().find(|home| home.id.0 == id);
    let shards = own.iter().map(|status| shard(status, home(status.id))).collect();
    let (shards, next_page_token) =
        page(shards, page_size, |shard| shard.id > after, |shard| shard.id.to_string());
    Ok(v1::ListShardsResponse { shards, next_page_token })
}

/// A page of a list in order, and the token for the next one.
fn page<T>(
    rows: Vec<T>,
    size: u32,
    is_after: impl Fn(&T) -> bool,
    token: impl Fn(&T) -> String,
) -> (Vec<T>, String) {
    let size = page_rows(size);
    let mut rows: Vec<T> = rows.into_iter().filter(is_after).collect();
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(token).unwrap_or_default();
    (rows, next)
}

/// A node. `givers`: where other nodes answer whose programs give items to this one.
fn node(node: &Member, is_self: bool, givers: &[String]) -> v1::Node {
    let state = match node.presence() {
        Presence::Live => NodeState::Live,
        Presence::Joining => NodeState::Joining,
        Presence::Draining => NodeState::Draining,
        Presence::Silent => NodeState::Silent,
    };
    v1::Node {
        name: node.name.clone(),
        clients_address: node.clients_address.clone(),
        peer_address: node.peer_address.clone(),
        http_address: node.http_address.clone(),
        release: node.release.clone(),
        state: state.into(),
        shards: u32::try_from(node.shards).unwrap_or(u32::MAX),
        draining: node.draining,
        started_at: node.started_micros.map(Timestamp::from_micros).map(to_timestamp),
        self_: is_self,
        delivers_all: is_self || givers.contains(&node.peer_address),
    }
}

/// Keeps of a node what every client needs to reach it.
fn for_clients(node: v1::Node) -> v1::Node {
    let v1::Node { name, clients_address, state, draining, self_, delivers_all, .. } = node;
    v1::Node { name, clients_address, state, draining, self_, delivers_all, ..v1::Node::default() }
}

/// A shard. What is stored in it is known to its owner alone.
pub(super) fn shard(status: &ShardStatus, home: Option<&ShardHome>) -> v1::Shard {
    let owned = status.state == EngineState::Owned;
    let name = |name: Option<String>| name.unwrap_or_default();
    let state = match home.map(|home| home.state.as_str()) {
        Some("draining") => ShardState::Draining,
        Some("offline") => ShardState::Offline,
        _ => ShardState::Active,
    };
    let hold_up = match home.and_then(|home| home.owner.as_ref()) {
        _ if state != ShardState::Draining => String::new(),
        _ if owned => hold_up(status).to_string(),
        Some(owner) => format!("{owner} owns it, and knows"),
        None => String::new(),
    };
    v1::Shard {
        id: status.id,
        server: status.server.clone(),
        state: state.into(),
        owner: name(home.and_then(|home| home.owner.as_ref()).map(ToString::to_string)),
        wished_owner: name(home.and_then(|home| home.home.as_ref()).map(ToString::to_string)),
        pinned: home.is_some_and(|home| home.pinned),
        epoch: status.epoch,
        since: status.owned_since_micros.map(Timestamp::from_micros).map(to_timestamp),
        trouble: if suffers(status) { status.last_error.clone() } else { status.losses.join("; ") },
        items: owned.then(|| status.ready + status.leased + status.scheduled),
        hold_up,
    }
}

/// Something is wrong with a shard now, as far as this node is concerned. An error that is over is not.
fn suffers(status: &ShardStatus) -> bool {
    match status.state {
        EngineState::Owned => status.silent_since_micros.is_some() || status.breaker != BreakerPhase::Closed,
        state => state == EngineState::Unreachable,
    }
}

/// Reasons that hold the drain of a shard up that this node owns.
fn hold_up(status: &ShardStatus) -> HoldUp {
    HoldUp {
        items: status.ready + status.leased + status.scheduled,
        dead_letters: status.dead,
        keys_until: status.keys_until_micros.map(Timestamp::from_micros),
        not_recorded: !status.draining,
        ..HoldUp::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_is_over_is_none() {
        let last_error = "no answer within a second".to_owned();
        let owned = ShardStatus { state: EngineState::Owned, last_error, ..ShardStatus::default() };
        let trouble = |status: &ShardStatus| shard(status, None).trouble;
        assert_eq!(trouble(&owned), "");
        let silent = ShardStatus { silent_since_micros: Some(1), ..owned.clone() };
        let open = ShardStatus { breaker: BreakerPhase::Open, ..owned.clone() };
        let away = ShardStatus { state: EngineState::Unreachable, ..owned.clone() };
        let others = ShardStatus { state: EngineState::Waiting, ..owned };
        let all = [silent, open, away, others].map(|status| trouble(&status).is_empty());
        assert_eq!(all, [false, false, false, true]);
        let losses = vec!["it has lost committed batches".to_owned()];
        let lost = ShardStatus { state: EngineState::Owned, losses, ..ShardStatus::default() };
        assert_eq!(trouble(&lost), "it has lost committed batches");
    }

    #[test]
    fn the_owner_of_a_shard_tells_since_when_it_has_it() {
        let owned = ShardStatus { owned_since_micros: Some(2_500_000), ..ShardStatus::default() };
        let since = shard(&owned, None).since.unwrap();
        assert_eq!((since.seconds, since.nanos), (2, 500_000_000));
        assert_eq!(shard(&ShardStatus::default(), None).since, None);
    }

    #[test]
    fn a_node_delivers_all_if_it_is_this_one_or_gives_items_to_it() {
        let member = |peer_address: &str| Member {
            name: String::new(),
            peer_address: peer_address.to_owned(),
            clients_address: String::new(),
            http_address: String::new(),
            release: String::new(),
            live: true,
            joining: false,
            reached: true,
            draining: false,
            shards: 0,
            started_micros: None,
        };
        let givers = ["b:1".to_owned()];
        let delivers = |address, is_self| for_clients(node(&member(address), is_self, &givers)).delivers_all;
        assert_eq!(
            [delivers("a:1", true), delivers("b:1", false), delivers("c:1", false)],
            [true, true, false]
        );
    }

    #[test]
    fn pages_follow_one_another_without_gaps() {
        let rows: Vec<u32> = (1..=250).collect();
        let (mut seen, mut token) = (Vec::new(), 0);
        loop {
            let (rows, next) = page(rows.clone(), 0, |row| *row > token, u32::to_string);
            assert!(rows.len() <= 100);
            seen.extend(rows);
            match next.parse() {
                Ok(next) => token = next,
                Err(_) => break,
            }
        }
        assert_eq!(seen, rows);
        assert_eq!(page(rows, 5_000, |_| true, u32::to_string).0.len(), 250);
    }
}
