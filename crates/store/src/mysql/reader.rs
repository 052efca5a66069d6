//! A few connections that only read.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::{
    MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use super::{
    connect,
    error::classify,
    session::{STATEMENT_TIMEOUT, bind, decode},
};
use crate::{
    ErrorClass, StoreError,
    sql::{Dialect, ReadConnection, Row, Statement},
};

pub(super) struct MySqlReadPool(MySqlPool);

impl MySqlReadPool {
    /// Connects when first asked. Every question is a transaction by itself, so nothing is open on a
    /// connection that goes back.
    pub(super) fn new(options: &MySqlConnectOptions) -> Self {
        let pool = MySqlPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            .idle_timeout(Duration::from_secs(5 * 60))
            .max_lifetime(Duration::from_secs(30 * 60))
            .after_connect(|connection, _| Box::pin(connect::prepare_reader(connection)));
        Self(pool.connect_lazy_with(options.clone()))
    }
}

#[async_trait]
impl ReadConnection for MySqlReadPool {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let mut connection = self.0.acquire().await.map_err(classify)?;
        let asking = sqlx::query_with(sql, arguments).fetch_all(&mut *connection);
        match tokio::time::timeout(STATEMENT_TIMEOUT, asking).await {
            Ok(rows) => rows.map_err(classify)?.iter().map(decode).collect(),
            Err(_) => {
                // Its answer may still come: nobody else must read that for the answer to another question.
                drop(connection.detach());
                Err(StoreError::new(ErrorClass::Disconnected, "the server does not answer"))
            }
        }
    }
}
