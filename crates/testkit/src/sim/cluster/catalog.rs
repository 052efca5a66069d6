//! Disturbs the catalog.

use std::{sync::Arc, time::Duration};

use super::{
    during::{catalog_trouble, some_node, trouble},
    even,
    launch::launch,
    served,
};
use crate::{
    fake::{CatalogFaults, Dice, Outage},
    sim::world::World,
};

/// So soon all nodes see that a node's counter moves again.
const SEEN_AGAIN_WITHIN: Duration = Duration::from_secs(4);

/// The catalog is out of reach. A node may fail meanwhile, and start again.
pub async fn is_away(world: &Arc<World>, dice: &mut Dice) {
    if dice.chance(500) {
        served::wait_for_calm(world).await;
    }
    let outage = if dice.chance(500) { Outage::Refuses } else { Outage::Hangs };
    catalog_trouble(world, format!("the catalog is away: {outage:?}"), async {
        let calm = served::is_calm_but_for_this(world);
        world.cluster().catalog.lock().faults.outage = Some(outage);
        // Now and then it takes longer to take a shard over: others could be faster.
        let slow = dice.chance(500);
        for db in world.dbs.iter().filter(|_| slow) {
            db.lock().faults.read_ms = (30, 70);
        }
        let span = dice.millis((3_000, 8_000));
        tokio::time::sleep(span).await;
        if dice.chance(700)
            && world.alive().len() > 1
            && let Some(node) = some_node(world, dice)
        {
            world.cluster().coverage().without_catalog += 1;
            world.journal.note(format_args!("meanwhile process {} is killed", node.process.number));
            let look = served::Look::without_catalog(world, &node, calm);
            world.kill(&node);
            look.end(world, served::WITHOUT_CATALOG_WITHIN).await;
            if let Some(member) = node.member.as_ref().filter(|_| dice.chance(500)) {
                // It starts with what other nodes know.
                launch(world, member.name.clone(), dice.next());
                tokio::time::sleep(Duration::from_secs(6)).await;
            }
        }
        let span = dice.millis((0, 8_000));
        tokio::time::sleep(span).await;
        for db in world.dbs.iter().filter(|_| slow) {
            db.lock().faults.read_ms = (1, 4);
        }
        world.cluster().catalog.lock().faults = CatalogFaults::none();
    })
    .await;
}

/// A node does not reach the catalog, and goes on with all else. No shard moves for that.
pub async fn is_cut_off(world: &Arc<World>, dice: &mut Dice) {
    if dice.chance(800) {
        served::wait_for_calm(world).await;
    }
    let Some(number) = some_node(world, dice).map(|node| node.process.number) else { return };
    trouble(world, format!("process {number} does not reach the catalog"), async {
        let assigned = || world.cluster().catalog.lock().assigned.len();
        let stays = served::is_calm_but_for_this(world) && even::uneven(world).is_none();
        let before = assigned();
        world.cluster().catalog.lock().faults.cut_off = Some(number);
        let span = dice.millis((3_000, 20_000));
        tokio::time::sleep(span).await;
        world.cluster().catalog.lock().faults.cut_off = None;
        if stays {
            tokio::time::sleep(SEEN_AGAIN_WITHIN).await;
            world.cluster().coverage().cut_from_catalog += 1;
            if assigned() > before {
                let what = format!("shards move because process {number} did not reach the catalog");
                world.blame("MOVES-BOUNDED", what);
            }
        }
    })
    .await;
}

/// The catalog goes back to an earlier state, and then forward again. A node may fail meanwhile.
pub async fn goes_back(world: &Arc<World>, dice: &mut Dice) {
    catalog_trouble(world, "the catalog goes back".to_owned(), async {
        let steps = dice.within(1, 12) as usize;
        let went = world.cluster().catalog.lock().go_back(steps);
        world.cluster().coverage().gone_back += u64::from(went);
        let span = dice.millis((500, 12_000));
        tokio::time::sleep(span).await;
        if dice.chance(300)
            && world.alive().len() > 2
            && let Some(node) = some_node(world, dice)
        {
            world.journal.note(format_args!("meanwhile process {} is killed", node.process.number));
            world.kill(&node);
            let span = dice.millis((500, 8_000));
            tokio::time::sleep(span).await;
        }
        world.cluster().catalog.lock().come_forward();
    })
    .await;
}

/// The catalog is slow, or loses calls and answers.
pub async fn is_sick(world: &Arc<World>, dice: &mut Dice) {
    let slow = dice.chance(500);
    catalog_trouble(world, format!("the catalog is sick: slow {slow}"), async {
        {
            let faults = &mut world.cluster().catalog.lock().faults;
            match slow {
                true => (faults.slow, faults.slow_ms) = (700, (100, 3_000)),
                false => (faults.lost_before, faults.lost_after) = (200, 300),
            }
        }
        let span = dice.millis((500, 15_000));
        tokio::time::sleep(span).await;
        world.cluster().catalog.lock().faults = CatalogFaults::none();
    })
    .await;
}
