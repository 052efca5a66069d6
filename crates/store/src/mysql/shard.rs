//! A shard in one schema.

use std::sync::Arc;

use async_trait::async_trait;
use forebay_types::{ClusterId, ShardId};

use super::{
    connect::{Role, connect},
    links::{Link, Visit},
    looks::Look,
    migrate,
    reader::MySqlReadPool,
    server::Server,
    shared_server::SharedServer,
    take_over,
};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    mysql_address::Target,
    read_ahead::ReadAhead,
    rows::{Observation, Remains, Settings, ShardIdentity},
    shard::{Claim, ProbeOutcome, Shard, ShardConnections},
    sql::{
        Dialect, Session as _, Statement, identity,
        read::{read_ahead, remains::remains},
        version,
    },
};

/// A shard in a schema of MySQL or MariaDB.
pub struct MySqlShard {
    /// The shard's number.
    id: ShardId,
    /// How to connect.
    target: Target,
    /// The name of its schema.
    schema: Arc<str>,
    /// State that it shares with other shards of its server.
    shared: Arc<SharedServer>,
}

impl std::fmt::Debug for MySqlShard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the target: it contains the password.
        f.debug_struct("MySqlShard").field("id", &self.id).finish_non_exhaustive()
    }
}

impl MySqlShard {
    /// A shard on this server.
    pub(super) fn on(shared: Arc<SharedServer>, id: ShardId, target: Target) -> Self {
        let schema = target.schema().into();
        Self { id, target, schema, shared }
    }

    /// Makes the shard's schema the default one of a connection.
    async fn enter(&self, link: &mut Link) -> Result<(), StoreError> {
        link.enter(&self.schema).await.map_err(|error| match error.class {
            ErrorClass::Schema => migrate::SHARD.missing(&error),
            _ => error,
        })
    }

    /// Counts the contents that are left in it, whoever owns it.
    pub async fn remains(&self) -> Result<Remains, StoreError> {
        self.shared.links.lend(&ReadRemains(self)).await
    }
}

/// Reads what is left.
struct ReadRemains<'a>(&'a MySqlShard);

#[async_trait]
impl Visit for ReadRemains<'_> {
    type Answer = Remains;

    async fn visit(&self, link: &mut Link) -> Result<Remains, StoreError> {
        self.0.enter(link).await?;
        remains(&mut link.session, Dialect::MySql).await
    }
}

#[async_trait]
impl Shard for MySqlShard {
    fn server(&self) -> String {
        self.target.server()
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        match self.shared.links.lend(&ReadIdentity(self)).await {
            Err(error) if error.class == ErrorClass::Schema => Ok(None),
            identity => identity,
        }
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        let ours = ShardIdentity { shard: self.id, cluster };
        let applied = migrate::migrate(&self.target, &migrate::SHARD, &ours).await?;
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
        self.shared.links.lend(&Check(self)).await
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        self.shared.looks.ask(Look { schema: self.schema.clone() }).await
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        self.shared.links.lend(&Probe(self)).await?;
        Ok(ProbeOutcome::Committed)
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        // On connections of its own: others do not wait for it.
        let mut session = connect(&self.target, Role::Ddl).await?;
        let server = Server::of(&self.target, &mut session).await?;
        drop(session);
        read_ahead(&MySqlReadPool::new(&server)).await
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let taken = take_over::take_over(&self.shared, self.id, &self.target, claim, seen).await;
        if !matches!(taken, Ok(Some(_))) {
            self.shared.forget();
        }
        taken
    }
}

/// Reads which shard the schema is.
struct ReadIdentity<'a>(&'a MySqlShard);

#[async_trait]
impl Visit for ReadIdentity<'_> {
    type Answer = Option<ShardIdentity>;

    async fn visit(&self, link: &mut Link) -> Result<Option<ShardIdentity>, StoreError> {
        self.0.enter(link).await?;
        identity::read(&mut link.session).await
    }
}

/// Checks the schema, and reads the server's settings.
struct Check<'a>(&'a MySqlShard);

#[async_trait]
impl Visit for Check<'_> {
    type Answer = Settings;

    async fn visit(&self, link: &mut Link) -> Result<Settings, StoreError> {
        let Self(shard) = self;
        shard.enter(link).await?;
        version::check(&mut link.session, &migrate::SHARD).await?;
        let cluster = identity::check(&mut link.session, shard.id).await?;
        Ok(Settings { cluster, ..shard.shared.settings(link).await? })
    }
}

/// Commits a row.
struct Probe<'a>(&'a MySqlShard);

#[async_trait]
impl Visit for Probe<'_> {
    type Answer = ();

    async fn visit(&self, link: &mut Link) -> Result<(), StoreError> {
        let schema = &self.0.schema;
        let sql = format!("/* forebay probe */ UPDATE `{schema}`.probe SET probes = probes + 1 WHERE id = 1");
        link.session.execute(Statement::new(sql, vec![])).await.map(drop)
    }
}
