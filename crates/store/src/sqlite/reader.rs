//! A small pool of connections that only read.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
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

/// Rows that a query may be ahead of its reader. The driver's own 50 may be 13 MiB of bodies.
const ROWS_AHEAD: usize = 8;

/// The connections of a reader.
pub(super) struct SqliteReadPool(SqlitePool);

impl SqliteReadPool {
    /// Creates the pool. It connects when first used.
    pub(super) fn new(path: &Path) -> Self {
        let options = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            .idle_timeout(Duration::from_secs(5 * 60));
        let connection = open::options(path).pragma("query_only", "ON").row_buffer_size(ROWS_AHEAD);
        Self(options.connect_lazy_with(connection))
    }
}

#[async_trait]
impl ReadConnection for SqliteReadPool {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn server(&self) -> &str {
        ""
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        // Row by row, so that no row is in memory twice.
        let mut answer = sqlx::query_with(sql, arguments).fetch(&self.0);
        let mut rows = Vec::new();
        while let Some(row) = answer.try_next().await.map_err(classify)? {
            rows.push(decode(&row)?);
        }
        Ok(rows)
    }
}
