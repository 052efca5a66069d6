//! The shards of the configuration, and the checks that one must pass before it is served.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use forebay_store::{
    Claim, ErrorClass, MigrateError, MySqlOptions, MySqlShard, Observation, Settings, Shard,
    ShardConnections, SqliteShard, StoreError,
};
use forebay_types::ShardId;
use futures_util::future::join_all;

use crate::config::{Config, ShardConfig, ShardUrl};

/// A shard that does not answer within this time is taken over later.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A shard with its number.
pub type NumberedShard = (ShardId, Arc<dyn Shard>);

/// The shards of the configuration. Connects to nothing yet.
pub fn open(config: &Config) -> Result<Vec<NumberedShard>, Vec<UnfitShard>> {
    let password = config.mysql_password.as_ref().map(|secret| secret.reveal().to_owned());
    let options = MySqlOptions { password, tls_ca: config.mysql_tls_ca.clone() };
    let (mut shards, mut unfit) = (Vec::<NumberedShard>::new(), Vec::new());
    for ShardConfig { id, url } in &config.shards {
        match url {
            ShardUrl::Sqlite(path) => shards.push((*id, Arc::new(SqliteShard::new(*id, path)))),
            ShardUrl::MySql(url) => match MySqlShard::new(*id, url, &options) {
                Ok(shard) => shards.push((*id, Arc::new(shard))),
                Err(error) => unfit.push(UnfitShard::Url { shard: *id, error }),
            },
        }
    }
    if unfit.is_empty() { Ok(shards) } else { Err(unfit) }
}

/// Why a shard must not be served.
#[derive(Debug, thiserror::Error)]
pub enum UnfitShard {
    /// Its URL is malformed.
    #[error("shard {shard}: {error}")]
    Url {
        /// The shard.
        shard: ShardId,
        /// What is wrong.
        error: StoreError,
    },
    /// The schema is missing or of another version.
    #[error("shard {shard}: {error}")]
    Schema {
        /// The shard.
        shard: ShardId,
        /// What is wrong.
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

/// Checks every shard. An unfit one is an error; an unreachable one is only logged.
pub async fn check(shards: &[NumberedShard], allow_not_durable: bool) -> Result<(), Vec<UnfitShard>> {
    let checks = shards.iter().map(|(_, shard)| tokio::time::timeout(CHECK_TIMEOUT, shard.check()));
    let mut unfit = Vec::new();
    for ((id, shard), checked) in shards.iter().zip(join_all(checks).await) {
        let warn_unreachable = |error: String| {
            let server = shard.server();
            tracing::warn!(shard.id = id.0, server, error, "cannot reach shard {id} ({server}); retrying");
        };
        match checked {
            Err(_) => warn_unreachable(format!("no answer within {CHECK_TIMEOUT:?}")),
            Ok(Err(error)) if error.class == ErrorClass::Schema => {
                unfit.push(UnfitShard::Schema { shard: *id, error });
            }
            Ok(Err(error)) => warn_unreachable(error.to_string()),
            Ok(Ok(settings)) => log(*id, &settings, allow_not_durable, &mut unfit),
        }
    }
    if unfit.is_empty() { Ok(()) } else { Err(unfit) }
}

/// Logs a server's product and settings. A setting that may lose commits is added to `unfit` unless allowed.
fn log(shard: ShardId, settings: &Settings, allow_not_durable: bool, unfit: &mut Vec<UnfitShard>) {
    let id = shard.0;
    let product = &settings.server;
    tracing::info!(shard.id = id, product, "shard {shard} runs on {product}");
    for reason in &settings.not_durable {
        if allow_not_durable {
            tracing::warn!(shard.id = id, reason, "shard {shard} may lose answered commits");
        } else {
            unfit.push(UnfitShard::NotDurable { shard, reason: reason.clone() });
        }
    }
    for reason in &settings.slow {
        tracing::warn!(shard.id = id, reason, "shard {shard} has a setting that slows down commits");
    }
}

/// A shard whose durability is checked before each take-over, because it may have been unreachable at start
/// or its server's settings may have changed.
pub struct DurabilityChecked {
    /// The shard that is checked.
    inner: Arc<dyn Shard>,
    /// Skips the check of durability.
    allow_not_durable: bool,
}

impl DurabilityChecked {
    /// Wraps every shard of a list.
    pub fn wrap_all(shards: Vec<NumberedShard>, allow_not_durable: bool) -> Vec<NumberedShard> {
        let wrap = |(id, inner)| -> NumberedShard { (id, Arc::new(Self { inner, allow_not_durable })) };
        shards.into_iter().map(wrap).collect()
    }
}

#[async_trait]
impl Shard for DurabilityChecked {
    fn server(&self) -> String {
        self.inner.server()
    }

    async fn migrate(&self) -> Result<Vec<u32>, MigrateError> {
        self.inner.migrate().await
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        self.inner.check().await
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        self.inner.observe().await
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let settings = self.inner.check().await?;
        match settings.not_durable.first() {
            Some(reason) if !self.allow_not_durable => {
                Err(StoreError::new(ErrorClass::Schema, reason.clone()))
            }
            _ => self.inner.take_over(claim, seen).await,
        }
    }
}
