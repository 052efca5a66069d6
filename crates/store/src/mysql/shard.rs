//! A shard in one schema.

use std::time::Duration;

use async_trait::async_trait;
use forebay_types::{ClusterId, ShardId};
use sqlx::mysql::MySqlConnectOptions;
use tokio::{sync::Mutex, time::Instant};

use super::{
    connect::{Role, connect},
    migrate,
    options::{self, MySqlOptions},
    session::MySqlSession,
    settings, take_over,
};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    rows::{Observation, Settings, ShardIdentity},
    shard::{Claim, Shard, ShardConnections},
    sql::{Session as _, Statement, fence, identity, version},
};

/// A shard in a schema of MySQL or MariaDB.
pub struct MySqlShard {
    /// The shard's number.
    id: ShardId,
    /// How to connect.
    options: MySqlConnectOptions,
    /// Keeps its connection for a moment: a candidate observes a shard many times a second.
    observer: Mutex<Option<(MySqlSession, Instant)>>,
}

/// So soon a connection that observes is replaced: the address may lead to another server. A claim that fails
/// replaces it at once, because what it saw may be of a server that was switched off.
const OBSERVER_AGE_MAX: Duration = Duration::from_secs(10);

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
        Ok(Self { id, options: options::parse(url, "shard", options)?, observer: Mutex::new(None) })
    }

    async fn connect(&self) -> Result<MySqlSession, StoreError> {
        connect(&self.options, Role::Single).await.map_err(|error| match error.class {
            ErrorClass::Schema => migrate::SHARD.missing(&error),
            _ => error,
        })
    }

    /// Lets a young connection observe.
    async fn with_observer<T>(
        &self,
        observe: impl AsyncFnOnce(&mut MySqlSession) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut observer = self.observer.lock().await;
        let kept = observer.take().filter(|(_, opened)| opened.elapsed() < OBSERVER_AGE_MAX);
        let (mut session, opened) = match kept {
            Some(kept) => kept,
            None => (self.connect().await?, Instant::now()),
        };
        let observed = observe(&mut session).await?;
        *observer = Some((session, opened));
        Ok(observed)
    }
}

#[async_trait]
impl Shard for MySqlShard {
    fn server(&self) -> String {
        format!("{}:{}", self.options.get_host(), self.options.get_port())
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        match self.with_observer(async |session| identity::read(session).await).await {
            Err(error) if error.class == ErrorClass::Schema => Ok(None),
            identity => identity,
        }
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        let ours = ShardIdentity { shard: self.id, cluster };
        let applied = migrate::migrate(&self.options, &migrate::SHARD, &ours).await?;
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
        self.with_observer(async |session| {
            version::check(session, &migrate::SHARD).await?;
            let cluster = identity::check(session, self.id).await?;
            Ok(Settings { cluster, ..settings::read(session).await? })
        })
        .await
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        let rows = self.with_observer(async |session| session.fetch(fence::observe()).await).await?;
        fence::decode_observation(rows)
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let sql = "/* forebay probe */ UPDATE probe SET probes = probes + 1 WHERE id = 1";
        self.with_observer(async |session| session.execute(Statement::new(sql, vec![])).await).await.map(drop)
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let taken = take_over::take_over(&self.options, claim, seen).await;
        if !matches!(taken, Ok(Some(_))) {
            *self.observer.lock().await = None;
        }
        taken
    }
}
