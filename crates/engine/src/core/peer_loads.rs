//! The load of other nodes' shards, as these tell it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_types::{Monotonic, ShardId};
use rustc_hash::FxHashMap;

use crate::api::ShardLoad;

/// A report counts for so long: owners make one four times a second.
const COUNTS_FOR: Duration = Duration::from_secs(1);

/// The release of another node's program, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Program {
    /// It has told nothing yet.
    #[default]
    Unknown,
    /// It tells of its shards, and knows that a call may name its shard.
    Present,
    /// It is of an earlier release.
    Older,
}

/// A report of one shard, and what this node has sent there since.
#[derive(Debug)]
struct Report {
    /// The node that made it.
    node: Arc<str>,
    /// The load.
    load: ShardLoad,
    /// When it came.
    at: Monotonic,
}

/// The load of other nodes' shards, and which programs these nodes have.
#[derive(Debug, Default)]
pub(crate) struct PeerLoads {
    /// The nodes that live, by address. `None`: nobody has told them yet.
    nodes: Option<BTreeMap<String, Program>>,
    /// The last report of each shard.
    reports: FxHashMap<ShardId, Report>,
}

impl PeerLoads {
    /// These nodes live, from now on.
    pub fn set_nodes(&mut self, nodes: Vec<String>) {
        let known = self.nodes.take().unwrap_or_default();
        let program = |node: &String| known.get(node).copied().unwrap_or_default();
        let nodes: BTreeMap<_, _> = nodes.into_iter().map(|node| (node.clone(), program(&node))).collect();
        self.reports.retain(|_, report| nodes.contains_key(&*report.node));
        self.nodes = Some(nodes);
    }

    /// A node tells nothing of its shards.
    pub fn is_older(&mut self, node: &str) {
        if let Some(program) = self.program(node) {
            *program = Program::Older;
        }
        self.reports.retain(|_, report| *report.node != *node);
    }

    /// The nodes that live, and their programs.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, Program)> {
        self.nodes.iter().flatten().map(|(address, program)| (address.as_str(), *program))
    }

    /// Whether a node's program is of an earlier release, as far as is known.
    pub fn has_older_program(&self, node: &str) -> bool {
        self.nodes.as_ref().and_then(|nodes| nodes.get(node)) == Some(&Program::Older)
    }

    /// A node tells the load of shards that it serves.
    pub fn report(&mut self, node: &str, loads: impl Iterator<Item = ShardLoad>, at: Monotonic) {
        let Some(program) = self.program(node) else { return };
        *program = Program::Present;
        let node: Arc<str> = node.into();
        self.reports.extend(loads.map(|load| (load.shard, Report { node: node.clone(), load, at })));
    }

    /// The load of a shard, if the node that serves it has told that lately.
    pub fn of(&self, shard: ShardId, at: Monotonic, serves: impl Fn(&str) -> bool) -> Option<&ShardLoad> {
        let report = self.reports.get(&shard)?;
        (at.since(report.at) < COUNTS_FOR && serves(&report.node)).then_some(&report.load)
    }

    /// An item was sent to a shard. Its next report knows of it.
    pub fn sent(&mut self, shard: ShardId, bytes: usize) {
        if let Some(Report { load, .. }) = self.reports.get_mut(&shard) {
            load.rows += 1;
            load.bytes += bytes;
        }
    }

    /// A shard has refused items. Until its next report it counts as one that takes none.
    pub fn refused(&mut self, shard: ShardId) {
        if let Some(report) = self.reports.get_mut(&shard) {
            report.load.takes_items = false;
        }
    }

    /// Whether every other node that lives is known to have a program that knows of calls that name their
    /// shard.
    pub fn all_know_named_shards(&self) -> bool {
        let is_present = |program: &Program| *program == Program::Present;
        self.nodes.as_ref().is_some_and(|nodes| nodes.values().all(is_present))
    }

    fn program(&mut self, node: &str) -> Option<&mut Program> {
        self.nodes.as_mut()?.get_mut(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: ShardLoad = ShardLoad { shard: ShardId(3), rows: 5, bytes: 500, takes_items: true };

    #[test]
    fn a_report_counts_for_a_second_and_for_its_node() {
        let mut loads = PeerLoads::default();
        let at = Monotonic::default();
        loads.report("a:1", [LOAD].into_iter(), at);
        assert_eq!(loads.of(ShardId(3), at, |node| node == "a:1"), None, "nobody knows that node");
        loads.set_nodes(vec!["a:1".to_owned()]);
        loads.report("a:1", [LOAD].into_iter(), at);
        assert_eq!(loads.of(ShardId(3), at, |node| node == "a:1"), Some(&LOAD));
        assert_eq!(loads.of(ShardId(3), at, |node| node == "b:1"), None, "the shard was moved");
        assert_eq!(loads.of(ShardId(3), at.plus(COUNTS_FOR), |node| node == "a:1"), None);
        loads.set_nodes(vec!["b:1".to_owned()]);
        loads.set_nodes(vec!["a:1".to_owned()]);
        assert_eq!(loads.of(ShardId(3), at, |node| node == "a:1"), None, "it has been away");
    }

    #[test]
    fn a_report_counts_what_was_sent_since() {
        let mut loads = PeerLoads::default();
        loads.set_nodes(vec!["a:1".to_owned()]);
        let at = Monotonic::default();
        loads.report("a:1", [LOAD].into_iter(), at);
        loads.sent(ShardId(3), 70);
        loads.refused(ShardId(3));
        let now = ShardLoad { rows: 6, bytes: 570, takes_items: false, ..LOAD };
        assert_eq!(loads.of(ShardId(3), at, |node| node == "a:1"), Some(&now));
        loads.report("a:1", [LOAD].into_iter(), at);
        assert_eq!(loads.of(ShardId(3), at, |node| node == "a:1"), Some(&LOAD));
    }

    #[test]
    fn one_node_that_is_older_or_has_told_nothing_is_enough() {
        let mut loads = PeerLoads::default();
        assert!(!loads.all_know_named_shards(), "it is not known which nodes there are");
        loads.set_nodes(Vec::new());
        assert!(loads.all_know_named_shards(), "there is no other node");
        loads.set_nodes(vec!["a:1".to_owned(), "b:1".to_owned()]);
        loads.report("a:1", std::iter::empty(), Monotonic::default());
        assert!(!loads.all_know_named_shards());
        loads.report("b:1", std::iter::empty(), Monotonic::default());
        assert!(loads.all_know_named_shards());
        loads.is_older("b:1");
        assert!(!loads.all_know_named_shards());
        assert_eq!(["a:1", "b:1", "c:1"].map(|node| loads.has_older_program(node)), [false, true, false]);
        loads.set_nodes(vec!["a:1".to_owned()]);
        assert!(loads.all_know_named_shards(), "it is gone");
    }
}
