//! Adds, drains and removes shards, by the catalog: the nodes act on it within a second.

use std::{io::Write as _, path::Path};

use forebay_node::{
    cluster::{self, ShardsError},
    config::Config,
};

use crate::failure::Failure;

fn failed(error: ShardsError) -> Failure {
    Failure::new(error.to_string())
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Adds a shard.
pub async fn add(url: &str, config: &Path) -> Result<(), Failure> {
    let config = Config::load(config, Vec::new())?;
    let (id, is_new) = cluster::add_shard(&config, url).await.map_err(failed)?;
    let schema = if is_new { "its schema was made" } else { "its schema was there" };
    say(&format!("shard {id} was added; {schema}"))
}

/// Drains a shard, or undoes that.
pub async fn drain(shard: u32, undo: bool, config: &Path) -> Result<(), Failure> {
    let config = Config::load(config, Vec::new())?;
    cluster::drain_shard(&config, shard, !undo).await.map_err(failed)?;
    say(&match undo {
        false => format!("shard {shard} takes no new items; `forebay shards` says what is left in it"),
        true => format!("shard {shard} takes new items again"),
    })
}

/// Removes a shard.
pub async fn remove(shard: u32, lost: bool, config: &Path) -> Result<(), Failure> {
    let config = Config::load(config, Vec::new())?;
    cluster::remove_shard(&config, shard, lost).await.map_err(failed)?;
    say(&match lost {
        false => format!("shard {shard} was removed"),
        true => format!(
            "shard {shard} was removed with all that was in it: its items are lost, and what was stored \
             there under a dedupe key or a request id may be stored again"
        ),
    })
}
