//! The shards of the configuration, and what must be right about one before it is served.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use forebay_store::{
    Claim, ErrorClass, MigrateError, MySqlOptions, MySqlShard, Observation, Settings, Shard,
    ShardConnections, SqliteShard, StoreError,
};
use forebay_types::ShardId;
use futures_util::future::join_all;

use crate::config::{Config, Place, ShardConfig};

/// A shard that does not answer for so long is left to be taken over when it does.
const PATIENCE: Duration = Duration::from_secs(5);

/// A shard with its number.
pub type Numbered = (ShardId, Arc<dyn Shard>);

/// The shards that the configuration names. Nothing is connected yet.
pub fn open(config: &Config) -> Result<Vec<Numbered>, Vec<UnfitShard>> {
    let password = config.mysql_password.as_ref().map(|secret| secret.reveal().to_owned());
    let options = MySqlOptions { password, tls_ca: config.mysql_tls_ca.clone() };
    let (mut shards, mut unfit) = (Vec::<Numbered>::new(), Vec::new());
    for ShardConfig { id, place } in &config.shards {
        match place {
            Place::Sqlite(path) => shards.push((*id, Arc::new(SqliteShard::new(*id, path)))),
            Place::MySql(url) => match MySqlShard::new(*id, url, &options) {
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
    /// Its URL makes no sense.
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
    /// The server may lose what it has committed.
    #[error("shard {shard}: {reason}; set node.allow_not_durable = true to serve all the same")]
    NotDurable {
        /// The shard.
        shard: ShardId,
        /// The setting, and what it means.
        reason: String,
    },
}

/// Looks at every shard. One that is unfit is an error; one that does not answer is only said.
pub async fn check(shards: &[Numbered], allow_not_durable: bool) -> Result<(), Vec<UnfitShard>> {
    let looks = shards.iter().map(|(_, shard)| tokio::time::timeout(PATIENCE, shard.check()));
    let mut unfit = Vec::new();
    for ((id, _), look) in shards.iter().zip(join_all(looks).await) {
        match look {
            Err(_) => tracing::warn!(shard.id = id.0, "the shard does not answer; it is served when it does"),
            Ok(Err(error)) if error.class == ErrorClass::Schema => {
                unfit.push(UnfitShard::Schema { shard: *id, error });
            }
            Ok(Err(error)) => {
                tracing::warn!(shard.id = id.0, %error, "the shard can't be reached; served when it can");
            }
            Ok(Ok(settings)) => say(*id, &settings, allow_not_durable, &mut unfit),
        }
    }
    if unfit.is_empty() { Ok(()) } else { Err(unfit) }
}

fn say(shard: ShardId, settings: &Settings, allow_not_durable: bool, unfit: &mut Vec<UnfitShard>) {
    tracing::info!(shard.id = shard.0, server = settings.server, "shard found");
    for reason in &settings.not_durable {
        if allow_not_durable {
            tracing::warn!(shard.id = shard.0, reason, "an answered commit may be lost, as allowed");
        } else {
            unfit.push(UnfitShard::NotDurable { shard, reason: reason.clone() });
        }
    }
    for reason in &settings.slow {
        tracing::warn!(shard.id = shard.0, reason, "commits are slower than they need be");
    }
}

/// A shard that is looked at before each take-over: one that did not answer at start gets no other way in.
pub struct Guarded {
    inner: Arc<dyn Shard>,
    allow_not_durable: bool,
}

impl Guarded {
    /// Guards every shard of a list.
    pub fn all(shards: Vec<Numbered>, allow_not_durable: bool) -> Vec<Numbered> {
        let guard = |(id, inner)| -> Numbered { (id, Arc::new(Self { inner, allow_not_durable })) };
        shards.into_iter().map(guard).collect()
    }
}

#[async_trait]
impl Shard for Guarded {
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
