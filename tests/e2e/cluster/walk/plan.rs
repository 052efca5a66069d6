//! What a random walk does next. It follows from the seed alone.

use std::time::Duration;

use forebay_testkit::{
    proxy::{Spring, Toward, Ways},
    servers::Kill,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// Nodes of the cluster.
pub const NODES: usize = 3;
/// Database servers with shards. The first has the catalog too.
pub const SERVERS: usize = 2;
/// Shards of each server.
pub const SHARDS_PER_SERVER: usize = 2;

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
    /// What other nodes tell a node does not arrive, and connections stay open.
    StallPeer(usize, Ways),
    /// An operator moves a shard to a node.
    MoveShard(u32, usize),
    /// An operator kills so many statements, or their connections.
    Kill(usize, Kill, usize),
}

/// What a fault is about. Two faults at once are about different things.
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
            Self::RefusePeer(node) | Self::StallPeer(node, _) => Subject::Peer(node),
            Self::MoveShard(..) => Subject::Operator,
            Self::Kill(server, ..) => Subject::Server(server),
        }
    }

    /// Whether another fault may happen at the same time. Statements are killed where some run.
    fn shares_its_time(self) -> bool {
        !matches!(self, Self::Kill(..))
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
pub struct Plan(StdRng);

impl Plan {
    /// The plan of this seed.
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// The next turn.
    pub fn turn(&mut self) -> Turn {
        let mut steps = vec![self.step()];
        let second = self.step();
        let apart = second.subject() != steps[0].subject();
        let may = apart && second.shares_its_time() && steps[0].shares_its_time();
        if self.0.random_bool(0.4) && may {
            steps.push(second);
        }
        // Many faults are short. Some are longer than leases, a few are longer than time-outs of statements.
        let most = [500, 3_000, 12_000][[0, 0, 0, 0, 1, 1, 1, 1, 1, 2][self.0.random_range(0..10)]];
        Turn { steps, lasts: Duration::from_millis(self.0.random_range(most / 4..most)) }
    }

    fn step(&mut self) -> Step {
        let random = &mut self.0;
        let (node, server) = (random.random_range(0..NODES), random.random_range(0..SERVERS));
        let toward = if random.random_bool(0.5) { Toward::Target } else { Toward::Client };
        let ways = if random.random_bool(0.5) { Ways::Both } else { Ways::One(toward) };
        let few = random.random_range(1..=4);
        let kind = random.random_range(0..17);
        let size = random.random_range(0..3_u32);
        match kind {
            0 => Step::KillNode(node),
            1 => Step::StopNode(node),
            2 => Step::FreezeNode(node),
            3 => Step::KillServer(server),
            4 => Step::FreezeServer(server),
            5 => Step::ResetWay(server),
            6 => Step::RefuseWay(server),
            7 => Step::StallWay(server, ways),
            8 => Step::DelayWay(server, ways, Duration::from_millis(10 * 10_u64.pow(size))),
            9 => Step::CutWay(server, toward, 50 * 20_usize.pow(size)),
            10 => Step::TrapCommits(server, Spring::ResetBefore, few),
            11 => {
                Step::TrapCommits(server, [Spring::ResetAfter, Spring::SilentAfter][size as usize % 2], few)
            }
            12 => Step::TrapCommits(server, Spring::SilentBefore, few),
            13 => [Step::ResetCatalog, Step::StallCatalog(ways)][size as usize % 2],
            14 => [Step::RefusePeer(node), Step::StallPeer(node, ways)][size as usize % 2],
            15 => Step::MoveShard(few.min((SERVERS * SHARDS_PER_SERVER) as u32), node),
            _ => Step::Kill(server, [Kill::Query, Kill::Connection][size as usize % 2], few as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed() {
        let turns = |seed| {
            let mut plan = Plan::new(seed);
            (0..50).map(|_| plan.turn()).collect::<Vec<_>>()
        };
        assert_eq!(turns(7), turns(7));
        assert_ne!(turns(7), turns(8));
    }

    #[test]
    fn every_kind_of_step_comes() {
        let mut plan = Plan::new(1);
        let turns: Vec<Turn> = (0..1_000).map(|_| plan.turn()).collect();
        let kinds: std::collections::HashSet<_> =
            turns.iter().flat_map(|turn| &turn.steps).map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 17);
        assert!(turns.iter().any(|turn| turn.steps.len() == 2));
    }
}
