//! Whether a cluster is even.

use std::collections::BTreeMap;

use forebay_types::{NodeName, ShardId};

use crate::sim::world::World;

/// BALANCE: why the cluster is not even. Each shard is at its home. Of two nodes that may own shards, one
/// with two more of a server has none of that server that could go; and one with two more in all has none
/// that could go without making a server uneven. A pinned shard can't go.
pub fn uneven(world: &World) -> Option<String> {
    let (homes, nodes) = (homes(world), eligible(world));
    let server = |id: &ShardId| world.dbs.iter().find(|db| db.id == *id).map(|db| db.lock().server.clone());
    let mut counts: BTreeMap<&NodeName, BTreeMap<String, (usize, usize)>> =
        nodes.keys().map(|name| (name, BTreeMap::new())).collect();
    for db in &world.dbs {
        let Some((home, pinned)) = homes.get(&db.id) else {
            return Some(format!("shard {} has no home", db.id));
        };
        let Some(address) = nodes.get(home) else {
            if !nodes.is_empty() {
                return Some(format!("shard {} is at {home}, which may not own it", db.id));
            }
            continue;
        };
        let owner = db.lock().tables.address.clone();
        if owner != *address {
            return Some(format!("shard {} is owned by {owner:?}, and its home is {home}", db.id));
        }
        let count = counts.get_mut(home)?.entry(server(&db.id)?).or_default();
        *count = (count.0 + 1, count.1 + usize::from(!pinned));
    }
    let of = |node: &NodeName, server: &str| counts[node].get(server).copied().unwrap_or_default();
    let total = |node: &NodeName| counts[node].values().map(|count| count.0).sum::<usize>();
    let servers: Vec<String> = world.dbs.iter().filter_map(|db| server(&db.id)).collect();
    for (from, to) in counts.keys().flat_map(|from| counts.keys().map(move |to| (*from, *to))) {
        for server in &servers {
            let ((more, free), (fewer, _)) = (of(from, server), of(to, server));
            let could = free > 0 && (more >= fewer + 2 || (more > fewer && total(from) >= total(to) + 2));
            if could {
                return Some(format!("{from} has more shards than {to}: {counts:?}"));
            }
        }
    }
    None
}

/// The homes of shards by the catalog.
pub fn homes(world: &World) -> BTreeMap<ShardId, (NodeName, bool)> {
    let view = world.cluster().catalog.lock().view();
    let homes = view.and_then(|view| view.assignment).unwrap_or_default().homes;
    homes.into_iter().map(|(id, home)| (id, (home.node, home.pinned))).collect()
}

/// The nodes that may own shards: name and address.
pub fn eligible(world: &World) -> BTreeMap<NodeName, String> {
    let view = world.cluster().catalog.lock().view();
    let rows = view.map(|view| view.nodes).unwrap_or_default();
    let alive: Vec<String> = world.alive().into_iter().map(|node| node.address).collect();
    let lives = rows.into_iter().filter(|row| !row.draining && alive.contains(&row.peer_address));
    lives.map(|row| (row.name, row.peer_address)).collect()
}
