//! Steps of a random walk. They follow from the seed alone.

use std::time::Duration;

use forebay_testkit::{
    proxy::{Spring, Toward, Ways},
    servers::Kill,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::cluster::conflicts::Rows;

/// Nodes of the cluster.
pub const NODES: usize = 3;
/// Database servers with shards. The first has the catalog too.
pub const SERVERS: usize = 2;
/// Shards of each server.
pub const SHARDS_PER_SERVER: usize = 2;

/// Kind of the network between nodes, servers and clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wires {
    /// Proxies on this machine's loopback.
    Proxies,
    /// Network namespaces, in which packets are lost without a word.
    Namespaces,
}

/// Two sides that packets are lost between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// A node, and the shards of a server.
    Server(usize, usize),
    /// A node, and the catalog.
    Catalog(usize),
    /// A node, and all others.
    Peers(usize),
    /// A node, and clients.
    Clients(usize),
}

/// Which packets of a link are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketLoss {
    /// All of them.
    All,
    /// Packets to the node.
    ToNode,
    /// Packets from the node.
    FromNode,
}

/// A fault, or what an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// SIGKILL of a node, which is started again later.
    KillNode(usize),
    /// SIGTERM of a node, which is started again later.
    StopNode(usize),
    /// SIGSTOP and SIGCONT of a node.
    FreezeNode(usize),
    /// SIGKILL of a server, which is started again later.
    KillServer(usize),
    /// SIGSTOP and SIGCONT of a server.
    FreezeServer(usize),
    /// The connections to a server are reset once.
    ResetWay(usize),
    /// A server can't be reached: connections are reset, and new ones are refused.
    RefuseWay(usize),
    /// Nothing arrives, and connections stay open.
    StallWay(usize, Ways),
    /// Each piece of bytes comes so much later.
    DelayWay(usize, Ways, Duration),
    /// Connections to a server end after so many bytes.
    CutWay(usize, Toward, usize),
    /// Something happens to so many COMMITs of batches.
    TrapCommits(usize, Spring, u32),
    /// The way to the catalog alone is stalled.
    StallCatalog(Ways),
    /// The connections to the catalog are reset once.
    ResetCatalog,
    /// Other nodes can't reach a node.
    RefusePeer(usize),
    /// Messages from other nodes to a node do not arrive, and connections stay open.
    StallPeer(usize, Ways),
    /// Each piece of bytes on the way of other nodes to a node comes so much later.
    DelayPeer(usize, Ways, Duration),
    /// An operator moves a shard to a node.
    MoveShard(u32, usize),
    /// An operator kills so many statements, or their connections.
    Kill(usize, Kill, usize),
    /// Another program holds the rows of one kind that batches of a shard need.
    HoldRows(u32, Rows),
    /// The clock of a server jumps by so many seconds, and back.
    JumpClock(usize, i64),
    /// Packets of a link are lost.
    Lose(Link, PacketLoss),
}

/// Subject of a fault. Two faults at once have different subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A process.
    Node(usize),
    /// A server.
    Server(usize),
    /// The way to a server.
    Way(usize),
    /// The way to the catalog.
    Catalog,
    /// The way to a node.
    Peer(usize),
    /// The command line.
    Operator,
    /// The rows of a shard.
    Rows(u32),
    /// Packets.
    Link(Link),
}

impl Step {
    fn subject(self) -> Subject {
        match self {
            Self::KillNode(node) | Self::StopNode(node) | Self::FreezeNode(node) => Subject::Node(node),
            Self::KillServer(server) | Self::FreezeServer(server) => Subject::Server(server),
            Self::ResetWay(way)
            | Self::RefuseWay(way)
            | Self::StallWay(way, _)
            | Self::DelayWay(way, ..)
            | Self::CutWay(way, ..)
            | Self::TrapCommits(way, ..) => Subject::Way(way),
            Self::StallCatalog(_) | Self::ResetCatalog => Subject::Catalog,
            Self::RefusePeer(node) | Self::StallPeer(node, _) | Self::DelayPeer(node, ..) => {
                Subject::Peer(node)
            }
            Self::MoveShard(..) => Subject::Operator,
            Self::Kill(server, ..) | Self::JumpClock(server, _) => Subject::Server(server),
            Self::HoldRows(shard, _) => Subject::Rows(shard),
            Self::Lose(link, _) => Subject::Link(link),
        }
    }

    /// Whether another fault may happen at the same time. Statements are killed, and
    /// rows are held, where a server works.
    fn shares_its_time(self) -> bool {
        !matches!(self, Self::Kill(..) | Self::HoldRows(..))
    }
}

/// Faults at one time, and how long they last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// One of them or two.
    pub steps: Vec<Step>,
    /// So long, and then all is well again.
    pub lasts: Duration,
}

/// Makes turns.
pub struct Plan {
    /// Everything follows from it.
    random: StdRng,
    /// Their faults are among the others.
    wires: Wires,
}

impl Plan {
    /// The plan of this seed.
    pub fn new(seed: u64, wires: Wires) -> Self {
        Self { random: StdRng::seed_from_u64(seed), wires }
    }

    /// The next turn.
    pub fn turn(&mut self) -> Turn {
        let mut steps = vec![self.step()];
        let second = self.step();
        let apart = second.subject() != steps[0].subject();
        let may = apart && second.shares_its_time() && steps[0].shares_its_time();
        if self.random.random_bool(0.4) && may {
            steps.push(second);
        }
        // Many faults are short. Some are longer than leases, a few are longer than time-outs of statements.
        let most = [500, 3_000, 12_000][[0, 0, 0, 0, 1, 1, 1, 1, 1, 2][self.random.random_range(0..10)]];
        let lost = steps.iter().any(|step| matches!(step, Step::Lose(..)));
        // Packets that are lost for less than that are sent again, and nobody notices.
        let most = if lost { most.max(6_000) } else { most };
        Turn { steps, lasts: Duration::from_millis(self.random.random_range(most / 4..most)) }
    }

    fn step(&mut self) -> Step {
        let of_wires = self.random.random_bool(0.6);
        match self.wires {
            Wires::Proxies if of_wires => self.of_proxies(),
            Wires::Namespaces if of_wires => self.of_namespaces(),
            _ => self.of_processes(),
        }
    }

    fn of_processes(&mut self) -> Step {
        let random = &mut self.random;
        let (node, server) = (random.random_range(0..NODES), random.random_range(0..SERVERS));
        let shard = random.random_range(1..=(SERVERS * SHARDS_PER_SERVER) as u32);
        let few = random.random_range(1..=4);
        match random.random_range(0..9) {
            0 => Step::KillNode(node),
            1 => Step::StopNode(node),
            2 => Step::FreezeNode(node),
            3 => Step::KillServer(server),
            4 => Step::FreezeServer(server),
            5 => Step::MoveShard(shard, node),
            6 => Step::HoldRows(shard, Rows::ALL[random.random_range(0..Rows::ALL.len())]),
            7 => Step::JumpClock(server, [3_600, -3_600][random.random_range(0..2)]),
            _ => Step::Kill(server, [Kill::Query, Kill::Connection][few % 2], few),
        }
    }

    fn of_proxies(&mut self) -> Step {
        let random = &mut self.random;
        let (node, server) = (random.random_range(0..NODES), random.random_range(0..SERVERS));
        let toward = if random.random_bool(0.5) { Toward::Target } else { Toward::Client };
        let ways = if random.random_bool(0.5) { Ways::Both } else { Ways::One(toward) };
        let few = random.random_range(1..=4);
        let size = random.random_range(0..3_u32);
        match random.random_range(0..10) {
            0 => Step::ResetWay(server),
            1 => Step::RefuseWay(server),
            2 => Step::StallWay(server, ways),
            3 => Step::DelayWay(server, ways, Duration::from_millis(10 * 10_u64.pow(size))),
            4 => Step::CutWay(server, toward, 50 * 20_usize.pow(size)),
            5 => Step::TrapCommits(server, Spring::ResetBefore, few),
            6 => Step::TrapCommits(server, [Spring::ResetAfter, Spring::SilentAfter][size as usize % 2], few),
            7 => Step::TrapCommits(server, Spring::SilentBefore, few),
            8 => [Step::ResetCatalog, Step::StallCatalog(ways)][size as usize % 2],
            _ => [
                Step::RefusePeer(node),
                Step::StallPeer(node, ways),
                Step::DelayPeer(node, ways, Duration::from_millis(200)),
            ][size as usize],
        }
    }

    fn of_namespaces(&mut self) -> Step {
        let random = &mut self.random;
        let (node, server) = (random.random_range(0..NODES), random.random_range(0..SERVERS));
        let links = [Link::Server(node, server), Link::Catalog(node), Link::Peers(node), Link::Clients(node)];
        let link = links[random.random_range(0..links.len())];
        Step::Lose(
            link,
            [PacketLoss::All, PacketLoss::ToNode, PacketLoss::FromNode][random.random_range(0..3)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed() {
        let turns = |seed| {
            let mut plan = Plan::new(seed, Wires::Proxies);
            (0..50).map(|_| plan.turn()).collect::<Vec<_>>()
        };
        assert_eq!(turns(7), turns(7));
        assert_ne!(turns(7), turns(8));
    }

    #[test]
    fn every_kind_of_step_comes() {
        for (wires, all) in [(Wires::Proxies, 20), (Wires::Namespaces, 10)] {
            let mut plan = Plan::new(1, wires);
            let turns: Vec<Turn> = (0..1_000).map(|_| plan.turn()).collect();
            let kinds: std::collections::HashSet<_> =
                turns.iter().flat_map(|turn| &turn.steps).map(std::mem::discriminant).collect();
            assert_eq!(kinds.len(), all);
            assert!(turns.iter().any(|turn| turn.steps.len() == 2));
        }
    }
}
