//! Which cluster a catalog is of. The first migration writes it, and nothing changes it.

use async_trait::async_trait;
use forebay_types::ClusterId;

use super::{
    call::{Call, Failure},
    session::CatalogSession,
};
use crate::{
    error::{ErrorClass, StoreError},
    sql::{
        Session, Statement,
        version::{self, Identity, Schema},
    },
};

/// Reads the cluster. `None`: there is none yet.
pub(super) async fn read(session: &mut dyn Session) -> Result<Option<ClusterId>, StoreError> {
    let statement = Statement::new("SELECT cluster FROM cluster WHERE id = 1", vec![]);
    let rows = match session.fetch(statement).await {
        Err(error) if error.class == ErrorClass::Schema => return Ok(None),
        rows => rows?,
    };
    rows.first().map(|row| row.hash(0).map(ClusterId)).transpose()
}

/// The cluster that a catalog gets if it has none yet.
pub(super) struct IfNew(pub(super) ClusterId);

#[async_trait]
impl Identity for IfNew {
    async fn write(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        if read(session).await?.is_some() {
            return Ok(());
        }
        // Versions begin at 1: whoever knows nothing has 0.
        let sql = "INSERT INTO cluster \
                   (id, cluster, shards_version, nodes_version, assignment_version, last_shard) \
                   VALUES (1, ?, 1, 1, 1, 0)";
        session.execute(Statement::new(sql, vec![self.0.0.as_slice().into()])).await.map(drop)
    }
}

/// Reads the cluster.
pub(super) struct ReadCluster;

#[async_trait]
impl Call for ReadCluster {
    type Answer = Option<ClusterId>;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Option<ClusterId>, Failure> {
        session.begin().await?;
        let cluster = read(session).await?;
        session.rollback().await?;
        Ok(cluster)
    }
}

/// Checks the schema's version.
pub(super) struct CheckVersion(pub(super) &'static Schema);

#[async_trait]
impl Call for CheckVersion {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        session.begin().await?;
        version::check(session, self.0).await?;
        Ok(session.rollback().await?)
    }
}
