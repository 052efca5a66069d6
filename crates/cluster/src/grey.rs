//! Grey nodes: they live, and most of the others do not reach them.

use std::collections::BTreeMap;

use forebay_store::CatalogNode;
use forebay_types::{Monotonic, NodeName};

/// With fewer live nodes nobody is grey: of two, each may be the one that is cut off.
const NODES_MIN: usize = 3;

/// Since when each grey node is grey.
#[derive(Debug, Clone, Default)]
pub struct GreyNodes(BTreeMap<NodeName, Monotonic>);

impl GreyNodes {
    /// Takes in what was read from the catalog just now. Only live nodes vote.
    pub fn observe(&mut self, nodes: &[CatalogNode], is_live: impl Fn(&NodeName) -> bool, now: Monotonic) {
        let live: Vec<_> = nodes.iter().filter(|node| is_live(&node.name)).collect();
        let mut grey = BTreeMap::new();
        for node in &live {
            let votes = live
                .iter()
                .filter(|other| other.name != node.name && other.report.unreachable.contains(&node.name));
            let others = live.len() - 1;
            if live.len() >= NODES_MIN && 2 * votes.count() > others {
                let since = self.0.get(&node.name).copied().unwrap_or(now);
                grey.insert(node.name.clone(), since);
            }
        }
        // Where most are grey nobody knows which are cut off. Once they reach each other again they find that
        // out one after the other, and the last of them has been grey for no time then.
        if 2 * grey.len() > live.len() {
            grey.values_mut().for_each(|since| *since = now);
        }
        self.0 = grey;
    }

    /// Since when a node is grey.
    pub fn since(&self, name: &NodeName) -> Option<Monotonic> {
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_store::NodeReport;

    use super::*;
    use crate::testing;

    fn name(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    /// Nodes, and whom each does not reach.
    fn nodes(reports: &[(&str, &[&str])]) -> Vec<CatalogNode> {
        let node = |(node, unreachable): &(&str, &[&str])| CatalogNode {
            report: NodeReport {
                unreachable: unreachable.iter().map(|it| name(it)).collect(),
                ..NodeReport::default()
            },
            ..testing::node(node, 1, 1)
        };
        reports.iter().map(node).collect()
    }

    #[test]
    fn most_of_the_others_make_a_node_grey() {
        let mut grey = GreyNodes::default();
        let reports = nodes(&[("a", &["b", "c"]), ("b", &["a"]), ("c", &["a"])]);
        grey.observe(&reports, |_| true, at(1));
        grey.observe(&reports, |_| true, at(5));
        assert_eq!((grey.since(&name("a")), grey.since(&name("b"))), (Some(at(1)), None));
        // Half of them is not most of them.
        grey.observe(&nodes(&[("a", &[]), ("b", &["a"]), ("c", &[])]), |_| true, at(6));
        assert_eq!(grey.since(&name("a")), None);
        grey.observe(&reports, |_| true, at(7));
        assert_eq!(grey.since(&name("a")), Some(at(7)), "it was reached in between");
    }

    #[test]
    fn nodes_that_were_all_cut_off_from_each_other_vote_none_out_when_they_meet_again() {
        let mut grey = GreyNodes::default();
        let apart = nodes(&[("a", &["b", "c"]), ("b", &["a", "c"]), ("c", &["a", "b"])]);
        for second in 1..=30 {
            grey.observe(&apart, |_| true, at(second));
        }
        assert_eq!(grey.since(&name("c")), Some(at(30)), "it is grey, and for no time");
        // One of them has found the others.
        let met = nodes(&[("a", &["b", "c"]), ("b", &["a", "c"]), ("c", &[])]);
        for second in [31, 35] {
            grey.observe(&met, |_| true, at(second));
            assert_eq!((grey.since(&name("a")), grey.since(&name("c"))), (None, Some(at(30))));
        }
    }

    #[test]
    fn two_nodes_never_vote_one_out() {
        let mut grey = GreyNodes::default();
        grey.observe(&nodes(&[("a", &["b"]), ("b", &["a"])]), |_| true, at(1));
        assert_eq!((grey.since(&name("a")), grey.since(&name("b"))), (None, None));
        let three = nodes(&[("a", &["b"]), ("b", &["a"]), ("c", &["a", "b"])]);
        grey.observe(&three, |node| *node != name("c"), at(2));
        assert_eq!((grey.since(&name("a")), grey.since(&name("b"))), (None, None), "the dead do not vote");
    }
}
