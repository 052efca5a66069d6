//! The database server of a candidate: how it is started, and where it spends its time.

use forebay_servers::{Kind, Process, locate};
use serde::Serialize;
use sqlx::{Connection as _, Row as _};

use super::SystemConfig;
use crate::database::connect;

/// Starts a database server for a benchmark. The items of a usual run fit into its memory.
pub fn start_server(kind: Kind, binlog: bool, config: &SystemConfig) -> anyhow::Result<Process> {
    let pool_mib = config.pool_mib;
    let mut flags =
        vec![format!("--innodb-buffer-pool-size={pool_mib}M"), "--innodb-log-buffer-size=16M".to_owned()];
    if config.by_statement {
        flags.push("--performance-schema=ON".to_owned());
        flags.push("--performance-schema-instrument=statement/%=ON".to_owned());
    }
    flags.push(match kind {
        Kind::MariaDb => "--innodb-log-file-size=1G".to_owned(),
        Kind::MySql => "--innodb-redo-log-capacity=1G".to_owned(),
    });
    if !binlog {
        flags.push("--skip-log-bin".to_owned());
    }
    flags.extend(config.server_flags.iter().cloned());
    Process::start(locate(kind)?, &flags)
}

/// The time that a server spent on one kind of statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementTime {
    /// The server's name of the kind; `statement/com/Execute` are prepared statements.
    pub text: String,
    /// Number of executions.
    pub count: u64,
    /// Milliseconds from arrival to end, waits included.
    pub total_ms: f64,
}

/// The kinds of statement that took most time since the server's start. Empty unless `--by-statement` is set.
pub async fn statements_of(
    server: Option<&Process>,
    config: &SystemConfig,
) -> anyhow::Result<Vec<StatementTime>> {
    // A summary by digest would be finer, but MariaDB has no digests of prepared statements.
    const SUMMARY: &str = "SELECT EVENT_NAME AS text, COUNT_STAR AS count, \
                           CAST(SUM_TIMER_WAIT / 1e9 AS DOUBLE) AS total_ms \
                           FROM performance_schema.events_statements_summary_global_by_event_name \
                           WHERE COUNT_STAR > 0 ORDER BY total_ms DESC LIMIT 10";
    let Some(server) = server.filter(|_| config.by_statement) else { return Ok(Vec::new()) };
    let mut connection = connect(&server.url()).await?;
    let rows = sqlx::query(SUMMARY).fetch_all(&mut connection).await?;
    connection.close().await?;
    let read = |row: &sqlx::mysql::MySqlRow| {
        let text: String = row.try_get("text")?;
        Ok(StatementTime { text, count: row.try_get("count")?, total_ms: row.try_get("total_ms")? })
    };
    rows.iter().map(read).collect()
}
