//! Ends statements and connections at a server, as an operator would.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, Row as _};
use tokio::time::{Instant, sleep};

/// So many kills are done within this time, on a server under load.
const KILLS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait when nothing is running.
const PAUSE: Duration = Duration::from_millis(1);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// The statement that runs; its connection stays.
    Query,
    /// The connection, with what it does.
    Connection,
}

/// Kills so many statements that run in these databases, or their connections. Panics with the reason if the
/// server refuses, or if too few statements run.
pub async fn kill(server: &str, databases: &[String], what: Kill, count: usize) {
    if let Err(error) = try_kill(server, databases, what, count).await {
        panic!("{what:?} on {server}: {error:#}");
    }
}

async fn try_kill(server: &str, databases: &[String], what: Kill, count: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut connection = MySqlConnection::connect(server).await?;
    let verb = match what {
        Kill::Query => "KILL QUERY",
        Kill::Connection => "KILL CONNECTION",
    };
    let mut killed = 0;
    while killed < count {
        anyhow::ensure!(begun.elapsed() < KILLS_TIMEOUT, "only {killed} of {count} were killed");
        let mut found = Vec::new();
        // Not from `information_schema`: on MySQL that fails while a statement holds bytes that are no text.
        for row in connection.fetch_all(sqlx::raw_sql("SHOW PROCESSLIST")).await? {
            let database: Option<String> = row.try_get_unchecked("db")?;
            let command: String = row.try_get_unchecked("Command")?;
            if command != "Sleep" && database.is_some_and(|database| databases.contains(&database)) {
                found.push(row.try_get_unchecked::<i64, _>("Id")?);
            }
        }
        for id in &found {
            // It may have ended meanwhile.
            let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(format!("{verb} {id}")))).await;
            killed += usize::from(done.is_ok());
        }
        if found.is_empty() {
            sleep(PAUSE).await;
        }
    }
    connection.close().await?;
    Ok(())
}
