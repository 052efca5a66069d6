//! A few connections that only read.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{SqlitePool, sqlite::SqlitePoolOptions};

use super::{
    error::classify,
    open,
    session::{bind, decode},
};
use crate::{
    StoreError,
    sql::{Dialect, Row, Source, Statement},
};

pub(super) struct SqliteSource(SqlitePool);

impl SqliteSource {
    pub(super) fn new(path: &Path) -> Self {
        let options = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            .idle_timeout(Duration::from_secs(5 * 60));
        Self(options.connect_lazy_with(open::options(path).pragma("query_only", "ON")))
    }
}

#[async_trait]
impl Source for SqliteSource {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let rows = sqlx::query_with(sql, arguments).fetch_all(&self.0).await.map_err(classify)?;
        rows.iter().map(decode).collect()
    }
}
