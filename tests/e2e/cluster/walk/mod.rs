//! A random walk over all faults: three nodes, two servers, a catalog, and what lies between them: proxies,
//! or the wires of network namespaces (`cargo xtask soak --netns`, see [`namespaces`]).
//!
//! `cargo xtask soak --minutes N` walks for long, and `--seed S` repeats what a seed did. In each round
//! clients work while faults come and go. After each turn all is well again, every shard gets an owner, and
//! clients go on. A round ends with a drain and the checks of the history.

mod namespaces;
mod plan;
mod proxies;
mod world;

use std::{env, str::FromStr, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{drain::drain_and_check, history::History, load::Load, node::Node, scenario::progress};
use plan::{Plan, Wires};
use world::World;

/// Turns of a round. So a history stays small, however long the walk is.
const TURNS_PER_ROUND: u32 = 12;
/// Turns of the walk in `cargo xtask test`.
const TURNS: u32 = 3;
/// Items that are stored, delivered and acked after each turn.
const PROGRESS: u64 = 50;

fn asked_for<T: FromStr>(variable: &str) -> Option<T> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: {text} is no number")))
}

/// Clients work while so many turns pass, or until the walk is over. Then the queue is drained.
async fn round(world: &mut World, plan: &mut Plan, number: u64, turns: u32, over: impl Fn() -> bool) {
    let history = Arc::new(History::new());
    let channels = |world: &World| world.nodes().map(Node::channel).collect::<Vec<_>>();
    let load = Load::start(&history, channels(world), 1_000 + number);
    progress(&history, "load before the first fault", PROGRESS).await;
    for turn in 0..turns {
        if over() {
            break;
        }
        let next = plan.turn();
        println!("round {number}, turn {turn}: {:?} for {:?}", next.steps, next.lasts);
        for step in &next.steps {
            world.begin(*step).await;
        }
        sleep(next.lasts).await;
        for step in &next.steps {
            world.end(*step).await;
        }
        world.start_missing().await;
        load.retarget(channels(world));
        let waited = world.cluster.all_owned(&world.nodes().collect::<Vec<_>>()).await;
        let begun = Instant::now();
        progress(&history, &format!("load after {:?}", next.steps), PROGRESS).await;
        println!("  all shards had owners after {waited:?}, and clients went on after {:?}", begun.elapsed());
    }
    load.stop().await;
    let channel = world.through_one().await.channel();
    drain_and_check(&history, channel).await;
    world.start_missing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_random_walk_over_faults_loses_nothing() {
    let minutes: Option<u64> = asked_for("FOREBAY_E2E_WALK_MINUTES");
    let seed = asked_for("FOREBAY_E2E_WALK_SEED").unwrap_or(1);
    println!("the walk of FOREBAY_E2E_WALK_SEED={seed}");
    let wires =
        if env::var_os("FOREBAY_E2E_WALK_NETNS").is_some() { Wires::Namespaces } else { Wires::Proxies };
    let (mut plan, mut world) = (Plan::new(seed, wires), World::new(wires).await);
    let begun = Instant::now();
    let Some(minutes) = minutes else {
        return round(&mut world, &mut plan, 0, TURNS, || false).await;
    };
    let over = || begun.elapsed() >= Duration::from_secs(60 * minutes);
    let mut number = 0;
    while !over() {
        round(&mut world, &mut plan, number, TURNS_PER_ROUND, over).await;
        number += 1;
    }
    println!("{number} rounds within {:?}", begun.elapsed());
}
