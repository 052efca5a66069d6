//! Nodes and shards as answers have them, and pages of them.

use forebay_engine::{ShardState as EngineState, ShardStatus};
use forebay_membership::{NodeState as Member, Presence, ShardHome};
use forebay_proto::v1::{self, NodeState, ShardState};
use forebay_types::Timestamp;

use super::context::PAGE_ROWS;
use crate::cluster::HoldUp;

/// A page of a list in order, and the token for the next one.
pub fn page<T>(
    rows: Vec<T>,
    size: u32,
    is_after: impl Fn(&T) -> bool,
    token: impl Fn(&T) -> String,
) -> (Vec<T>, String) {
    let (default, most) = PAGE_ROWS;
    let size = if size == 0 { default } else { most.min(usize::try_from(size).unwrap_or(most)) };
    let mut rows: Vec<T> = rows.into_iter().filter(is_after).collect();
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(token).unwrap_or_default();
    (rows, next)
}

/// A node, as those see it who may see all.
pub fn node(node: &Member, is_self: bool) -> v1::Node {
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
        started_at: None,
        self_: is_self,
    }
}

/// What every client needs of a node, to reach it.
pub fn for_clients(node: v1::Node) -> v1::Node {
    let v1::Node { name, clients_address, state, draining, self_, .. } = node;
    v1::Node { name, clients_address, state, draining, self_, ..v1::Node::default() }
}

/// A shard. What is stored in it is known to its owner alone.
pub fn shard(status: &ShardStatus, home: Option<&ShardHome>, in_cluster: bool, alone: &str) -> v1::Shard {
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
    let owner = match in_cluster {
        true => name(home.and_then(|home| home.owner.as_ref()).map(ToString::to_string)),
        false if owned => alone.to_owned(),
        false => status.owner.clone(),
    };
    v1::Shard {
        id: status.id,
        server: status.server.clone(),
        state: state.into(),
        owner,
        wished_owner: name(home.and_then(|home| home.home.as_ref()).map(ToString::to_string)),
        pinned: home.is_some_and(|home| home.pinned),
        epoch: status.epoch,
        since: None,
        trouble: if owned || status.state == EngineState::Unreachable {
            status.last_error.clone()
        } else {
            String::new()
        },
        items: owned.then(|| status.ready + status.leased + status.scheduled),
        hold_up,
    }
}

/// What holds the drain of a shard up that this node owns.
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
