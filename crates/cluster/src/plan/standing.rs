//! Whether each node may take or keep shards.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::NodeName;

use super::moves::{FIRST_JOINERS_WAIT, JOINER_WAITS, OUTVOTED_AFTER, Reason};
use crate::view::{ClusterView, NodeView};

/// Of two nodes, neither is voted out.
const NODES_MIN: usize = 3;

/// Whether a node may take or keep shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may take shards.
    Eligible,
    /// It has just joined, and will be eligible soon. It keeps its shards and takes no others.
    Joins,
    /// It keeps its shards and takes no others: its counter stands still, or most others do not reach it.
    Keeps,
    /// It should lose its shards, one after the other.
    Leaves(Reason),
    /// It is dead. So is every node that is not in the catalog.
    Gone,
}

/// The standing of each node of the catalog.
pub(super) fn standings(view: &ClusterView) -> BTreeMap<&NodeName, Standing> {
    let outvoted = outvoted(view);
    let lived = |node: &NodeView| view.now.since(node.joined_since);
    // Where nobody has lived for long, as when a cluster begins, nobody needs to wait for the others for
    // long.
    let has_lived = |span| view.nodes.values().any(|node| node.live && !node.draining && lived(node) >= span);
    let waits = match () {
        () if has_lived(JOINER_WAITS) => JOINER_WAITS,
        // All that have joined by now.
        () if has_lived(FIRST_JOINERS_WAIT) => Duration::ZERO,
        () => FIRST_JOINERS_WAIT,
    };
    let standing = |name: &NodeName, node: &NodeView| match () {
        () if !node.live => Standing::Gone,
        () if node.draining => Standing::Leaves(Reason::Draining),
        () if outvoted == Some(name) => Standing::Leaves(Reason::Outvoted),
        () if node.grey_since.is_some() || node.late => Standing::Keeps,
        () if lived(node) < waits => Standing::Joins,
        () => Standing::Eligible,
    };
    view.nodes.iter().map(|(name, node)| (name, standing(name, node))).collect()
}

/// The node that hands over because most of the others do not reach it: the first by name, so that all
/// planners pick the same one. Once it has no shard any more, the next one is next.
fn outvoted(view: &ClusterView) -> Option<&NodeName> {
    if view.nodes.values().filter(|node| node.live).count() < NODES_MIN {
        return None;
    }
    let is_long_grey =
        |node: &NodeView| node.grey_since.is_some_and(|since| view.now.since(since) >= OUTVOTED_AFTER);
    let has_shards = |name: &NodeName| {
        let mut shards = view.shards.values();
        shards.any(|it| {
            it.home.as_ref().is_some_and(|home| home.node == *name) || it.owner.as_ref() == Some(name)
        })
    };
    let mut names = view.nodes.iter().filter(|(_, node)| node.live && !node.draining && is_long_grey(node));
    names.find(|(name, _)| has_shards(name)).map(|(name, _)| name)
}
