//! Which database servers a node reaches. A short disturbance is not reported: the shards of a server that a
//! node does not reach are given to others.

use std::{collections::BTreeMap, time::Duration};

use forebay_cluster::ClusterView;
use forebay_engine::ShardSight;
use forebay_types::Monotonic;

/// A server of which no shard has answered for so long is out of reach. A shard counts as answering until it
/// has left something without an answer for a second, a take-over too. A server that takes two seconds for a
/// commit is reached: its shards would be no better off elsewhere.
const UNREACHED_AFTER: Duration = Duration::from_secs(3);
/// A server that has answered without a break for so long is reached by all nodes that report it, and not by
/// the others.
const STEADY_AFTER: Duration = Duration::from_secs(3);

/// When each server answered, by its name.
#[derive(Debug, Default)]
pub struct Reach(BTreeMap<String, AnswerTimes>);

/// When a server answered.
#[derive(Debug)]
struct AnswerTimes {
    /// When one of its shards answered last, or when it was first looked at.
    last: Monotonic,
    /// Since when one of its shards has answered in each look. `None`: not in the last one.
    since: Option<Monotonic>,
}

impl Reach {
    /// Takes in what the node sees. Returns the servers that it reaches.
    pub fn observe(&mut self, sights: &[ShardSight], now: Monotonic) -> Vec<String> {
        self.0.retain(|server, _| sights.iter().any(|sight| sight.server == *server));
        for (server, answered) in &mut self.0 {
            if !sights.iter().any(|sight| sight.server == *server && sight.answers) {
                answered.since = None;
            }
        }
        for sight in sights.iter().filter(|sight| sight.answers) {
            let first = AnswerTimes { last: now, since: None };
            let answered = self.0.entry(sight.server.clone()).or_insert(first);
            answered.last = now;
            answered.since.get_or_insert(now);
        }
        let reached = self.0.iter().filter(|(_, it)| now.since(it.last) < UNREACHED_AFTER);
        reached.map(|(server, _)| server.clone()).collect()
    }

    /// Lets the homes of shards count as reaching a server that this node has not seen answering for a while.
    /// Where a server goes away, or comes back, nodes do not report that at the same time: the last one to
    /// lose it, or the first one to reach it, must not get the shards of all others. The shards of such a
    /// server do not move for evenness: this node may be the one that is cut off, and would give them to
    /// itself.
    pub(crate) fn excuse(&self, cluster: &mut ClusterView) {
        let steady = |server: &str| {
            let since = self.0.get(server).and_then(|answered| answered.since);
            since.is_some_and(|since| cluster.now.since(since) >= STEADY_AFTER)
        };
        let shards = cluster.shards.values_mut().filter(|shard| !shard.server.is_empty());
        for shard in shards {
            shard.steady = steady(&shard.server);
            if shard.steady {
                continue;
            }
            let home = shard.home.as_ref().map(|home| &home.node);
            if let Some(node) = home.and_then(|home| cluster.nodes.get_mut(home)) {
                node.servers.insert(shard.server.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_cluster::{NodeView, Reason, ShardView, plan};
    use forebay_store::{CatalogShardState, Home};
    use forebay_types::{NodeName, ShardId};

    use super::*;

    fn sight(server: &str, answers: bool) -> ShardSight {
        ShardSight {
            id: ShardId(1),
            server: server.to_owned(),
            wanted: false,
            owned: false,
            owner: String::new(),
            silent: false,
            prepared: false,
            looked_at: true,
            answers,
            stuck: false,
        }
    }

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    #[test]
    fn a_server_is_reached_until_it_has_not_answered_for_a_while() {
        let mut reach = Reach::default();
        assert_eq!(reach.observe(&[sight("db1", true), sight("db2", false)], at(0)), ["db1"]);
        assert_eq!(reach.observe(&[sight("db1", false), sight("db2", true)], at(2_999)), ["db1", "db2"]);
        assert_eq!(reach.observe(&[sight("db1", false), sight("db2", true)], at(3_000)), ["db2"]);
        // One shard of a server is enough.
        assert_eq!(reach.observe(&[sight("db1", false), sight("db1", true)], at(9_000)), ["db1"]);
    }

    fn name(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    /// Two nodes with a shard each. Says which of them report that they reach its server.
    fn cluster(now: Monotonic, reported: [bool; 2]) -> ClusterView {
        let node = |reached: bool| NodeView {
            live: true,
            late: false,
            draining: false,
            joined_since: at(0),
            servers: reached.then(|| "db".to_owned()).into_iter().collect(),
            grey_since: None,
        };
        let shard = |home: &str| ShardView {
            server: "db".to_owned(),
            state: CatalogShardState::Active,
            home: Some(Home { node: name(home), pinned: false }),
            home_since: None,
            owner: Some(name(home)),
            silent: false,
            stuck: false,
            steady: true,
        };
        ClusterView {
            now,
            nodes: [(name("a"), node(reported[0])), (name("b"), node(reported[1]))].into(),
            shards: [(ShardId(1), shard("a")), (ShardId(2), shard("b"))].into(),
        }
    }

    #[test]
    fn the_last_node_to_lose_a_server_and_the_first_to_reach_it_do_not_get_all_shards() {
        let mut reach = Reach::default();
        let mut moves = |second: u64, answers, reported| {
            let now = at(second * 1_000);
            reach.observe(&[sight("db", answers)], now);
            let mut cluster = cluster(now, reported);
            reach.excuse(&mut cluster);
            plan(&cluster).into_iter().map(|it| (it.shard.0, it.reason)).collect::<Vec<_>>()
        };
        let unreached = vec![(2, Reason::ServerUnreached)];
        assert_eq!(moves(97, true, [true, true]), []);
        assert_eq!(moves(100, true, [true, false]), unreached, "it has answered all the time");
        assert_eq!(moves(101, false, [true, false]), [], "it may be away");
        assert_eq!(moves(102, false, [false, false]), []);
        assert_eq!(moves(103, true, [true, false]), [], "it has just come back");
        assert_eq!(moves(105, true, [true, false]), []);
        assert_eq!(moves(106, true, [true, false]), unreached, "the other one does not reach it");
    }
}
