//! A small pool of connections that only read.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{SqlitePool, sqlite::SqlitePoolOptions};

use super::{
    error::classify,
    open,
    session::{bind, decode},
};
use crate::{
    error::StoreError,
    sql::{Dialect, ReadConnection, Row, Statement},
};

/// The connections of a reader.
pub(super) struct SqliteReadPool(SqlitePool);

impl SqliteReadPool {
    /// Creates the pool. It connects when first used.
    pub(super) fn new(path: &Path) -> Self {
        let options = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            .idle_timeout(Duration::from_secs(5 * 60));
        Self(options.connect_lazy_with(open::options(path).pragma("query_only", "ON")))
    }
}

#[async_trait]
impl ReadConnection for SqliteReadPool {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let rows = sqlx::query_with(sql, arguments).fetch_all(&self.0).await.map_err(classify)?;
        rows.iter().map(decode).collect()
    }
}
