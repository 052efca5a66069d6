//! A small pool of connections that only read.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::{MySql, MySqlPool, mysql::MySqlPoolOptions, pool::PoolConnection};
use tokio::sync::watch;

use super::{
    connect::{self, Role, STATEMENT_TIMEOUT},
    error::{classify, is_other_server},
    server::Server,
    session::{bind, decode},
};
use crate::{
    error::{ErrorClass, StoreError},
    mysql_address::Target,
    sql::{Dialect, ReadConnection, Row, Statement},
};

/// The connections of a reader.
pub(super) struct MySqlReadPool {
    /// Connects when first used.
    pool: MySqlPool,
    /// The server that is read, as it names itself.
    server: Arc<str>,
    /// How to connect.
    target: Target,
    /// The password with which the pool connects, if it stands in a file.
    password: Mutex<Option<Arc<str>>>,
    /// Why no new connection can be had, once another server answers at the address. The pool itself only
    /// tries again.
    other_server: watch::Receiver<Option<StoreError>>,
}

impl MySqlReadPool {
    /// Creates the pool. It connects when first used. Each query is a transaction of its own, so a connection
    /// returns to the pool without one.
    pub(super) fn new(server: &Server) -> Self {
        let (report, other_server) = watch::channel(None);
        let (report, checked) = (Arc::new(report), server.clone());
        let pool = MySqlPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(2))
            // A take-over reads with several at once, and then the shard may be idle for ever.
            .idle_timeout(Duration::from_secs(60))
            .max_lifetime(Duration::from_secs(30 * 60))
            .after_connect(move |connection, _| {
                let (report, server) = (report.clone(), checked.clone());
                Box::pin(async move {
                    server.check(connection).await.inspect_err(|error| report_other(&report, error))?;
                    connect::prepare(connection, Role::Reader).await
                })
            });
        let target = server.target.clone();
        Self {
            password: Mutex::new(target.password()),
            pool: pool.connect_lazy_with(target.options()),
            server: server.identity.clone(),
            target,
            other_server,
        }
    }

    /// Connections that the pool opens from now on have the password that its file says now.
    fn renew_password(&self) {
        let now = self.target.password();
        let mut known = self.password.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != now {
            self.pool.set_connect_options(self.target.options());
            *known = now;
        }
    }

    async fn acquire(&self) -> Result<PoolConnection<MySql>, StoreError> {
        self.renew_password();
        let mut other_server = self.other_server.clone();
        let other = async {
            match other_server.wait_for(Option::is_some).await {
                Ok(error) => error.clone(),
                Err(_) => None,
            }
        };
        tokio::select! {
            biased;
            acquired = self.pool.acquire() => acquired.map_err(classify),
            Some(error) = other => Err(error),
        }
    }
}

fn report_other(report: &watch::Sender<Option<StoreError>>, error: &sqlx::Error) {
    let message = error.to_string();
    if is_other_server(error) {
        report.send_replace(Some(StoreError::new(ErrorClass::NotPrimary, message)));
    }
}

#[async_trait]
impl ReadConnection for MySqlReadPool {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn server(&self) -> &str {
        &self.server
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let mut connection = self.acquire().await?;
        let query = async {
            // Row by row, so that no row is in memory twice.
            let mut answer = sqlx::query_with(sql, arguments).fetch(&mut *connection);
            let mut rows = Vec::new();
            while let Some(row) = answer.try_next().await.map_err(classify)? {
                rows.push(decode(&row)?);
            }
            Ok::<_, StoreError>(rows)
        };
        match tokio::time::timeout(STATEMENT_TIMEOUT, query).await {
            Ok(Err(error)) if error.class == ErrorClass::Unavailable => {
                // There may be too many prepared statements (1461): this connection's are freed with it.
                drop(connection.detach());
                Err(error)
            }
            Ok(rows) => rows,
            Err(_) => {
                // The answer may still arrive. The next user of this connection would take it for its own.
                drop(connection.detach());
                let message = format!("{} did not answer within 10 s", self.target.address());
                Err(StoreError::new(ErrorClass::Disconnected, message))
            }
        }
    }
}
