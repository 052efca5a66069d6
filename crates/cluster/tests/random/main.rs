//! Random lives of clusters: nodes join, die, drain and lose servers, shards come and go, moves take their
//! time. Each plan keeps the rules. Once nothing happens any more, nothing moves any more and all is even.

mod check;
mod world;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use world::World;

/// Once nothing happens any more, a cluster is quiet within so many rounds of a second.
const ROUNDS_MAX: usize = 400;

/// Plans and carries out until all is quiet. Returns the number of moves.
fn settle(world: &mut World, random: &mut StdRng, what: &str) -> usize {
    let mut moved = 0;
    for _ in 0..ROUNDS_MAX {
        let view = world.view();
        let moves = forebay_cluster::plan(&view);
        check::plan(&view, &moves, what);
        // A shard that stays for now may be due later.
        if moves.is_empty() && world.is_quiet() {
            return moved;
        }
        moved += moves.len();
        world.carry_out(&moves, random);
    }
    panic!("{what}: it does not settle: {:?}", world.view());
}

#[test]
fn every_plan_keeps_the_rules_and_all_ends_even() {
    for seed in 0..2_000 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut world = World::random(random);
        for _ in 0..random.random_range(0..60) {
            if random.random_bool(0.4) {
                world.happen(random);
            }
            let view = world.view();
            let moves = forebay_cluster::plan(&view);
            check::plan(&view, &moves, &format!("seed {seed}"));
            world.carry_out(&moves, random);
        }
        settle(&mut world, random, &format!("seed {seed}"));
        check::end(&world.view(), &format!("seed {seed}"));
    }
}

/// From evenness on, one event moves no more shards than it must.
#[test]
fn one_event_moves_little() {
    for seed in 0..1_000 {
        let random = &mut StdRng::seed_from_u64(seed);
        let what = format!("seed {seed}");
        let mut world = World::whole(random);
        settle(&mut world, random, &what);
        world.wait_long();
        settle(&mut world, random, &what);
        let (nodes, shards) = (world.nodes.len(), world.shards.len());
        let kind = random.random_range(0..3);
        let least = match kind {
            0 => {
                world.join(random);
                shards.div_ceil(nodes + 1)
            }
            1 => world.die(random),
            _ => world.drain(random),
        };
        let moved = settle(&mut world, random, &what);
        check::end(&world.view(), &what);
        // Evenness in two senses at once may cost a move more. A joiner's share may be rounded down.
        let needed = if kind == 0 { least.saturating_sub(1)..=least + 1 } else { least..=least + 1 };
        assert!(needed.contains(&moved), "{what}: {moved} moves, and {needed:?} are needed");
    }
}
