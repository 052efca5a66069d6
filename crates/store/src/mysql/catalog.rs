//! A catalog in a schema of MySQL or MariaDB.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    connect::{Role, connect},
    migrate,
    session::MySqlSession,
};
use crate::{
    catalog::{Catalog, CatalogSession, Connections, Connector},
    error::{ErrorClass, MigrateError, StoreError},
    mysql_address::{MySqlOptions, Target, options},
    sql::{
        Row, Statement,
        version::{Identity, Schema},
    },
};

/// The catalog of a cluster in a schema of MySQL or MariaDB.
pub struct MySqlCatalog {
    /// How to connect.
    target: Target,
    /// The connections that are kept.
    connections: Connections<MySqlSession>,
}

impl std::fmt::Debug for MySqlCatalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the target: it contains the password.
        f.debug_struct("MySqlCatalog").finish_non_exhaustive()
    }
}

impl MySqlCatalog {
    /// A catalog in the schema that `url` names, as in `mysql://forebay@db1:3306/forebay_catalog`. The error
    /// explains what is wrong with the URL and never repeats a password.
    pub fn new(url: &str, options: &MySqlOptions) -> Result<Self, StoreError> {
        Ok(Self { target: options::parse(url, "catalog", options)?, connections: Connections::default() })
    }

    /// The catalog as nodes hold it. Made here, so that this crate alone compiles its calls.
    pub fn shared(self) -> Arc<dyn Catalog> {
        Arc::new(self)
    }
}

#[async_trait]
impl Connector for MySqlCatalog {
    type Session = MySqlSession;

    async fn connect(&self) -> Result<MySqlSession, StoreError> {
        connect(&self.target, Role::Writer).await.map_err(|error| match error.class {
            ErrorClass::Schema => migrate::CATALOG.missing(&error),
            _ => error,
        })
    }

    async fn migrate(&self, identity: &dyn Identity) -> Result<Vec<u32>, MigrateError> {
        migrate::migrate(&self.target, &migrate::CATALOG, identity).await
    }

    fn schema(&self) -> &'static Schema {
        &migrate::CATALOG
    }

    fn connections(&self) -> &Connections<MySqlSession> {
        &self.connections
    }
}

/// Statements before the queries of a snapshot. A session's own transactions are READ COMMITTED, in which
/// each query would see a moment of its own.
const BEFORE: [&str; 2] = [
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "/* forebay catalog */ START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
];

#[async_trait]
impl CatalogSession for MySqlSession {
    async fn snapshot(&mut self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError> {
        let plain = |sql| Statement::new(sql, vec![]);
        let count = queries.len();
        let statements = BEFORE.into_iter().map(plain).chain(queries).chain([plain("COMMIT")]);
        let rows = self.fetch_each(statements).await?;
        Ok(rows.into_iter().skip(BEFORE.len()).take(count).collect())
    }

    async fn execute_alone(&mut self, statement: Statement) -> Result<u64, StoreError> {
        self.execute_and_fetch(statement, "COMMIT").await.map(|(matched, _)| matched)
    }
}
