//! Acts of operators: they pin shards, drain nodes, and add, drain and remove shards.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_store::{Catalog, CatalogShardState, Home};
use forebay_types::{NodeName, ShardId};

use super::{
    during::{some_node, trouble},
    served,
    shards::url,
};
use crate::{
    fake::{Db, Dice, FakeCatalog, Process},
    sim::{chaos, process::Node, world::World},
};

/// So long an operator waits for a change of the assignment.
const CHANGE_WITHIN_MS: u64 = 2_000;

/// The catalog, as an operator reaches it.
pub fn catalog(world: &World) -> FakeCatalog {
    FakeCatalog::new(world.cluster().catalog.clone(), Process::new(0))
}

/// Pins a shard to a node, or ends its pin.
pub async fn pin(world: &Arc<World>, dice: &mut Dice) {
    if dice.chance(500) && pin_at_a_change(world, dice).await
        || dice.chance(200) && pin_to_one_that_dies(world, dice).await
    {
        return;
    }
    let Some(view) = world.cluster().catalog.lock().view() else { return };
    let (Some(shards), Some(assignment)) = (view.shards, view.assignment) else { return };
    let shard = dice.pick(&shards).id;
    let pinned = assignment.homes.get(&shard).filter(|home| home.pinned);
    let home = match pinned {
        Some(home) if dice.chance(600) => Home { node: home.node.clone(), pinned: false },
        _ if view.nodes.is_empty() => return,
        _ => Home { node: dice.pick(&view.nodes).name.clone(), pinned: true },
    };
    world.journal.note(format_args!("an operator wants shard {shard} at {home:?}"));
    let change = BTreeMap::from([(shard, Some(home))]);
    // Another one may have been faster: this operator does not try again.
    if catalog(world).assign(assignment.version, &change).await.is_ok_and(|done| done) {
        world.cluster().coverage().pinned += 1;
    }
}

/// Pins a shard to a node that dies just then. Its owner keeps it meanwhile. Returns whether that happened.
async fn pin_to_one_that_dies(world: &Arc<World>, dice: &mut Dice) -> bool {
    served::wait_for_calm(world).await;
    let Some(dying) = some_node(world, dice) else { return false };
    let (Some(member), process) = (&dying.member, dying.process.number) else { return false };
    let others: Vec<usize> = world.alive().iter().map(|node| node.process.number).collect();
    let is_others =
        |db: &&Db| served::owner(db).is_some_and(|owner| owner != process && others.contains(&owner));
    let of_others: Vec<ShardId> = world.dbs.iter().filter(is_others).map(|db| db.id).collect();
    if of_others.is_empty() {
        return false;
    }
    let shard = *dice.pick(&of_others);
    let what = format!("process {process} is killed, and an operator wants shard {shard} there");
    trouble(world, what, async {
        let look = served::Look::beside_dying(world, &dying, shard);
        world.kill(&dying);
        world.cluster().catalog.pin(shard, member.name.clone());
        world.cluster().coverage().pinned += 1;
        look.end(world, served::KEPT_FOR).await;
        tokio::time::sleep(served::SERVED_WITHIN).await;
    })
    .await;
    true
}

/// Drains a node that has shards, waits until another one is about to change the assignment, and pins one of
/// the same shards just before it does. Returns whether that happened.
async fn pin_at_a_change(world: &Arc<World>, dice: &mut Dice) -> bool {
    let Some(view) = world.cluster().catalog.lock().view() else { return false };
    let Some(assignment) = &view.assignment else { return false };
    let has_shards = |node: &&NodeName| assignment.homes.values().any(|home| home.node == **node);
    let nodes = |draining: bool| view.nodes.iter().filter(move |node| node.draining == draining);
    let staying: Vec<_> = nodes(false).map(|node| &node.name).filter(has_shards).cloned().collect();
    if staying.len() < 2 {
        let Some(back) = nodes(true).next() else { return false };
        set_draining(world, &back.name, false).await;
        return false;
    }
    set_draining(world, dice.pick(&staying), true).await;
    for _ in 0..CHANGE_WITHIN_MS {
        {
            let catalog = world.cluster().catalog.lock();
            let shards = &catalog.on_their_way;
            let view = if shards.is_empty() { None } else { catalog.view() };
            let view = view.filter(|view| !view.nodes.iter().all(|node| node.draining));
            if let Some(view) = view {
                let staying: Vec<_> = view.nodes.iter().filter(|node| !node.draining).collect();
                let (shard, node) = (*dice.pick(shards), dice.pick(&staying).name.clone());
                drop(catalog);
                world.journal.note(format_args!("an operator wants shard {shard} at {node} just now"));
                world.cluster().catalog.pin(shard, node);
                world.cluster().coverage().pinned += 1;
                return true;
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

/// Drains a node, or undoes that.
pub async fn drain(world: &Arc<World>, dice: &mut Dice) {
    let Some(view) = world.cluster().catalog.lock().view() else { return };
    if view.nodes.is_empty() {
        return;
    }
    let draining = view.nodes.iter().filter(|node| node.draining).count();
    let node = dice.pick(&view.nodes);
    if !node.draining && draining + 2 > world.alive().len() {
        return;
    }
    set_draining(world, &node.name, !node.draining).await;
}

async fn set_draining(world: &Arc<World>, node: &NodeName, draining: bool) {
    world.journal.note(format_args!("an operator drains {node}: {draining}"));
    let drained = catalog(world).set_draining(node, draining).await;
    world.cluster().coverage().drained += u64::from(drained.is_ok_and(|done| done));
}

/// Adds a shard, drains one or takes it back, or removes one that is empty.
pub async fn change_shards(world: &Arc<World>, dice: &mut Dice) {
    let Some(view) = world.cluster().catalog.lock().view() else { return };
    let (version, Some(listed)) = (view.versions.shards, view.shards) else { return };
    let missing = world.dbs.iter().filter(|db| listed.iter().all(|row| row.id != db.id));
    let missing: Vec<ShardId> = missing.map(|db| db.id).collect();
    let open = listed.iter().filter(|row| row.state == CatalogShardState::Active).count();
    let row = dice.pick(&listed);
    let catalog = catalog(world);
    let state = match row.state {
        _ if !missing.is_empty() && dice.chance(500) => {
            let id = *dice.pick(&missing);
            let Some(db) = world.dbs.iter().find(|db| db.id == id) else { return };
            world.journal.note(format_args!("an operator adds shard {id}"));
            let added = catalog.add_shard(&url(db), Some(id)).await;
            world.cluster().coverage().shards_changed += u64::from(added.is_ok());
            return;
        }
        CatalogShardState::Active if open > 1 => CatalogShardState::Draining,
        CatalogShardState::Active => return,
        _ if chaos::holds_nothing(world, row.id) => {
            world.journal.note(format_args!("an operator removes shard {}", row.id));
            let removed = catalog.remove_shard(row.id, version).await;
            world.cluster().coverage().shards_changed += u64::from(removed.is_ok());
            return;
        }
        _ => CatalogShardState::Active,
    };
    world.journal.note(format_args!("an operator wants shard {} to be {state}", row.id));
    let changed = catalog.set_shard_state(row.id, state, version).await;
    world.cluster().coverage().shards_changed += u64::from(changed.is_ok());
}

/// All shards are listed, and take new items.
pub async fn list_all(world: &World) {
    let catalog = catalog(world);
    for db in &world.dbs {
        let Some(view) = world.cluster().catalog.lock().view() else { return };
        let (version, listed) = (view.versions.shards, view.shards.unwrap_or_default());
        let done = match listed.iter().find(|row| row.id == db.id) {
            Some(row) if row.state == CatalogShardState::Active => Ok(()),
            Some(_) => catalog.set_shard_state(db.id, CatalogShardState::Active, version).await,
            None => catalog.add_shard(&url(db), Some(db.id)).await.map(drop),
        };
        done.expect("a healthy catalog");
    }
}

/// A node may own shards.
pub async fn undrain(world: &World, node: &Node) {
    let Some(member) = &node.member else { return };
    catalog(world).set_draining(&member.name, false).await.expect("a healthy catalog");
}
