//! Creates databases, and runs blocking work.

use std::time::Duration;

use forebay_servers::random;
use sqlx::{Connection as _, Executor as _, MySqlConnection};

/// A server that another test has just started may still be short of threads.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a database with a random name on the server at `url`. Returns its URL.
pub(super) async fn fresh_database(url: &str) -> anyhow::Result<String> {
    let name = format!("forebay_{:016x}", random());
    let connecting = MySqlConnection::connect(url);
    let mut connection = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await??;
    connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await?;
    connection.close().await?;
    Ok(format!("{url}/{name}"))
}

/// Runs blocking work on a thread of its own, so that it works in every kind of runtime.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}
