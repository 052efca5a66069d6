//! Starts nodes, in the order of the program's own start.

use std::{pin::Pin, sync::Arc, time::Duration};

use forebay_engine::{Duty, Engine, Reach, Setup, TaskName, Tasks};
use forebay_front::{Front, Links, watch_nodes};
use forebay_membership::{
    ClusterState, EngineShards, JoinError, Membership, OpenShards, begin as read_catalog, living_nodes,
};
use forebay_store::{Catalog, CatalogImage, CatalogNode, NodeReport, Shard, Tokens};
use forebay_types::{Clock, ClusterId, Incarnation, NodeName, ShardId};
use tokio::sync::{Notify, watch};

use super::{
    during::trouble,
    shards::{SimShards, url},
    state::MemberOf,
    way::ClusterWay,
};
use crate::{
    fake::{Dice, FakeCatalog, Life, Process},
    sim::{chaos, clock::SimClock, process::Node, tasks::ProcessTasks, world::World},
};

/// The names that nodes have.
pub const NAMES: [&str; 5] = ["ada", "bob", "cem", "dan", "eva"];

/// Makes the catalog, starts the first nodes, and waits until one of them runs.
pub async fn begin(world: &Arc<World>, dice: &mut Dice) {
    let cluster = world.cluster();
    let catalog = FakeCatalog::new(cluster.catalog.clone(), Process::new(0));
    catalog.migrate(ClusterId::default()).await.expect("a healthy catalog");
    for db in &world.dbs {
        catalog.add_shard(&url(db), Some(db.id)).await.expect("a healthy catalog");
    }
    let nodes = dice.within(2, 4) as usize;
    trouble(world, "the cluster begins".to_owned(), async {
        for name in &NAMES[..nodes] {
            // Each takes its turn once a second: they do that at different moments.
            let span = dice.millis((0, 900));
            tokio::time::sleep(span).await;
            launch(world, name.parse().expect("a good name"), dice.next());
        }
        while world.nodes().len() < nodes {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    if dice.chance(700) {
        let owned = async {
            while world.dbs.iter().any(|db| db.lock().tables.address.is_empty()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(10), owned).await.is_err() {
            world.blame("SHARD-SERVED", "the first nodes do not own all shards after 10 s");
        }
    }
}

/// Starts a node. It runs once it has read the catalog, and joins a moment later.
pub fn launch(world: &Arc<World>, name: NodeName, seed: u64) {
    let number = world.cluster().launched(name.clone());
    let tasks = ProcessTasks::default();
    world.journal.note(format_args!("process {number} is launched as {name}"));
    let start = start(world.clone(), number, name, seed, tasks.clone());
    tasks.start(TaskName::Membership, Box::pin(start));
}

async fn start(world: Arc<World>, number: usize, name: NodeName, seed: u64, tasks: ProcessTasks) {
    let process = Process::new(number);
    let cluster = world.cluster();
    let catalog: Arc<dyn Catalog> = Arc::new(FakeCatalog::new(cluster.catalog.clone(), process.clone()));
    let begun = match read_catalog(catalog, || image(&world)).await {
        Ok(begun) => begun,
        Err(error) => return world.blame("SHARD-SERVED", format!("process {number} can't begin: {error}")),
    };
    let dice = &mut Dice::new(seed);
    let address = address(&world, number, &name, dice);
    let offset = chaos::first_offset(&world, dice);
    let clock = Arc::new(SimClock::new(world.journal.clone(), offset));
    let opener = Arc::new(SimShards { process: process.clone(), dbs: world.dbs.clone() });
    let listed = begun.shards().to_vec();
    let open = |row: &_| OpenShards::open(&*opener, row).expect("every shard has a database");
    let opened: Vec<(ShardId, Arc<dyn Shard>)> = listed.iter().map(|row| (row.id, open(row))).collect();
    let followed = EngineShards::begin(listed.clone(), opener, opened);
    let links = Arc::new(world.links(address.clone(), seed, Some((number, cluster.network.clone()))));
    let way = Arc::new(ClusterWay {
        process: number,
        nodes: world.all_nodes(),
        network: cluster.network.clone(),
        links: links.clone(),
    });
    let engine = Engine::start_with(Setup {
        settings: world.plan.settings_of(number),
        address: address.clone(),
        shards: followed.shards(),
        duty: Duty::Leave { successor: String::new() },
        reach: Reach::All,
        clock: clock.clone() as Arc<dyn Clock>,
        peers: way.clone(),
        tasks: Arc::new(tasks.clone()),
        seed,
    });
    let (state, changed) = (watch::Sender::default(), Arc::new(Notify::new()));
    let front = front(&engine, links, &tasks, state.subscribe());
    let member = MemberOf { name: name.clone(), changed: changed.clone(), part: Arc::default() };
    let node = Node {
        process,
        engine: engine.clone(),
        front,
        tasks: tasks.clone(),
        shards: listed.iter().map(|row| row.id).collect(),
        clock: clock.clone(),
        address: address.clone(),
        member: Some(member.clone()),
    };
    world.nodes().push(node.clone());
    let membership = Membership {
        catalog: begun.catalog,
        node: row(name, number, seed, address),
        engine,
        links: way,
        clock,
        tasks: Arc::new(tasks),
        catalog_changed: changed,
        state,
        policies_told: watch::Sender::default(),
        followed,
    };
    let is_away = begun.tokens.is_some();
    cluster.coverage().starts_without_catalog += u64::from(is_away);
    match membership.start(begun.copy, is_away).await {
        Ok(task) => {
            member.joined(task);
        }
        Err(error) => exits(&world, node, &error),
    }
}

/// The front of a node, which listens to the others.
fn front(
    engine: &Engine,
    links: Arc<dyn Links>,
    tasks: &ProcessTasks,
    state: watch::Receiver<Arc<ClusterState>>,
) -> Front {
    let watch = watch_nodes(engine.clone(), links.clone(), Arc::new(tasks.clone()), living_nodes(state));
    tasks.start(TaskName::Watch, Box::pin(watch));
    Front::new(engine.clone(), Some(links))
}

/// The image that other nodes have: they have followed the catalog until it went, and nobody changes it
/// meanwhile.
fn image(world: &World) -> Pin<Box<dyn Future<Output = Option<CatalogImage>> + Send>> {
    let tokens = Tokens { version: 0, rows: None };
    let newest = world.cluster().catalog.lock().newest();
    let image = newest.map(|changes| CatalogImage { changes, tokens });
    Box::pin(std::future::ready(image))
}

/// Where a new process listens: most often where the one before it did that had its name, if that is dead.
fn address(world: &World, number: usize, name: &NodeName, dice: &mut Dice) -> String {
    let own = format!("node{number}:7420");
    let nodes = world.nodes();
    let before = nodes.iter().rfind(|node| node.member.as_ref().is_some_and(|it| it.name == *name));
    let Some(before) = before.filter(|_| dice.chance(800)) else { return own };
    let is_taken = nodes.iter().any(|it| it.address == before.address && it.process.life() != Life::Dead);
    if is_taken {
        return own;
    }
    world.journal.note(format_args!("process {number} listens at {}", before.address));
    world.cluster().coverage().addresses_taken += 1;
    before.address.clone()
}

/// The program ends where its node can't join.
fn exits(world: &Arc<World>, node: Node, error: &JoinError) {
    world.journal.note(format_args!("process {} ends: {error}", node.process.number));
    match error {
        JoinError::NameTaken(_) => world.cluster().coverage().names_taken += 1,
        JoinError::AddressTaken(..)
        | JoinError::AddressElsewhere(..)
        | JoinError::Alone(..)
        | JoinError::Catalog(_) => world.blame("SHARD-SERVED", format!("a node can't join: {error}")),
    }
    let world = world.clone();
    // Elsewhere: this is one of the tasks that end.
    tokio::spawn(async move { world.kill(&node) });
}

fn row(name: NodeName, number: usize, seed: u64, address: String) -> CatalogNode {
    // So a row says which process it is of: an address had another one before.
    let incarnation = (u128::from(seed) << 64 | number as u128).to_be_bytes();
    CatalogNode {
        name,
        incarnation: Incarnation(incarnation),
        peer_address: address,
        clients_address: String::new(),
        http_address: String::new(),
        release: String::new(),
        format: 1,
        draining: false,
        started_at: None,
        beats: 0,
        report: NodeReport::default(),
    }
}

/// The process that a row is of.
pub fn process_of(row: &CatalogNode) -> usize {
    // The lower half.
    u128::from_be_bytes(row.incarnation.0) as u64 as usize
}
