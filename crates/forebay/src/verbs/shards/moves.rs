//! Moves a shard, by the catalog: the nodes act on it within a second.

use std::{io::Write as _, path::Path};

use forebay_node::{cluster, config::Config};

use crate::failure::Failure;

/// Pins a shard to a node, or ends its pin.
pub async fn assign(shard: u32, node: Option<&str>, config: &Path) -> Result<(), Failure> {
    let config = Config::load(config, Vec::new())?;
    let home = cluster::pin(&config, shard, node).await.map_err(|error| Failure::new(error.to_string()))?;
    let line = match node {
        Some(_) => format!("shard {shard} is pinned to {home}"),
        None => format!("shard {shard} is no longer pinned to {home}"),
    };
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
