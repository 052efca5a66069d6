//! A catalog in a SQLite file, for `forebay dev` and tests.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;

use super::{migrate, open, session::SqliteSession};
use crate::{
    catalog::{Catalog, CatalogSession, Connections, Connector},
    error::{MigrateError, StoreError},
    sql::{
        Row, Session as _, Statement,
        version::{Identity, Schema},
    },
};

/// The catalog of a cluster in a SQLite file.
pub struct SqliteCatalog {
    /// The database file.
    path: PathBuf,
    /// The connections that are kept.
    connections: Connections<SqliteSession>,
}

impl std::fmt::Debug for SqliteCatalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteCatalog").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteCatalog {
    /// A catalog in the file at `path`. [`Catalog::migrate`](crate::Catalog::migrate) creates the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), connections: Connections::default() }
    }

    /// The catalog as nodes hold it. Made here, so that this crate alone compiles its calls.
    pub fn shared(self) -> Arc<dyn Catalog> {
        Arc::new(self)
    }
}

#[async_trait]
impl Connector for SqliteCatalog {
    type Session = SqliteSession;

    async fn connect(&self) -> Result<SqliteSession, StoreError> {
        open::open_catalog(&self.path).await.map(SqliteSession)
    }

    async fn migrate(&self, identity: &dyn Identity) -> Result<Vec<u32>, MigrateError> {
        migrate::migrate(&self.path, &migrate::CATALOG, identity).await
    }

    fn schema(&self) -> &'static Schema {
        &migrate::CATALOG
    }

    fn connections(&self) -> &Connections<SqliteSession> {
        &self.connections
    }
}

#[async_trait]
impl CatalogSession for SqliteSession {
    async fn snapshot(&mut self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        // Its first query decides which moment it sees.
        self.execute(Statement::new("BEGIN", vec![])).await?;
        let mut rows = Vec::with_capacity(queries.len());
        for query in queries {
            rows.push(self.fetch(query).await?);
        }
        self.commit().await?;
        Ok(rows)
    }

    async fn execute_alone(&mut self, statement: Statement) -> Result<u64, StoreError> {
        self.execute(statement).await
    }
}
