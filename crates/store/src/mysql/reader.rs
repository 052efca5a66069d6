//! A small pool of connections that only read.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
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
    error::{ErrorClass, StoreError},
    sql::{Dialect, ReadConnection, Row, Statement},
};

/// The connections of a reader.
pub(super) struct MySqlReadPool {
    /// Connects when first used.
    pool: MySqlPool,
    /// The schema's address, for messages.
    address: String,
}

impl MySqlReadPool {
    /// Creates the pool. It connects when first used. Each query is a transaction of its own, so a connection
    /// returns to the pool without one.
    pub(super) fn new(options: &MySqlConnectOptions) -> Self {
        let pool = MySqlPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            .idle_timeout(Duration::from_secs(5 * 60))
            .max_lifetime(Duration::from_secs(30 * 60))
            .after_connect(|connection, _| Box::pin(connect::prepare_reader(connection)));
        Self { pool: pool.connect_lazy_with(options.clone()), address: connect::address(options) }
    }
}

#[async_trait]
impl ReadConnection for MySqlReadPool {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let mut connection = self.pool.acquire().await.map_err(classify)?;
        let query = async {
            // Row by row, so that no row is in memory twice.
            let mut answer = sqlx::query_with(sql, arguments).fetch(&mut *connection);
            let mut rows = Vec::new();
            while let Some(row) = answer.try_next().await.map_err(classify)? {
                rows.push(decode(&row)?);
            }
            Ok(rows)
        };
        match tokio::time::timeout(STATEMENT_TIMEOUT, query).await {
            Ok(rows) => rows,
            Err(_) => {
                // The answer may still arrive. The next user of this connection would take it for its own.
                drop(connection.detach());
                let message = format!("{} did not answer within 10 s", self.address);
                Err(StoreError::new(ErrorClass::Disconnected, message))
            }
        }
    }
}
