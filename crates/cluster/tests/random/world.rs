//! A cluster whose moves take their time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_cluster::{ClusterView, Move, NodeView, ShardView};
use forebay_store::{CatalogShardState, Home};
use forebay_types::{Monotonic, NodeName, ShardId};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};

const SERVERS: [&str; 4] = ["s0", "s1", "s2", "s3"];
/// One round.
const ROUND: Duration = Duration::from_secs(1);

/// A cluster.
pub struct World {
    /// The moment.
    now: Monotonic,
    /// The nodes.
    pub nodes: BTreeMap<NodeName, NodeView>,
    /// The shards.
    pub shards: BTreeMap<ShardId, ShardView>,
    /// How many database servers there are.
    servers: usize,
    /// The number of the last node.
    next_node: u32,
    /// The number of the last shard.
    next_shard: u32,
    /// Events that break evenness for good may happen: pins, and servers that not all nodes reach.
    uneven: bool,
}

impl World {
    /// Any cluster, with or without shards that have homes.
    pub fn random(random: &mut StdRng) -> Self {
        let mut world = Self::of(random.random_range(1..7), random.random_range(0..40), random);
        world.uneven = random.random_bool(0.5);
        world
    }

    /// A cluster of at least two nodes, without any exception.
    pub fn whole(random: &mut StdRng) -> Self {
        let (nodes, shards) = (random.random_range(2..9), random.random_range(0..60));
        Self::of(nodes, shards, random)
    }

    fn of(nodes: usize, shards: usize, random: &mut StdRng) -> Self {
        let mut world = Self {
            now: Monotonic::from_start(Duration::from_secs(1_000)),
            nodes: BTreeMap::new(),
            shards: BTreeMap::new(),
            servers: random.random_range(1..=SERVERS.len()),
            next_node: 0,
            next_shard: 0,
            uneven: false,
        };
        (0..nodes).for_each(|_| world.join(random));
        (0..shards).for_each(|_| world.add_shard(random));
        world
    }

    pub fn view(&self) -> ClusterView {
        ClusterView { now: self.now, nodes: self.nodes.clone(), shards: self.shards.clone() }
    }

    /// Every home owns its shards, and no time that a rule names has still to pass.
    pub fn is_quiet(&self) -> bool {
        let long = Duration::from_secs(40);
        let owned = |it: &ShardView| {
            let home = it.home.as_ref().map(|home| &home.node);
            it.owner.as_ref() == home
                || home.is_none_or(|home| self.nodes.get(home).is_none_or(|node| !node.live))
        };
        let old = |since: Option<Monotonic>| since.is_none_or(|since| self.now.since(since) > long);
        self.shards.values().all(|it| owned(it) && old(it.home_since))
            && self.nodes.values().all(|it| old(Some(it.joined_since)) && old(it.grey_since))
    }

    /// Lets the times of all rules pass.
    pub fn wait_long(&mut self) {
        self.now = self.now.plus(Duration::from_secs(60));
        // Meanwhile it is dead, or lives.
        self.nodes.values_mut().for_each(|node| node.late = false);
    }

    pub fn join(&mut self, random: &mut StdRng) {
        self.next_node += 1;
        let servers = SERVERS[..self.servers].iter().map(|it| (*it).to_owned()).collect();
        let node = NodeView {
            live: true,
            late: false,
            draining: false,
            joined_since: self.now,
            servers,
            grey_since: None,
        };
        let name = format!("node-{}-{}", random.random_range(0..100), self.next_node);
        self.nodes.insert(name.parse().unwrap(), node);
    }

    /// A node dies. Returns how many shards had it as their home.
    pub fn die(&mut self, random: &mut StdRng) -> usize {
        let Some(name) = self.any_node(random) else { return 0 };
        let node = self.nodes.get_mut(&name).unwrap();
        node.live = false;
        self.homes_at(&name)
    }

    /// A node drains. Returns how many shards had it as their home.
    pub fn drain(&mut self, random: &mut StdRng) -> usize {
        let Some(name) = self.any_node(random) else { return 0 };
        let node = self.nodes.get_mut(&name).unwrap();
        node.draining = !node.draining;
        self.homes_at(&name)
    }

    fn homes_at(&self, name: &NodeName) -> usize {
        self.shards.values().filter(|it| it.home.as_ref().is_some_and(|home| home.node == *name)).count()
    }

    fn any_node(&self, random: &mut StdRng) -> Option<NodeName> {
        let names: Vec<_> = self.nodes.keys().cloned().collect();
        names.choose(random).cloned()
    }

    fn any_shard(&mut self, random: &mut StdRng) -> Option<&mut ShardView> {
        let ids: Vec<_> = self.shards.keys().copied().collect();
        self.shards.get_mut(ids.choose(random)?)
    }

    fn add_shard(&mut self, random: &mut StdRng) {
        self.next_shard += 1;
        let shard = ShardView {
            server: SERVERS[random.random_range(0..self.servers)].to_owned(),
            state: CatalogShardState::Active,
            home: None,
            home_since: None,
            owner: None,
            silent: false,
            stuck: false,
            steady: true,
        };
        self.shards.insert(ShardId(self.next_shard), shard);
    }

    /// Anything happens.
    pub fn happen(&mut self, random: &mut StdRng) {
        let now = self.now;
        match random.random_range(0..if self.uneven { 14 } else { 11 }) {
            0 => self.join(random),
            1 => drop(self.die(random)),
            2 => drop(self.drain(random)),
            3 => {
                // It lives again, or its process is replaced.
                if let Some(name) = self.any_node(random) {
                    let node = self.nodes.get_mut(&name).unwrap();
                    (node.live, node.joined_since) = (true, now);
                }
            }
            4 => {
                if let Some(name) = self.any_node(random) {
                    self.nodes.remove(&name);
                }
            }
            5 | 6 => self.add_shard(random),
            7 => {
                let states =
                    [CatalogShardState::Active, CatalogShardState::Draining, CatalogShardState::Offline];
                let state = *states.choose(random).unwrap();
                self.any_shard(random).into_iter().for_each(|it| it.state = state);
            }
            8 => {
                if let Some(name) = self.any_node(random) {
                    let node = self.nodes.get_mut(&name).unwrap();
                    node.grey_since = if node.grey_since.is_none() { Some(now) } else { None };
                }
            }
            9 => {
                if let Some(name) = self.any_node(random) {
                    let node = self.nodes.get_mut(&name).unwrap();
                    node.late = !node.late;
                }
            }
            10 => self.any_shard(random).into_iter().for_each(|it| it.silent = !it.silent),
            11 => {
                let server = SERVERS[random.random_range(0..self.servers)];
                if let Some(name) = self.any_node(random) {
                    let servers = &mut self.nodes.get_mut(&name).unwrap().servers;
                    if !servers.remove(server) {
                        servers.insert(server.to_owned());
                    }
                }
            }
            12 => self.any_shard(random).into_iter().for_each(|it| it.stuck = it.home.is_some()),
            _ => {
                if let Some(node) = self.any_node(random)
                    && let Some(it) = self.any_shard(random)
                {
                    (it.home, it.home_since) = (Some(Home { node, pinned: true }), Some(now));
                }
            }
        }
    }

    /// The wishes change, and some moves that are under way end.
    pub fn carry_out(&mut self, moves: &[Move], random: &mut StdRng) {
        for it in moves {
            let shard = self.shards.get_mut(&it.shard).unwrap();
            shard.home = it.to.clone().map(|node| Home { node, pinned: false });
            (shard.home_since, shard.stuck) = (Some(self.now), false);
        }
        let live: BTreeSet<_> =
            self.nodes.iter().filter(|(_, it)| it.live).map(|(name, _)| name.clone()).collect();
        for shard in self.shards.values_mut() {
            let home = shard.home.as_ref().map(|home| home.node.clone());
            if home.as_ref().is_none_or(|home| live.contains(home)) && random.random_bool(0.6) {
                shard.owner = home;
            }
        }
        self.now = self.now.plus(ROUND);
    }
}
