//! Disturbs a cluster while the clients run.

use std::{sync::Arc, time::Duration};

use forebay_engine::TaskName;
use forebay_types::NodeName;

use super::{
    catalog,
    during::{some_node, trouble},
    even,
    fault::Fault,
    launch::{NAMES, launch},
    operator, served,
};
use crate::{
    fake::{CatalogFaults, Db, Dice, Life},
    sim::{chaos, process::Node, tasks::Still, world::World},
};

/// The most nodes at once.
const NODES_MAX: usize = 5;

/// So soon all nodes report that they reach a server again.
const ALL_REPORT_WITHIN: Duration = Duration::from_secs(6);

/// Disturbs the cluster until its task is aborted.
pub async fn run(world: &Arc<World>, mut dice: Dice) {
    loop {
        let span = dice.millis((200, 2_500));
        tokio::time::sleep(span).await;
        if dice.chance(450) {
            // Long enough for shards to move for evenness.
            let span = dice.millis((5_000, 45_000));
            tokio::time::sleep(span).await;
        }
        let dice = &mut dice;
        let fault = match world.plan.focus {
            Some(fault) if dice.chance(800) => fault,
            _ if !world.plan.exact_time() && dice.chance(200) => Fault::ClockSteps,
            _ => Fault::draw(dice),
        };
        disturb(world, dice, fault).await;
        while world.alive().len() < 2 || (world.alive().len() < NODES_MAX && dice.chance(250)) {
            if !start_another(world, dice).await {
                break;
            }
        }
    }
}

async fn disturb(world: &Arc<World>, dice: &mut Dice, fault: Fault) {
    match fault {
        Fault::Fails => fails(world, dice).await,
        Fault::Leaves => leaves(world, dice).await,
        Fault::StandsStill => stands_still(world, dice).await,
        Fault::EngineStandsStill => engine_stands_still(world, dice).await,
        Fault::Cut => cut(world, dice).await,
        Fault::CutServer => cut_server(world, dice).await,
        Fault::CutOff => cut_off(world, dice).await,
        Fault::CutCatalog => catalog::is_cut_off(world, dice).await,
        Fault::CatalogAway => catalog::is_away(world, dice).await,
        Fault::CatalogGoesBack => catalog::goes_back(world, dice).await,
        Fault::CatalogTrouble => catalog::is_sick(world, dice).await,
        Fault::ServerTrouble => server_trouble(world, dice).await,
        Fault::LosesCommits => loses_commits(world, dice).await,
        Fault::ClockSteps => clock_steps(world, dice).await,
        Fault::LosesMessages => loses_messages(world, dice).await,
        Fault::Pin => operator::pin(world, dice).await,
        Fault::Drain => operator::drain(world, dice).await,
        Fault::ChangeShards => operator::change_shards(world, dice).await,
        Fault::Nothing => {}
    }
}

/// Ends everything that disturbs the cluster.
pub fn heal(world: &World) {
    let cluster = world.cluster();
    {
        let catalog = &mut *cluster.catalog.lock();
        catalog.faults = CatalogFaults::none();
        catalog.come_forward();
    }
    cluster.network.heal();
    for db in &world.dbs {
        db.lock().refuses.clear();
    }
    cluster.troubles.end_all(&world.journal);
}

/// Starts a node under a name that is free; now and then, under one that is taken. Returns whether it did.
async fn start_another(world: &Arc<World>, dice: &mut Dice) -> bool {
    if world.cluster().catalog.lock().is_behind() {
        return false;
    }
    let names = NAMES.map(|name| name.parse::<NodeName>().expect("a good name"));
    let taken: Vec<_> = world.alive().into_iter().filter_map(|node| Some(node.member?.name)).collect();
    let free: Vec<_> = names.iter().filter(|name| !taken.contains(name)).cloned().collect();
    let taken = !taken.is_empty() && dice.chance(60);
    let name = match free.is_empty() || taken {
        true => dice.pick(&names).clone(),
        false => dice.pick(&free).clone(),
    };
    let before = world.nodes().len();
    trouble(world, "a node starts".to_owned(), async {
        launch(world, name, dice.next());
        let begun = async {
            while world.nodes().len() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(15), begun).await;
    })
    .await;
    true
}

/// A node is killed.
async fn fails(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    if dice.chance(700) {
        served::wait_for_calm(world).await;
    }
    trouble(world, format!("process {} is killed", node.process.number), async {
        let look = served::Look::begin(world, &node);
        world.kill(&node);
        look.end(world, served::SERVED_WITHIN).await;
        let span = dice.millis((0, 4_000));
        tokio::time::sleep(span).await;
    })
    .await;
}

/// A node leaves its cluster and stops.
async fn leaves(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    trouble(world, format!("process {} leaves", node.process.number), leave(world, &node)).await;
}

/// Leaves as the program does: others get the shards, and then the engine stops.
pub async fn leave(world: &World, node: &Node) {
    if let Some(task) = node.member.as_ref().and_then(super::state::MemberOf::leave) {
        world.cluster().coverage().left += 1;
        tokio::select! {
            biased;
            () = node.process.died() => {}
            () = task.leave(Duration::from_secs(7)) => {}
        }
    }
    chaos::stop(world, node).await;
}

/// A node stands still, as under SIGSTOP.
async fn stands_still(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    if dice.chance(500) {
        served::wait_for_calm(world).await;
    }
    trouble(world, format!("process {} stands still", node.process.number), async {
        let look = served::Look::begin(world, &node);
        world.stand_still(&node, &[Still::Process]);
        let range = *dice.pick(&[(100, 3_000), (3_100, 12_000), (3_100, 25_000)]);
        let span = dice.millis(range);
        if span > served::SERVED_WITHIN {
            look.end(world, served::SERVED_WITHIN).await;
        }
        tokio::time::sleep(span.saturating_sub(served::SERVED_WITHIN)).await;
        world.go_on(&node);
        if dice.chance(300) {
            world.kill(&node);
        }
    })
    .await;
}

/// The event loop of a node stands still, and its membership task does not. Another node fails meanwhile.
async fn engine_stands_still(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    if dice.chance(700) {
        served::wait_for_calm(world).await;
    }
    let number = node.process.number;
    trouble(world, format!("the event loop of process {number} stands still"), async {
        let look = served::Look::begin(world, &node);
        world.stand_still(&node, &[Still::Task(TaskName::EventLoop)]);
        look.end(world, served::HUNG_SERVED_WITHIN).await;
        let span = dice.millis((5_000, 15_000));
        tokio::time::sleep(span).await;
        let others = world.alive().into_iter().filter(|other| other.process.number != number);
        let others: Vec<Node> = others.collect();
        if others.len() > 1 && dice.chance(600) {
            let other = dice.pick(&others).clone();
            let look = served::Look::beside(world, &other, &node);
            world.journal.note(format_args!("meanwhile process {} is killed", other.process.number));
            world.kill(&other);
            look.end(world, served::SERVED_WITHIN).await;
        }
        world.go_on(&node);
        if dice.chance(300) {
            world.kill(&node);
        }
    })
    .await;
}

/// Ways between nodes are cut, in one direction or both: between two, or between one and all others.
async fn cut(world: &Arc<World>, dice: &mut Dice) {
    let members = world.alive();
    let numbers: Vec<usize> = members.iter().map(|node| node.process.number).collect();
    let Some(one) = some_node(world, dice) else { return };
    let number = one.process.number;
    let others: Vec<usize> = match dice.chance(500) {
        true => numbers.iter().copied().filter(|other| *other != number).collect(),
        false => vec![*dice.pick(&numbers)],
    };
    let direction = dice.below(3);
    let ways = others.iter().flat_map(|other| match direction {
        0 => vec![(number, *other)],
        1 => vec![(*other, number)],
        _ => vec![(number, *other), (*other, number)],
    });
    let ways: Vec<(usize, usize)> = ways.filter(|(from, to)| from != to).collect();
    world.cluster().coverage().cuts += ways.len() as u64;
    // Two nodes never vote one out.
    let is_alone = others.len() > 1 && others.len() + 1 == numbers.len() && direction == 2;
    trouble(world, format!("ways are cut: {ways:?}"), async {
        let look = is_alone.then(|| served::Look::begin(world, &one));
        world.cluster().network.cut(&ways);
        let range = *dice.pick(&[(300, 4_000), (4_000, 30_000)]);
        let span = dice.millis(range);
        match look.filter(|_| span > served::OUTVOTED_WITHIN) {
            Some(look) => {
                look.end(world, served::OUTVOTED_WITHIN).await;
                tokio::time::sleep(span - served::OUTVOTED_WITHIN).await;
            }
            None => tokio::time::sleep(span).await,
        }
        world.cluster().network.heal();
    })
    .await;
}

/// A node does not reach one of the database servers.
async fn cut_server(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    let server = dice.pick(&world.dbs).lock().server.clone();
    let number = node.process.number;
    let set = |refuses: bool| {
        for db in of_server(world, &server) {
            let state = &mut *db.lock();
            if refuses {
                state.refuses.insert(number);
            } else {
                state.refuses.remove(&number);
            }
        }
    };
    world.cluster().coverage().cut_servers += 1;
    trouble(world, format!("process {number} does not reach {server}"), async {
        set(true);
        let range = *dice.pick(&[(300, 4_000), (4_000, 20_000)]);
        let span = dice.millis(range);
        tokio::time::sleep(span).await;
        set(false);
    })
    .await;
}

fn of_server<'a>(world: &'a World, server: &str) -> impl Iterator<Item = &'a Db> {
    world.dbs.iter().filter(move |db| db.lock().server == server)
}

/// A node reaches neither the catalog nor any server.
async fn cut_off(world: &Arc<World>, dice: &mut Dice) {
    let Some(node) = some_node(world, dice) else { return };
    trouble(world, format!("process {} reaches no database", node.process.number), async {
        node.process.set(Life::CutOff);
        let range = *dice.pick(&[(300, 2_500), (2_500, 15_000)]);
        let span = dice.millis(range);
        tokio::time::sleep(span).await;
        node.process.set(Life::Running);
    })
    .await;
}

/// A database server is down or slow. While one is down nothing moves: no other node reaches it either.
async fn server_trouble(world: &Arc<World>, dice: &mut Dice) {
    let server = dice.pick(&world.dbs).lock().server.clone();
    let down = dice.chance(500);
    if down && dice.chance(900) {
        served::wait_for_calm(world).await;
    }
    trouble(world, format!("{server} is {}", if down { "down" } else { "slow" }), async {
        let assigned = || world.cluster().catalog.lock().assigned.len();
        let stays = down && served::is_calm_but_for_this(world) && even::uneven(world).is_none();
        let before = assigned();
        for db in of_server(world, &server) {
            let faults = &mut db.lock().faults;
            match down {
                true => faults.down = true,
                false => (faults.slow, faults.slow_ms) = (700, (300, 2_000)),
            }
        }
        let span = dice.millis((500, 12_000));
        tokio::time::sleep(span).await;
        for db in of_server(world, &server) {
            let faults = &mut db.lock().faults;
            (faults.down, faults.slow) = (false, 0);
        }
        if stays {
            tokio::time::sleep(ALL_REPORT_WITHIN).await;
            world.cluster().coverage().servers_down += 1;
            if assigned() > before {
                world.blame("MOVES-BOUNDED", format!("shards move because {server} is down"));
            }
        }
    })
    .await;
}

/// A database server loses COMMITs, or the answers to them, or leaves them hanging.
async fn loses_commits(world: &Arc<World>, dice: &mut Dice) {
    let server = dice.pick(&world.dbs).lock().server.clone();
    world.cluster().coverage().commits_lost += 1;
    trouble(world, format!("{server} loses COMMITs"), async {
        for db in of_server(world, &server) {
            let faults = &mut db.lock().faults;
            (faults.lost_before, faults.lost_after, faults.hangs) = (150, 150, 100);
            faults.resolve_fails = 200;
        }
        let span = dice.millis((1_000, 12_000));
        tokio::time::sleep(span).await;
        for db in of_server(world, &server) {
            let faults = &mut db.lock().faults;
            (faults.lost_before, faults.lost_after, faults.hangs) = (0, 0, 0);
            faults.resolve_fails = 0;
        }
    })
    .await;
}

/// The clock of a node or of a server steps.
async fn clock_steps(world: &Arc<World>, dice: &mut Dice) {
    world.cluster().coverage().clocks_stepped += 1;
    trouble(world, "a clock steps".to_owned(), async {
        chaos::step_clock(world, dice);
        let span = dice.millis((0, 5_000));
        tokio::time::sleep(span).await;
    })
    .await;
}

/// Messages between nodes get lost, or arrive twice.
async fn loses_messages(world: &Arc<World>, dice: &mut Dice) {
    trouble(world, "messages get lost".to_owned(), async {
        world.cluster().network.lose(300);
        let span = dice.millis((1_000, 15_000));
        tokio::time::sleep(span).await;
        world.cluster().network.lose(0);
    })
    .await;
}
