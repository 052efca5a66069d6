//! Changes of operators to the catalog. The nodes act on them at their next look, within a second.

use std::{collections::BTreeMap, sync::Arc};

use forebay_config::Config;
use forebay_edge::access::{self, AccessError};
use forebay_store::{Catalog, CatalogChanges, Home, StoreError, TokenAddOutcome, Versions};
use forebay_types::{NodeName, NodeNameError, ShardId, SystemClock};

use super::catalog::open_catalog;
use crate::shards;

/// How often a change is tried again because somebody else was faster.
pub(super) const TRIES_MAX: u32 = 10;

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// The catalog failed.
    #[error("the catalog: {0}")]
    Catalog(#[from] StoreError),
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// There is no such node.
    #[error("there is no node {0} in the catalog; there are: {1}")]
    NoNode(NodeName, String),
    /// There is no such shard.
    #[error("there is no shard {0} in the catalog")]
    NoShard(u32),
    /// The shard has no home that a pin could end at.
    #[error("shard {0} is not pinned")]
    NotPinned(u32),
    /// The assignment changes all the time.
    #[error("the catalog is changed by others at the moment: try again")]
    Busy,
    /// The token can't be written.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There is no room for one more.
    #[error("the catalog has as many tokens as it may have: those that are revoked go after 30 days")]
    TooManyTokens,
}

pub(super) fn open(config: &Config) -> Result<Arc<dyn Catalog>, OperateError> {
    Ok(open_catalog(&config.catalog, &shards::mysql_options(config))?)
}

fn known(changes: &CatalogChanges, name: &NodeName) -> Result<(), OperateError> {
    if changes.nodes.iter().any(|node| node.name == *name) {
        return Ok(());
    }
    let names: Vec<&str> = changes.nodes.iter().map(|node| node.name.as_str()).collect();
    Err(OperateError::NoNode(name.clone(), names.join(", ")))
}

/// Pins a shard to a node; without a node, ends its pin. Returns its home. `dry_run`: only checks.
pub async fn pin(
    config: &Config,
    shard: u32,
    node: Option<&str>,
    dry_run: bool,
) -> Result<NodeName, OperateError> {
    let catalog = open(config)?;
    let node = node.map(str::parse::<NodeName>).transpose()?;
    for _ in 0..TRIES_MAX {
        let changes = catalog.read(Versions::default()).await?;
        if !changes.shards.iter().flatten().any(|known| known.id.0 == shard) {
            return Err(OperateError::NoShard(shard));
        }
        let homes = changes.assignment.as_ref().map(|assignment| &assignment.homes);
        let home = homes.and_then(|homes| homes.get(&ShardId(shard)));
        let home = match &node {
            Some(node) => {
                known(&changes, node)?;
                Home { node: node.clone(), pinned: true }
            }
            None => {
                let pinned = home.filter(|home| home.pinned).ok_or(OperateError::NotPinned(shard))?;
                Home { node: pinned.node.clone(), pinned: false }
            }
        };
        let name = home.node.clone();
        let change = BTreeMap::from([(ShardId(shard), Some(home))]);
        if dry_run || catalog.assign(changes.versions.assignment, &change).await? {
            return Ok(name);
        }
    }
    Err(OperateError::Busy)
}

/// Writes a token with all rights into the catalog: whoever may write there is the operator.
pub async fn bootstrap(config: &Config, token: &str, name: &str) -> Result<(), OperateError> {
    let (catalog, clock) = (open(config)?, SystemClock::default());
    match access::bootstrap(&*catalog, &clock, token, name, false).await? {
        TokenAddOutcome::Yes(_) => Ok(()),
        TokenAddOutcome::IdTaken | TokenAddOutcome::HasAdmin => Err(OperateError::Busy),
        TokenAddOutcome::NamespaceFull | TokenAddOutcome::RootFull | TokenAddOutcome::Full => {
            Err(OperateError::TooManyTokens)
        }
    }
}

/// Lets a node own no shards, or undoes that. `dry_run`: only checks.
pub async fn drain_node(
    config: &Config,
    node: &str,
    draining: bool,
    dry_run: bool,
) -> Result<(), OperateError> {
    let catalog = open(config)?;
    let name: NodeName = node.parse()?;
    if dry_run || !catalog.set_draining(&name, draining).await? {
        known(&catalog.read(Versions::default()).await?, &name)?;
    }
    Ok(())
}
