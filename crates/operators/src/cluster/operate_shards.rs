//! Adds, drains and removes shards of the catalog. The nodes act on it at their next look, within a second.

use std::{fmt, sync::Arc};

use forebay_config::{Config, ShardConfig, ShardUrl};
use forebay_store::{
    Catalog, CatalogError, CatalogShard, CatalogShardState, MigrateError, MySqlServers, Remains, Shard,
    ShardTopology, SqliteShard, StoreError, Versions, check_shard_url,
};
use forebay_types::{Clock, ShardId, SystemClock, Timestamp};

use super::{
    catalog::shard_config,
    operate::{OperateError, TRIES_MAX, open},
};
use crate::shards::{self, Opener};

/// Why the shards were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    /// The catalog failed, or does not have what is named.
    #[error(transparent)]
    Operate(#[from] OperateError),
    /// The catalog refuses the change.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog has no schema.
    #[error("the catalog has no schema: run `forebay migrate`")]
    NoCatalogSchema,
    /// The URL is malformed.
    #[error("{0}")]
    Url(String),
    /// The shard's database failed.
    #[error("the new shard: {0}")]
    New(StoreError),
    /// The shard's schema could not be made. The shard was not added.
    #[error("the new shard's schema: {0}")]
    Migrate(MigrateError),
    /// The schema belongs to others.
    #[error("the schema is {0}: it is not of this cluster")]
    OtherCluster(String),
    /// Its server has no shard of the cluster.
    #[error(
        "the server {0} has no shard of this cluster yet: add its first one with `forebay shard add \
         --config`, where the nodes' configuration is"
    )]
    NewServer(String),
    /// It is the last one that takes new items.
    #[error("shard {0} is the last one that takes new items: add another one first")]
    Last(u32),
    /// There is no such shard.
    #[error("there is no shard {0} in the catalog")]
    NoShard(u32),
    /// It takes new items.
    #[error("shard {0} takes new items: drain it first (forebay shard drain {0})")]
    NotDrained(u32),
    /// Its database does not answer.
    #[error(
        "shard {0} can't be looked at: {1}; if its server is gone for good, `--lost` removes it with all \
         that is in it"
    )]
    Unseen(u32, StoreError),
    /// Something in it matters to somebody.
    #[error("shard {0} still has {1}")]
    HeldUp(u32, HoldUp),
}

/// Reasons why a drained shard can't be removed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldUp {
    /// Items that are not delivered for good.
    pub items: u64,
    /// When the last scheduled one is due, if one is.
    pub last_due: Option<Timestamp>,
    /// Dead letters.
    pub dead_letters: u64,
    /// When the last of them is deleted, if that is known.
    pub dead_letters_until: Option<Timestamp>,
    /// When the window of the last dedupe key ends, if one is open.
    pub keys_until: Option<Timestamp>,
    /// Its owner does not know yet that it is drained.
    pub not_recorded: bool,
}

impl HoldUp {
    /// Whether nothing does.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A time for people. The greatest one is never.
struct Time(Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Timestamp::MAX => f.write_str("never"),
            time if time.as_micros() < 0 => f.write_str("long ago"),
            time => time.fmt(f),
        }
    }
}

impl fmt::Display for HoldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut parts = Vec::new();
        if self.items > 0 {
            let due = self.last_due.map(|at| format!(" (the last one is due at {})", Time(at)));
            parts.push(format!("{}{}", counted(self.items, "item"), due.unwrap_or_default()));
        }
        if self.dead_letters > 0 {
            let until = self.dead_letters_until.map(|at| format!(" (the last one is deleted: {})", Time(at)));
            parts.push(format!("{}{}", counted(self.dead_letters, "dead letter"), until.unwrap_or_default()));
        }
        parts.extend(self.keys_until.map(|at| format!("dedupe keys whose window ends at {}", Time(at))));
        if self.not_recorded {
            parts.push("an owner that does not know yet that it is drained".to_owned());
        }
        f.write_str(&parts.join(", "))
    }
}

/// Where a shard may be that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// At any server: who asks has the configuration, with the accounts of the servers.
    Any,
    /// At a server that has shards already. Another one could be the caller's, and would get the node's
    /// password.
    Known,
}

/// Adds a shard, and makes its schema if it has none. Returns its number, and whether the schema was made.
/// One that is listed already is migrated, in case whoever listed it did not come to that. `dry_run`: only
/// checks; a new one has no number yet.
pub async fn add_shard(
    config: &Config,
    url: &str,
    servers: Servers,
    dry_run: bool,
) -> Result<(Option<ShardId>, bool), ShardsError> {
    check_shard_url(url)?;
    let catalog = open(config)?;
    let cluster = catalog.cluster().await.map_err(OperateError::from)?;
    let cluster = cluster.ok_or(ShardsError::NoCatalogSchema)?;
    let url_of = |id| CatalogShard { id, url: url.to_owned(), state: CatalogShardState::Active };
    let open = |shard: &ShardConfig| -> Result<Arc<dyn Shard>, ShardsError> {
        let opened = Opener::new(config).open(shard);
        Ok(opened.map_err(|error| ShardsError::Url(error.to_string()))?.1)
    };
    let reach = |id| open(&shard_config(&url_of(id)));
    let server = reach(ShardId(0))?.server();
    if servers == Servers::Known {
        let (listed, _) = listed(&*catalog).await?;
        let known = listed.iter().map(shard_config).chain(config.shards.iter().cloned());
        if !known.flat_map(|shard| open(&shard)).any(|shard| shard.server() == server) {
            return Err(ShardsError::NewServer(server));
        }
    }
    // Nobody learns of a shard that does not answer.
    let found = reach(ShardId(0))?.identity().await.map_err(ShardsError::New)?;
    match found {
        Some(found) if found.cluster != cluster => Err(ShardsError::OtherCluster(found.to_string())),
        Some(found) => {
            reach(found.shard)?.check().await.map_err(ShardsError::New)?;
            if !dry_run {
                list(&*catalog, url, Some(found.shard)).await?;
            }
            Ok((Some(found.shard), false))
        }
        None if dry_run => Ok((None, true)),
        None => {
            let (id, is_listed) = list(&*catalog, url, None).await?;
            let Err(error) = reach(id)?.migrate(cluster).await else { return Ok((Some(id), true)) };
            if !is_listed {
                take_off(&*catalog, id).await?;
            }
            Err(ShardsError::Migrate(error))
        }
    }
}

/// Lists a shard. Returns its number, and whether it was listed before.
async fn list(
    catalog: &dyn Catalog,
    url: &str,
    id: Option<ShardId>,
) -> Result<(ShardId, bool), CatalogError> {
    match catalog.add_shard(url, id).await {
        Err(CatalogError::UrlTaken(listed)) if id.is_none_or(|id| id == listed) => Ok((listed, true)),
        added => added.map(|id| (id, false)),
    }
}

/// Takes a shard off the list again.
async fn take_off(catalog: &dyn Catalog, id: ShardId) -> Result<(), ShardsError> {
    for _ in 0..TRIES_MAX {
        let (_, version) = listed(catalog).await?;
        if !is_stale(catalog.remove_shard(id, version).await)? {
            return Ok(());
        }
    }
    Err(OperateError::Busy.into())
}

/// Lets a shard take no new items, or undoes that. `dry_run`: only checks.
pub async fn drain_shard(
    config: &Config,
    shard: u32,
    draining: bool,
    dry_run: bool,
) -> Result<(), ShardsError> {
    let catalog = open(config)?;
    let state = if draining { CatalogShardState::Draining } else { CatalogShardState::Active };
    for _ in 0..TRIES_MAX {
        let (shards, version) = listed(&*catalog).await?;
        let row = shards.iter().find(|row| row.id.0 == shard).ok_or(ShardsError::NoShard(shard))?;
        let others = |row: &&CatalogShard| row.id.0 != shard && row.state == CatalogShardState::Active;
        // A repeated call changes nothing, even if it is the last one by now.
        if row.state == state {
            return Ok(());
        }
        if draining && shards.iter().filter(others).count() == 0 {
            return Err(ShardsError::Last(shard));
        }
        if dry_run || !is_stale(catalog.set_shard_state(row.id, state, version).await)? {
            return Ok(());
        }
    }
    Err(OperateError::Busy.into())
}

/// Removes a shard. `lost`: its server is gone for good, and nobody looks at it. `dry_run`: only checks.
/// Returns whether it was listed: one that is not needs no removal, as when the call is repeated.
pub async fn remove_shard(
    config: &Config,
    shard: u32,
    lost: bool,
    dry_run: bool,
) -> Result<bool, ShardsError> {
    let catalog = open(config)?;
    for _ in 0..TRIES_MAX {
        let (shards, version) = listed(&*catalog).await?;
        let Some(row) = shards.iter().find(|row| row.id.0 == shard) else { return Ok(false) };
        if !lost {
            if row.state == CatalogShardState::Active {
                return Err(ShardsError::NotDrained(shard));
            }
            let (remains, topology) =
                look(config, &shard_config(row)).await.map_err(|error| ShardsError::Unseen(shard, error))?;
            let held_up = held_up(config, row.id, remains, &topology);
            if !held_up.is_none() {
                return Err(ShardsError::HeldUp(shard, held_up));
            }
        }
        // Whoever has taken it back meanwhile may have had items stored in it.
        if dry_run || !is_stale(catalog.remove_shard(row.id, version).await)? {
            return Ok(true);
        }
    }
    Err(OperateError::Busy.into())
}

/// Whether a change came too late: the shards are not as they were read.
fn is_stale(changed: Result<(), CatalogError>) -> Result<bool, CatalogError> {
    match changed {
        Err(CatalogError::Stale) => Ok(true),
        changed => changed.map(|()| false),
    }
}

/// The shards, and their version.
async fn listed(catalog: &dyn Catalog) -> Result<(Vec<CatalogShard>, u64), ShardsError> {
    let changes = catalog.read(Versions::default()).await.map_err(OperateError::from)?;
    Ok((changes.shards.unwrap_or_default(), changes.versions.shards))
}

/// Returns the remains in a shard, and which sets of shards it has recorded.
async fn look(config: &Config, shard: &ShardConfig) -> Result<(Remains, ShardTopology), StoreError> {
    let (remains, seen) = match &shard.url {
        ShardUrl::Sqlite(path) => {
            let shard = SqliteShard::new(shard.id, path);
            (shard.remains().await?, shard.observe().await?)
        }
        ShardUrl::MySql(url) => {
            let shard = MySqlServers::default().shard(shard.id, url, &shards::mysql_options(config))?;
            (shard.remains().await?, shard.observe().await?)
        }
    };
    Ok((remains, seen.topology_history))
}

/// Why a drained shard can't be removed yet.
fn held_up(config: &Config, id: ShardId, remains: Remains, topology: &ShardTopology) -> HoldUp {
    let now = SystemClock::default().wall();
    let window = config.settings.longest_dedupe_window();
    let keys_until = remains.last_key.map(|at| at.plus(window)).filter(|end| *end > now);
    HoldUp {
        items: remains.items,
        last_due: remains.last_due,
        dead_letters: remains.dead_letters,
        dead_letters_until: remains.dead_letters_until,
        keys_until,
        // As long as its owner takes it for a home, new keys may come.
        not_recorded: topology.shards.contains(&id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_drain_up_is_told_with_its_end() {
        let at = |seconds: i64| Some(Timestamp::from_micros(seconds * 1_000_000));
        let all = HoldUp {
            items: 3,
            last_due: at(1_800_000_000),
            dead_letters: 2,
            dead_letters_until: Some(Timestamp::MAX),
            keys_until: at(1_800_000_060),
            not_recorded: true,
        };
        assert_eq!(
            all.to_string(),
            "3 items (the last one is due at 2027-01-15T08:00:00Z), \
             2 dead letters (the last one is deleted: never), \
             dedupe keys whose window ends at 2027-01-15T08:01:00Z, \
             an owner that does not know yet that it is drained"
        );
        assert!(HoldUp::default().is_none() && !all.is_none());
    }
}
