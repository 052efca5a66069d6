//! The proxies of a random walk, and what faults do to them.

use forebay_testkit::proxy::{BATCH_COMMIT, Proxy};

use super::plan::Step;

/// The ways between nodes, servers and the catalog.
pub struct Proxies {
    /// The way to each server's shards.
    pub ways: Vec<Proxy>,
    /// The way to the catalog.
    pub catalog: Proxy,
    /// The way of other nodes to each node.
    pub peers: Vec<Proxy>,
}

impl Proxies {
    /// Begins a fault. One that is not about ways does nothing here.
    pub fn begin(&self, step: Step) {
        match step {
            Step::ResetWay(way) => self.ways[way].reset(),
            Step::RefuseWay(way) => {
                self.ways[way].refuse();
                self.ways[way].reset();
            }
            Step::StallWay(way, ways) => self.ways[way].stall(ways),
            Step::DelayWay(way, ways, delay) => self.ways[way].delay(ways, delay),
            Step::CutWay(way, toward, bytes) => self.ways[way].cut_after(toward, bytes),
            Step::TrapCommits(way, spring, times) => self.ways[way].trap(BATCH_COMMIT, spring, times),
            Step::StallCatalog(ways) => self.catalog.stall(ways),
            Step::ResetCatalog => self.catalog.reset(),
            Step::RefusePeer(node) => {
                self.peers[node].refuse();
                self.peers[node].reset();
            }
            Step::StallPeer(node, ways) => self.peers[node].stall(ways),
            Step::DelayPeer(node, ways, delay) => self.peers[node].delay(ways, delay),
            _ => {}
        }
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.ways.iter().chain(&self.peers).chain([&self.catalog]).for_each(Proxy::pass);
    }
}
