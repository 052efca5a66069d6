//! Takes the node's name in the catalog.

use std::time::Duration;

use forebay_store::{Catalog, CatalogNode, JoinOutcome, Sighting, StoreError, Versions};
use forebay_types::{NodeName, is_loopback};

use crate::until_answered::until_answered;

/// A process whose counter has stood still for so long has lost its name to whoever wants it.
pub(crate) const NAME_FREE_AFTER: Duration = Duration::from_secs(4);

/// Why a node could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The catalog failed.
    #[error("cannot join the cluster: {0}")]
    Catalog(#[from] StoreError),
    /// A living process has the name.
    #[error("another process that lives has the name {0} (node.name): give each node a name of its own")]
    NameTaken(String),
    /// A living node has the address.
    #[error(
        "node {0} lives and has the address {1} as well: each node has an address of its own, by which \
         others find it (node.peer, node.advertise)"
    )]
    AddressTaken(NodeName, String),
    /// A living node has the shards, and it or this one takes no others.
    #[error(
        "node {0}, at {1}, serves these shards, and a node without node.advertise is the only one: for \
         several, set node.advertise and node.peer_secret_file at each of them"
    )]
    Alone(NodeName, String),
    /// A living node is on this machine, and this one is not, or the other way round.
    #[error(
        "node {0} lives, others find it at {1}, and this one at {2}: one of them is an address that only its \
         own machine reaches (node.peer, node.advertise)"
    )]
    AddressElsewhere(NodeName, String, String),
}

/// Refuses an address that would lead others to another node, or nowhere. A row that a dead node left is no
/// hindrance: its counter is watched, as that of a name.
pub(crate) async fn check_address(
    catalog: &dyn Catalog,
    node: &CatalogNode,
    known: Versions,
) -> Result<(), JoinError> {
    let conflicts = async || {
        let nodes = until_answered(|| catalog.read(known)).await?.nodes;
        let others = nodes.into_iter().filter(|other| other.name != node.name);
        Ok::<Vec<CatalogNode>, StoreError>(others.filter(|other| conflict(node, other).is_some()).collect())
    };
    let before = conflicts().await?;
    if before.is_empty() {
        return Ok(());
    }
    tracing::info!("other nodes had addresses that exclude this one's; waiting to see that they are dead");
    tokio::time::sleep(NAME_FREE_AFTER).await;
    let sighting = |node: &CatalogNode| Sighting { incarnation: node.incarnation, beats: node.beats };
    let stands_still = |now: &CatalogNode| {
        before.iter().any(|before| before.name == now.name && sighting(before) == sighting(now))
    };
    let alive = conflicts().await?.into_iter().find(|now| !stands_still(now));
    if let Some(conflict) = alive.and_then(|other| conflict(node, &other)) {
        return Err(conflict);
    }
    if node.is_alone() {
        // Nobody else would see that they are gone for good.
        for dead in &before {
            until_answered(|| catalog.leave(&dead.name, dead.incarnation)).await?;
            tracing::info!("removed the node {}, which is dead", dead.name);
        }
    }
    Ok(())
}

/// Why two nodes can't both be at their addresses.
fn conflict(node: &CatalogNode, other: &CatalogNode) -> Option<JoinError> {
    let (own, others) = (node.peer_address.clone(), other.peer_address.clone());
    match () {
        () if node.is_alone() || other.is_alone() => Some(JoinError::Alone(other.name.clone(), others)),
        () if own == others => Some(JoinError::AddressTaken(other.name.clone(), others)),
        () if is_loopback(&own) != is_loopback(&others) => {
            Some(JoinError::AddressElsewhere(other.name.clone(), others, own))
        }
        () => None,
    }
}

/// Takes the node's name. `before`: who had it when the catalog was read. Where another process has it, its
/// counter is watched: one that moves keeps the name. Waits while the catalog does not answer: a call whose
/// answer was lost is repeated, and if it took effect, the name is ours already.
pub async fn join(
    catalog: &dyn Catalog,
    node: &CatalogNode,
    before: Option<&CatalogNode>,
) -> Result<(), JoinError> {
    let JoinOutcome::NameTaken(first) = until_answered(|| catalog.join(node, None)).await? else {
        return Ok(());
    };
    if !before.is_some_and(|before| had_the_ports_of(before, node)) {
        tracing::info!("another process had the name {}; waiting to see that it is dead", node.name);
        tokio::time::sleep(NAME_FREE_AFTER).await;
    }
    match until_answered(|| catalog.join(node, Some(first))).await? {
        JoinOutcome::Yes => Ok(()),
        JoinOutcome::NameTaken(_) if node.is_alone() => {
            let address = before.map_or(&node.peer_address, |before| &before.peer_address);
            Err(JoinError::Alone(node.name.clone(), address.clone()))
        }
        JoinOutcome::NameTaken(_) => Err(JoinError::NameTaken(node.name.to_string())),
    }
}

/// Whether a process that is alone had this one's ports: it is dead, because this one has them.
fn had_the_ports_of(before: &CatalogNode, node: &CatalogNode) -> bool {
    let ports = |node: &CatalogNode| (node.peer_address.clone(), node.http_address.clone());
    node.is_alone() && before.is_alone() && ports(before) == ports(node)
}
