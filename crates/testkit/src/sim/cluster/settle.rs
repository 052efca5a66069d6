//! The end of a cluster's run: all is well again, and so the cluster must become even, and stay so.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::ShardId;
use tokio::time::Instant;

use super::{
    anywhere,
    even::{eligible, homes, uneven},
    faults, operator,
    state::MemberOf,
};
use crate::{
    fake::{Db, Dice},
    sim::{chaos, process::Node, world::World},
};

/// So soon the cluster is even: nodes that seemed dead join anew (5 s), what has just moved stays (30 s), and
/// then shards move, two at a time.
const EVEN_WITHIN: Duration = Duration::from_secs(75);
/// So soon all nodes know who lives: a counter that stands still tells that after 4 s.
const KNOWN_WITHIN: Duration = Duration::from_secs(6);
/// For so long what was seen of the last fault may still move shards: a node whose shards were silent lives
/// again once its counter has moved twice.
const FELT_FOR: Duration = Duration::from_secs(3);
/// For so long nothing moves after that: longer than what has moved stays.
const STAYS_FOR: Duration = Duration::from_secs(40);

/// Waits until the cluster is even. Then all nodes leave but one, which is returned.
pub async fn settle(world: &World, dice: Dice) -> Option<Node> {
    faults::heal(world);
    let healed = Instant::now();
    operator::list_all(world).await;
    finish_leaving(world).await;
    all_begun(world).await?;
    tokio::time::sleep_until(healed + FELT_FOR).await;
    let (before, under_way) = wished(world);
    let changes = changes_of_owner(world);
    let end = world.journal.elapsed() + EVEN_WITHIN;
    tokio::time::sleep(KNOWN_WITHIN).await;
    while let Some(uneven) = uneven(world) {
        if world.journal.elapsed() > end {
            world.blame("BALANCE", format!("{EVEN_WITHIN:?} after the last change: {uneven}"));
            return None;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    needed(world, &before, (changes_of_owner(world) - changes).saturating_sub(under_way));
    let even = moves(world);
    tokio::time::sleep(STAYS_FOR).await;
    if moves(world) != even {
        world.blame("MOVES-BOUNDED", "shards move though the cluster is even and nothing happens");
    }
    if let Some(uneven) = uneven(world) {
        world.blame("BALANCE", format!("it was even and is not: {uneven}"));
    }
    world.cluster().coverage().settled += 1;
    anywhere::check(world, &world.alive(), dice).await;
    let mut members = world.alive();
    let last = members.pop()?;
    operator::undrain(world, &last).await;
    for node in members {
        faults::leave(world, &node).await;
    }
    Some(last)
}

/// Ends the processes that were leaving when the faults ended.
async fn finish_leaving(world: &World) {
    let leaves = |node: &Node| node.member.as_ref().is_some_and(MemberOf::leaves);
    for node in world.alive().into_iter().filter(leaves) {
        chaos::stop(world, &node).await;
    }
}

/// Waits until all that were launched run and have joined, or are dead.
async fn all_begun(world: &World) -> Option<()> {
    let launched = || world.cluster().coverage().launched as usize;
    let end = world.journal.elapsed() + Duration::from_secs(30);
    let joined = || {
        let has = |node: &Node| node.member.as_ref().is_some_and(MemberOf::has_joined);
        world.alive().iter().all(has)
    };
    while world.nodes().len() < launched() || !joined() {
        if world.journal.elapsed() > end {
            world.blame("BALANCE", "a node has not joined 30 s after the last fault");
            return None;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Some(())
}

/// Where shards are to be, by the addresses of nodes, and how many are not there yet.
fn wished(world: &World) -> (BTreeMap<ShardId, String>, usize) {
    let nodes = eligible(world);
    let wished = homes(world).into_iter().filter_map(|(id, (home, _))| Some((id, nodes.get(&home)?.clone())));
    let wished: BTreeMap<ShardId, String> = wished.collect();
    let is_elsewhere =
        |db: &&Db| wished.get(&db.id).is_some_and(|address| *address != db.lock().tables.address);
    let under_way = world.dbs.iter().filter(is_elsewhere).count();
    (wished, under_way)
}

/// How often the assignment was changed.
fn moves(world: &World) -> usize {
    world.cluster().catalog.lock().assigned.len()
}

/// How often shards got another owner so far.
fn changes_of_owner(world: &World) -> usize {
    let of = |db: &Db| db.lock().owners.windows(2).filter(|pair| pair[0].process != pair[1].process).count();
    world.dbs.iter().map(of).sum()
}

/// MOVES-BOUNDED: no more shards have moved than had to, beside those on their way. A shard has to move if
/// its home may not own it. Of each server, no node gives more than what it has above an even share.
fn needed(world: &World, before: &BTreeMap<ShardId, String>, moved: usize) {
    let nodes: Vec<String> = eligible(world).into_values().collect();
    let mut allowed = 0;
    let mut held: BTreeMap<(String, &String), usize> = BTreeMap::new();
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for db in &world.dbs {
        let server = db.lock().server.clone();
        *all.entry(server.clone()).or_default() += 1;
        match before.get(&db.id).filter(|owner| nodes.contains(owner)) {
            Some(owner) => *held.entry((server, owner)).or_default() += 1,
            None => allowed += 1,
        }
    }
    for ((server, _), held) in held {
        allowed += held.saturating_sub(all[&server] / nodes.len().max(1));
    }
    if moved > allowed {
        let what = format!("{moved} shards have moved after the last change, and at most {allowed} had to");
        world.blame("MOVES-BOUNDED", what);
    }
}
