//! Faults between nodes, and of nodes, while all consumers ask one node and producers all of them.

use std::{collections::BTreeSet, time::Duration};

use forebay_testkit::{
    proxy::{Proxy, Toward, Ways},
    servers::Kind,
};
use tokio::time::sleep;

use super::{
    nodes::{Nodes, channels, owned_by},
    one_front::{Excuse, Work, longest_wait},
    operate::run,
    steady::SteadyWork,
};
use crate::{
    history::Call,
    node::Node,
    scenario::{progress, until},
};

/// Shards of the cluster, two of each node.
const SHARDS: u32 = 6;
/// The node that consumers ask.
const FRONT: usize = 0;
/// The node that is disturbed.
const OWNER: usize = 1;
/// The node that is well all the time.
const OTHER: usize = 2;
/// How long a node stands still.
const FROZEN: Duration = Duration::from_secs(10);
/// A link is slow by so much, there and back.
const SLOW_BY: Duration = Duration::from_millis(200);
/// Consumers have what a node's shards hold within this time after a fault. A node that was late is not asked
/// for up to five seconds.
const HEALED_WITHIN: Duration = Duration::from_secs(12);
/// A ready item waits no longer beside a poll.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// An operator's move is done within this time.
const MOVED_WITHIN: Duration = Duration::from_secs(15);

/// A cluster whose links lead through proxies.
struct Scene {
    /// The nodes. All of them run.
    nodes: Vec<Node>,
    cluster: Nodes,
    /// The way of the others to each node.
    ways: Vec<Proxy>,
    work: Work,
    /// When items may wait.
    excuses: Vec<Excuse>,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Nodes::new(Kind::MariaDb, 3, SHARDS as usize).await;
        let mut ways = Vec::new();
        for node in 0..3 {
            let way = Proxy::to(&cluster.peer_address(node)).await;
            cluster.advertise(node, &way.address());
            ways.push(way);
        }
        let nodes = cluster.start_all().await;
        let work = Work::start(channels(&nodes), nodes[FRONT].channel(), SHARDS);
        for node in &nodes {
            work.caught_up("in the beginning", node.channel(), &owned_by(node).await).await;
        }
        progress(&work.history, "work before the first fault", 100).await;
        Self { nodes, cluster, ways, work, excuses: Vec::new() }
    }

    /// Items of these shards may have waited since then, until now.
    fn excuse(&mut self, shards: BTreeSet<u64>, began: Duration) {
        let span = Call { began, ended: self.work.history.now() };
        self.excuses.push(Excuse { shards, span });
    }

    /// Work in shards of the nodes that are well.
    async fn steady(&self) -> SteadyWork {
        let mut shards = owned_by(&self.nodes[FRONT]).await;
        shards.extend(owned_by(&self.nodes[OTHER]).await);
        SteadyWork::begin(self.nodes[OTHER].channel(), self.nodes[FRONT].channel(), &shards).await
    }

    /// The ways to a node are disturbed for a while. Items of other shards come meanwhile. Its own do over a
    /// slow link, as long as answers are there within 250 ms: on a machine that does much else, they are not.
    async fn disturb(&mut self, what: &str, disturbs: impl FnOnce(&Proxy)) {
        let (shards, steady) = (owned_by(&self.nodes[OWNER]).await, self.steady().await);
        let began = self.work.history.now();
        disturbs(&self.ways[OWNER]);
        steady.beside(what).await;
        let [theirs, others] = self.work.delivered_since(began, &shards);
        self.ways[OWNER].pass();
        println!("{what}: {theirs} items of the node and {others} others came");
        assert!(others > 20, "{what}: {others} items of the others came");
        self.heal(what, OWNER, &shards).await;
        self.excuse(shards, began);
    }

    /// Waits until consumers have what these shards hold, which can be had again from now on.
    async fn heal(&self, what: &str, node: usize, shards: &BTreeSet<u64>) {
        let healed = self.work.history.now();
        self.work.caught_up(what, self.nodes[node].channel(), shards).await;
        let took = self.work.history.now() - healed;
        println!("{what}: consumers had all {took:?} after it");
        assert!(took <= HEALED_WITHIN, "{what}: consumers had all {took:?} after it");
    }

    /// A node stands still, and others take over what it owns.
    async fn freeze(&mut self) {
        let (shards, steady) = (owned_by(&self.nodes[OWNER]).await, self.steady().await);
        let began = self.work.history.now();
        self.nodes[OWNER].freeze();
        let well = [&self.nodes[FRONT], &self.nodes[OTHER]];
        let what = "a node that stands still";
        let (taken, ()) = tokio::join!(self.cluster.all_owned(&well), steady.beside(what));
        println!("the shards of a node that stands still had owners after {taken:?}");
        self.heal(what, OTHER, &shards).await;
        self.excuse(shards, began);
        sleep((began + FROZEN).saturating_sub(self.work.history.now())).await;
        self.nodes[OWNER].thaw();
        progress(&self.work.history, "work after it went on", 100).await;
    }

    /// Each shard moves to another node. No poll that waits sees it.
    async fn moves(&mut self) {
        let (failed, config) = (self.work.failed_polls(), self.cluster.config(0));
        for shard in 1..=u64::from(SHARDS) {
            let mut owner = FRONT;
            for (number, node) in self.nodes.iter().enumerate() {
                if owned_by(node).await.contains(&shard) {
                    owner = number;
                }
            }
            let (next, id) = ((owner + 1) % 3, shard.to_string());
            let (done, _, stderr) =
                run(&["shard", "move", &id, &format!("node{next}"), "--config", &config]).await;
            assert!(done, "{stderr}");
            let moved = async || owned_by(&self.nodes[next]).await.contains(&shard);
            until(&format!("shard {shard} is at node {next}"), MOVED_WITHIN, moved).await;
            let shards = BTreeSet::from([shard]);
            self.work.caught_up("a move", self.nodes[next].channel(), &shards).await;
        }
        assert_eq!(self.work.failed_polls(), failed, "a poll failed");
    }

    /// The node of the consumers dies with items in hand. They go to another one.
    async fn kill_front(&mut self) {
        let shards = owned_by(&self.nodes[FRONT]).await;
        let began = self.work.history.now();
        self.nodes.remove(FRONT).kill9().await;
        // The nodes behind it have other numbers until it is back.
        self.work.ask(self.nodes[OTHER - 1].channel());
        let taken = self.cluster.all_owned(&self.nodes.iter().collect::<Vec<_>>()).await;
        println!("the shards of a node that was killed had owners after {taken:?}");
        self.heal("a node that was killed", OTHER - 1, &shards).await;
        self.excuse(shards, began);
        let front = self.cluster.start(FRONT).await;
        self.nodes.insert(FRONT, front);
        progress(&self.work.history, "work after it is back", 100).await;
    }

    /// Ends the work, and checks what clients saw.
    async fn end(self) {
        let Self { nodes, cluster, work, excuses, .. } = self;
        let history = work.history.clone();
        let polls = work.stop().await;
        cluster.drain_and_check(&history, nodes).await;
        let (longest, line) = history.inspect(|events| longest_wait(events, &polls, &excuses));
        println!("{longest:?} beside a poll: {line}");
        assert!(longest <= WAIT_MAX, "{longest:?} beside a poll: {line}; apart from {excuses:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_at_one_node_get_all_items_over_faults() {
    let mut scene = Scene::new().await;
    scene.disturb("a slow link", |way| way.delay(Ways::Both, SLOW_BY / 2)).await;
    let one = |toward| move |way: &Proxy| way.stall(Ways::One(toward));
    scene.disturb("a link without questions", one(Toward::Target)).await;
    scene.disturb("a link without answers", one(Toward::Client)).await;
    scene.disturb("a silent link", |way| way.stall(Ways::Both)).await;
    let cut = |way: &Proxy| {
        way.refuse();
        way.reset();
    };
    scene.disturb("a link that is cut", cut).await;
    scene.freeze().await;
    scene.moves().await;
    scene.kill_front().await;
    scene.end().await;
}
