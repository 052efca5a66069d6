//! The shards of the configuration, and the checks that one must pass before it is served.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use forebay_config::{Config, ShardConfig, ShardUrl};
use forebay_store::{
    Claim, ErrorClass, MigrateError, MySqlOptions, MySqlServers, Observation, ProbeOutcome, ReadAhead,
    Settings, Shard, ShardConnections, ShardIdentity, SqliteShard, StoreError,
};
use forebay_types::{ClusterId, ShardId};
use futures_util::{StreamExt as _, future::join_all, stream};
use rand::{Rng as _, rngs::StdRng};

/// A shard with its number.
pub type NumberedShard = (ShardId, Arc<dyn Shard>);

/// The shards of the configuration. Connects to nothing yet.
pub fn open(config: &Config) -> Result<Vec<NumberedShard>, Vec<UnfitShard>> {
    open_these(config, &config.shards)
}

/// How to connect to MySQL servers.
pub(crate) fn mysql_options(config: &Config) -> MySqlOptions {
    let password = config.mysql_password.clone();
    MySqlOptions { password, tls_ca: config.mysql_tls_ca.clone(), tls: config.mysql_tls }
}

/// These shards. Connects to nothing yet.
pub fn open_these(config: &Config, listed: &[ShardConfig]) -> Result<Vec<NumberedShard>, Vec<UnfitShard>> {
    Opener::new(config).open_all(listed)
}

/// Opens shards. Those of one server share connections, whenever they are opened.
#[derive(Clone)]
pub struct Opener {
    /// How to connect.
    options: MySqlOptions,
    /// The servers of the shards so far.
    servers: MySqlServers,
}

impl Opener {
    /// With the accounts of a configuration.
    pub fn new(config: &Config) -> Self {
        Self::with(mysql_options(config))
    }

    /// With these accounts.
    pub fn with(options: MySqlOptions) -> Self {
        Self { options, servers: MySqlServers::default() }
    }

    /// A shard. Connects to nothing yet.
    pub fn open(&self, listed: &ShardConfig) -> Result<NumberedShard, UnfitShard> {
        let id = listed.id;
        let shard: Arc<dyn Shard> = match &listed.url {
            ShardUrl::Sqlite(path) => Arc::new(SqliteShard::new(id, path)),
            ShardUrl::MySql(url) => {
                let shard = self.servers.shard(id, url, &self.options);
                Arc::new(shard.map_err(|error| UnfitShard::Url { shard: id, error })?)
            }
        };
        Ok((id, shard))
    }

    /// These shards. Connects to nothing yet.
    pub fn open_all(&self, listed: &[ShardConfig]) -> Result<Vec<NumberedShard>, Vec<UnfitShard>> {
        let (mut shards, mut unfit) = (Vec::new(), Vec::new());
        for opened in listed.iter().map(|listed| self.open(listed)) {
            match opened {
                Ok(shard) => shards.push(shard),
                Err(error) => unfit.push(error),
            }
        }
        if unfit.is_empty() { Ok(shards) } else { Err(unfit) }
    }
}

/// Why a shard must not be served.
#[derive(Debug, thiserror::Error)]
pub enum UnfitShard {
    /// Its URL is malformed.
    #[error("shard {shard}: {error}")]
    Url {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: StoreError,
    },
    /// The schema is missing or of another version.
    #[error("shard {shard}: {error}")]
    Schema {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: StoreError,
    },
    /// It belongs to another queue than the shards before it.
    #[error(
        "shard {shard} is of cluster {found}, and {} of cluster {expected}: is its URL right?", named(*first)
    )]
    OtherCluster {
        /// The shard.
        shard: ShardId,
        /// Its cluster.
        found: ClusterId,
        /// The first shard that was looked at, or [`CATALOG`].
        first: ShardId,
        /// That one's cluster.
        expected: ClusterId,
    },
    /// No shard names its cluster, and some can't be asked.
    #[error("shard {shard} does not answer: {error}; the first migration of a queue needs all of its shards")]
    Unasked {
        /// The shard.
        shard: ShardId,
        /// Why not.
        error: StoreError,
    },
    /// The server may lose commits.
    #[error("shard {shard}: {reason}; change it, or set node.allow_not_durable = true to serve anyway")]
    NotDurable {
        /// The shard.
        shard: ShardId,
        /// The setting, and what it means.
        reason: String,
    },
}

/// Stands for the catalog, where a shard is named. No shard has this number.
const CATALOG: ShardId = ShardId(0);

fn named(shard: ShardId) -> String {
    if shard == CATALOG { "the catalog is".to_owned() } else { format!("shard {shard}") }
}

/// Schemas that are migrated at a time: they may share a server, and rebuild tables there.
const MIGRATIONS_AT_ONCE: usize = 4;

/// Creates or upgrades the schemas of all shards. The first time, each shard is told its number and its
/// cluster. Returns the versions that were applied, or the failure, for each shard.
pub async fn migrate(
    shards: &[NumberedShard],
    cluster: ClusterId,
) -> Vec<(ShardId, Result<Vec<u32>, MigrateError>)> {
    let each = shards.iter().map(|(id, shard)| async move { (*id, shard.migrate(cluster).await) });
    stream::iter(each).buffered(MIGRATIONS_AT_ONCE).collect().await
}

/// Checks that a schema is this shard of the cluster, or none yet. One that can't be asked passes, unless it
/// must be the shard: `is_there`.
pub(crate) async fn check_place(
    id: ShardId,
    shard: &dyn Shard,
    cluster: ClusterId,
    is_there: bool,
) -> Result<(), UnfitShard> {
    let shard_is = |message: String| UnfitShard::Schema {
        shard: id,
        error: StoreError::new(ErrorClass::Schema, message),
    };
    match shard.identity().await {
        Ok(Some(found)) if found.cluster != cluster => Err(UnfitShard::OtherCluster {
            shard: id,
            found: found.cluster,
            first: CATALOG,
            expected: cluster,
        }),
        Ok(Some(found)) if found.shard != id => Err(shard_is(format!("the schema is {found}"))),
        Ok(None) if is_there => Err(shard_is(
            "it has another address in the catalog, and there is no shard at this one".to_owned(),
        )),
        Err(error) if is_there => Err(UnfitShard::Schema { shard: id, error }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The cluster of these shards. A new one, if all were asked and none has one.
pub(crate) async fn cluster_of(shards: &[NumberedShard]) -> Result<ClusterId, Vec<UnfitShard>> {
    let (mut known, mut unasked) = (KnownCluster::default(), Vec::new());
    let mut unfit = Vec::new();
    for ((id, _), identity) in
        shards.iter().zip(join_all(shards.iter().map(|(_, shard)| shard.identity())).await)
    {
        match identity {
            Ok(Some(identity)) => unfit.extend(known.join(*id, identity.cluster).err()),
            Ok(None) => {}
            Err(error) => unasked.push(UnfitShard::Unasked { shard: *id, error }),
        }
    }
    match known.0 {
        _ if !unfit.is_empty() => Err(unfit),
        Some((_, cluster)) => Ok(cluster),
        None if !unasked.is_empty() => Err(unasked),
        None => Ok(random_cluster()),
    }
}

fn random_cluster() -> ClusterId {
    let mut bytes = [0; 16];
    // Its seed is the operating system's; where that has no random numbers, nothing can run.
    rand::make_rng::<StdRng>().fill_bytes(&mut bytes);
    ClusterId(bytes)
}

/// The cluster of the first shard that was asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownCluster(Option<(ShardId, ClusterId)>);

impl KnownCluster {
    /// Fails if a shard is of another cluster than the first one.
    pub fn join(&mut self, shard: ShardId, found: ClusterId) -> Result<(), UnfitShard> {
        let (first, expected) = *self.0.get_or_insert((shard, found));
        if found == expected {
            return Ok(());
        }
        Err(UnfitShard::OtherCluster { shard, found, first, expected })
    }
}

/// Requirements that each shard of a node must meet.
#[derive(Debug, Clone)]
pub struct Checks {
    /// Skips the check of durability.
    allow_not_durable: bool,
    /// Of all shards of the node.
    cluster: Arc<Mutex<KnownCluster>>,
}

impl Checks {
    /// `cluster`: the one that they must be of.
    pub fn new(cluster: ClusterId, allow_not_durable: bool) -> Self {
        let known = KnownCluster(Some((CATALOG, cluster)));
        Self { allow_not_durable, cluster: Arc::new(Mutex::new(known)) }
    }

    /// A shard that is checked from now on.
    pub fn on(&self, (id, inner): NumberedShard) -> NumberedShard {
        (id, Arc::new(CheckedShard { id, inner, checks: self.clone() }))
    }
}

/// A shard whose cluster is checked before it is looked at, and whose durability before each take-over,
/// because it may have been unreachable at start, or its server's settings may have changed.
struct CheckedShard {
    /// Its number.
    id: ShardId,
    /// The shard that is checked.
    inner: Arc<dyn Shard>,
    /// The requirements that it must meet.
    checks: Checks,
}

#[async_trait]
impl Shard for CheckedShard {
    fn server(&self) -> String {
        self.inner.server()
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        self.inner.identity().await
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        self.inner.migrate(cluster).await
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        let settings = self.inner.check().await?;
        // Before it is looked at: what another cluster's shard has recorded says nothing of this one.
        let cluster = &mut *self.checks.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        match cluster.join(self.id, settings.cluster) {
            Ok(()) => Ok(settings),
            Err(unfit) => Err(StoreError::new(ErrorClass::Schema, unfit.to_string())),
        }
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        self.inner.observe().await
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        self.inner.probe().await
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        self.inner.read_ahead().await
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let settings = self.check().await?;
        match settings.not_durable.first() {
            Some(reason) if !self.checks.allow_not_durable => {
                Err(StoreError::new(ErrorClass::Schema, reason.clone()))
            }
            _ => self.inner.take_over(claim, seen).await,
        }
    }
}
