//! The duty of a node for each shard, by the assignment and by what it sees of the shards.

use std::collections::{BTreeMap, BTreeSet};

use forebay_cluster::weight;
use forebay_engine::{Duty, ShardSight};
use forebay_store::{CatalogShardState, CatalogView};
use forebay_types::{NodeName, ShardId};

/// The duties that the assignment gives a node. A shard without a home is for nobody.
pub fn assigned(catalog: &CatalogView, own: &NodeName) -> BTreeMap<ShardId, Duty> {
    let address_of = |name: &NodeName| {
        let node = catalog.nodes.iter().find(|node| node.name == *name);
        node.map(|node| node.peer_address.clone()).unwrap_or_default()
    };
    let duty = |id: ShardId, state: CatalogShardState| match catalog.assignment.homes.get(&id) {
        Some(home) if home.node == *own && state != CatalogShardState::Offline => Duty::Own,
        home => Duty::Leave { successor: home.map(|home| address_of(&home.node)).unwrap_or_default() },
    };
    catalog.shards.iter().map(|shard| (shard.id, duty(shard.id, shard.state))).collect()
}

/// The duties of the only node: it is to own all shards, whether it reaches them or not.
pub fn all(catalog: &CatalogView) -> BTreeMap<ShardId, Duty> {
    let duty = |state| match state {
        CatalogShardState::Offline => Duty::Leave { successor: String::new() },
        CatalogShardState::Active | CatalogShardState::Draining => Duty::Own,
    };
    catalog.shards.iter().map(|shard| (shard.id, duty(shard.state))).collect()
}

/// Whether a shard is to have no owner.
pub(crate) fn is_offline(catalog: &CatalogView, id: ShardId) -> bool {
    catalog.shards.iter().any(|it| it.id == id && it.state == CatalogShardState::Offline)
}

/// How many nodes have the right to take a silent shard before this one while the catalog does not answer:
/// the other living nodes in rendezvous order. `None`: this node does not know itself.
pub fn turn(shard: ShardId, own: &NodeName, living: &[NodeName]) -> Option<usize> {
    let mut order: Vec<&NodeName> = living.iter().collect();
    order.sort_by_key(|name| std::cmp::Reverse(weight(name, shard)));
    order.iter().position(|name| *name == own)
}

/// The owner of each shard, as far as this node sees it.
pub fn owners(catalog: &CatalogView, own: &NodeName, sights: &[ShardSight]) -> BTreeMap<ShardId, NodeName> {
    let by_address: BTreeMap<&str, &NodeName> =
        catalog.nodes.iter().map(|node| (node.peer_address.as_str(), &node.name)).collect();
    let owner = |sight: &ShardSight| match sight.owned {
        true => Some(own.clone()),
        false => by_address.get(sight.owner.as_str()).map(|name| (*name).clone()),
    };
    sights.iter().filter_map(|sight| Some((sight.id, owner(sight)?))).collect()
}

/// The same without nodes that are gone. A node that does not live, as the catalog shows, still owns what it
/// is seen to renew.
pub(crate) fn living_owners(
    catalog: &CatalogView,
    own: &NodeName,
    sights: &[ShardSight],
    is_live: impl Fn(&NodeName) -> bool,
) -> BTreeMap<ShardId, NodeName> {
    let renewed = sights.iter().filter(|sight| sight.answers && !sight.silent);
    let renewed: BTreeSet<ShardId> = renewed.map(|sight| sight.id).collect();
    let mut owners = owners(catalog, own, sights);
    owners.retain(|shard, owner| is_live(owner) || renewed.contains(shard));
    owners
}

/// Nodes whose shards have shown no sign of life for a whole shard lease: all that this node sees of theirs.
/// Such a node serves nobody, whether its process lives or not.
pub(crate) fn silent_nodes(
    own: &NodeName,
    owners: &BTreeMap<ShardId, NodeName>,
    sights: &[ShardSight],
) -> Vec<NodeName> {
    let mut silent: BTreeMap<&NodeName, bool> = BTreeMap::new();
    for sight in sights.iter().filter(|sight| !sight.owned && sight.answers) {
        // This node may have left a shard in its own name behind.
        if let Some(owner) = owners.get(&sight.id).filter(|owner| *owner != own) {
            *silent.entry(owner).or_insert(true) &= sight.silent;
        }
    }
    silent.into_iter().filter(|(_, silent)| *silent).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use forebay_store::{Assignment, CatalogNode, CatalogShard, Home, NodeReport, Versions};
    use forebay_types::{ClusterId, Incarnation};

    use super::*;

    fn name(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    fn catalog() -> CatalogView {
        let node = |node: &str| CatalogNode {
            name: name(node),
            incarnation: Incarnation([0; 16]),
            peer_address: format!("{node}:7422"),
            clients_address: String::new(),
            http_address: String::new(),
            release: String::new(),
            format: 1,
            draining: false,
            started_at: None,
            beats: 1,
            report: NodeReport::default(),
        };
        let shard = |id, state| CatalogShard { id: ShardId(id), url: format!("mysql://db/{id}"), state };
        let home = |id, node: &str| (ShardId(id), Home { node: name(node), pinned: false });
        CatalogView {
            cluster: ClusterId::default(),
            versions: Versions::default(),
            nodes: vec![node("a"), node("b")],
            shards: vec![
                shard(1, CatalogShardState::Active),
                shard(2, CatalogShardState::Draining),
                shard(3, CatalogShardState::Active),
                shard(4, CatalogShardState::Offline),
            ],
            assignment: Assignment { version: 1, homes: [home(1, "a"), home(2, "b"), home(4, "a")].into() },
        }
    }

    fn sight(id: u32, owner: &str, silent: bool) -> ShardSight {
        ShardSight {
            id: ShardId(id),
            server: "db".to_owned(),
            wanted: false,
            owned: owner == "own",
            owner: owner.to_owned(),
            silent,
            prepared: false,
            looked_at: true,
            answers: true,
            stuck: false,
        }
    }

    #[test]
    fn a_node_owns_what_is_assigned_to_it_and_leaves_the_rest_to_its_homes() {
        let leave = |successor: &str| Duty::Leave { successor: successor.to_owned() };
        let expected = [(1, Duty::Own), (2, leave("b:7422")), (3, leave("")), (4, leave("a:7422"))];
        assert_eq!(assigned(&catalog(), &name("a")), expected.map(|(id, duty)| (ShardId(id), duty)).into());
    }

    #[test]
    fn a_node_all_of_whose_shards_are_silent_is_silent() {
        let sights = [sight(1, "b:7422", true), sight(2, "b:7422", true), sight(3, "own", false)];
        let owners = owners(&catalog(), &name("a"), &sights);
        assert_eq!(owners[&ShardId(3)], name("a"));
        assert_eq!(silent_nodes(&name("a"), &owners, &sights), [name("b")]);
        let sights = [sight(1, "b:7422", true), sight(2, "b:7422", false)];
        assert!(
            silent_nodes(&name("a"), &owners, &sights).is_empty(),
            "one of its shards lives: the other is slow"
        );
    }

    #[test]
    fn a_node_that_is_gone_owns_what_it_renews_and_nothing_else() {
        let away = ShardSight { answers: false, ..sight(2, "b:7422", false) };
        let sights = [sight(1, "b:7422", false), away, sight(3, "b:7422", true), sight(4, "own", false)];
        let all = owners(&catalog(), &name("a"), &sights);
        let owners =
            |b_lives| living_owners(&catalog(), &name("a"), &sights, |node| b_lives || *node == name("a"));
        assert_eq!(owners(true), all);
        assert_eq!(owners(false), [(ShardId(1), name("b")), (ShardId(4), name("a"))].into());
    }

    #[test]
    fn without_a_catalog_each_living_node_has_its_turn() {
        let living = [name("a"), name("b"), name("c")];
        let mut turns: Vec<_> = living.iter().map(|own| turn(ShardId(7), own, &living).unwrap()).collect();
        turns.sort_unstable();
        assert_eq!(turns, [0, 1, 2]);
        assert_eq!(turn(ShardId(7), &name("d"), &living), None);
    }
}
