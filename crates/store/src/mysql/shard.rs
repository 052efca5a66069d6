//! A shard in one schema.

use async_trait::async_trait;
use forebay_types::ShardId;
use sqlx::mysql::MySqlConnectOptions;
use tokio::sync::Mutex;

use super::{
    connect::{Role, connect},
    migrate,
    options::{self, MySqlOptions},
    session::MySqlSession,
    settings, take_over,
};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    rows::{Observation, Settings},
    shard::{Claim, Shard, ShardConnections},
    sql::{Session as _, fence, version},
};

/// A shard in a schema of MySQL or MariaDB.
pub struct MySqlShard {
    /// The shard's number, for logs.
    id: ShardId,
    /// How to connect.
    options: MySqlConnectOptions,
    /// Keeps its connection: a candidate observes a shard many times a second.
    observer: Mutex<Option<MySqlSession>>,
}

impl std::fmt::Debug for MySqlShard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the options: they contain the password.
        f.debug_struct("MySqlShard").field("id", &self.id).finish_non_exhaustive()
    }
}

impl MySqlShard {
    /// A shard in the schema that `url` names, as in `mysql://forebay@db1:3306/forebay_0001`. The error
    /// explains what is wrong with the URL and never repeats a password.
    pub fn new(id: ShardId, url: &str, options: &MySqlOptions) -> Result<Self, StoreError> {
        Ok(Self { id, options: options::parse(url, options)?, observer: Mutex::new(None) })
    }
}

#[async_trait]
impl Shard for MySqlShard {
    fn server(&self) -> String {
        format!("{}:{}", self.options.get_host(), self.options.get_port())
    }

    async fn migrate(&self) -> Result<Vec<u32>, MigrateError> {
        let applied = migrate::migrate(&self.options).await?;
        tracing::info!(
            shard.id = self.id.0,
            ?applied,
            "schema of shard {} ({}) is up to date",
            self.id,
            self.server()
        );
        Ok(applied)
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        let session = connect(&self.options, Role::Single).await;
        let mut session = session.map_err(|error| match error.class {
            ErrorClass::Schema => {
                let message = format!("the schema is missing: run `forebay migrate` ({})", error.message);
                StoreError::new(ErrorClass::Schema, message)
            }
            _ => error,
        })?;
        version::check(&mut session, migrate::VERSION).await?;
        settings::read(&mut session).await
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        let mut observer = self.observer.lock().await;
        if let Some(session) = observer.as_mut()
            && let Ok(rows) = session.fetch(fence::observe()).await
        {
            return fence::decode_observation(rows);
        }
        // The server closes a connection that is idle for 15 s, so a failure is no surprise.
        let mut session = connect(&self.options, Role::Single).await?;
        let rows = session.fetch(fence::observe()).await?;
        *observer = Some(session);
        fence::decode_observation(rows)
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        take_over::take_over(&self.options, claim, seen).await
    }
}
