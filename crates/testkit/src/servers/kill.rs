//! Ends statements and connections at a server, as an operator would.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};
use tokio::time::{Instant, sleep};

use super::foreign::{ForeignConnection, connections};

/// The wanted kills are done within this time, on a server under load.
const KILLS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait when nothing is running.
const PAUSE: Duration = Duration::from_millis(1);

/// Target of a kill.
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
        let mut found = connections(&mut connection, databases).await?;
        found.retain(|seen| seen.command != "Sleep");
        for ForeignConnection { id, .. } in &found {
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
