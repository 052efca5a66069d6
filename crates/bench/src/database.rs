//! The database that Forebay and the floor are measured on, and its settings.

use std::{fmt, str::FromStr, time::Duration};

use anyhow::{Context as _, ensure};
use forebay_servers::{Kind, Process, locate};
use serde::Serialize;
use sqlx::{Connection as _, MySqlConnection, Row as _};

use crate::{system::Setup, workload::now};

/// A database and what it promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// Embedded; each commit is synced.
    Sqlite,
    /// A server of that kind; each commit is on disk in its log, and in the binary log if there is one.
    Server {
        /// MariaDB or MySQL.
        kind: Kind,
        /// With the binary log, synced at each commit.
        binlog: bool,
    },
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("sqlite"),
            Self::Server { kind, binlog: true } => write!(f, "{kind}"),
            Self::Server { kind, binlog: false } => write!(f, "{kind}-nobinlog"),
        }
    }
}

impl FromStr for Database {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "sqlite" {
            return Ok(Self::Sqlite);
        }
        let (kind, binlog) = match text.strip_suffix("-nobinlog") {
            Some(kind) => (kind, false),
            None => (text, true),
        };
        let kind = kind.parse().map_err(|_| {
            anyhow::anyhow!(
                "no such database: {text:?} (sqlite, mariadb, mariadb-nobinlog, mysql, mysql-nobinlog)"
            )
        })?;
        Ok(Self::Server { kind, binlog })
    }
}

/// Starts a server of that kind with room for a benchmark: the backlog of a usual run fits into memory.
pub fn start_server(kind: Kind, binlog: bool, setup: &Setup) -> anyhow::Result<Process> {
    let pool_mib = setup.pool_mib;
    let mut flags =
        vec![format!("--innodb-buffer-pool-size={pool_mib}M"), "--innodb-log-buffer-size=16M".to_owned()];
    if setup.by_statement {
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
    flags.extend(setup.server_flags.iter().cloned());
    Process::start(locate(kind)?, &flags)
}

/// The URL of a database of a server without TLS, which no production set-up has between a node and its own machine, and
/// which costs sqlx 40 ms at each statement of more than one record.
pub fn url_of(server: &str, database: &str) -> String {
    format!("{server}/{database}?ssl-mode=disabled")
}

/// Runs one statement on a connection of its own.
pub async fn execute(url: &str, statement: &str) -> anyhow::Result<()> {
    let mut connection = connect(url).await?;
    run(&mut connection, statement).await?;
    Ok(connection.close().await?)
}

async fn connect(url: &str) -> anyhow::Result<MySqlConnection> {
    MySqlConnection::connect(url).await.with_context(|| format!("connecting to {url}"))
}

/// What a server says of its version, and of what a commit promises; without one, how SQLite is used.
pub async fn settings_of(server: Option<&Process>) -> anyhow::Result<Vec<(String, String)>> {
    const NAMES: [&str; 7] = [
        "version",
        "log_bin",
        "sync_binlog",
        "innodb_flush_log_at_trx_commit",
        "binlog_row_image",
        "innodb_buffer_pool_size",
        "innodb_flush_method",
    ];
    let Some(server) = server else {
        return Ok(vec![("SQLite".to_owned(), "embedded, WAL, synchronous=FULL".to_owned())]);
    };
    let mut connection = connect(&server.url()).await?;
    let mut settings = Vec::new();
    for name in NAMES {
        settings.push((name.to_owned(), global(&mut connection, name).await?));
    }
    connection.close().await?;
    Ok(settings)
}

/// Pages that a server which is used changes again and again.
const FEW_PAGES: u64 = 200;
/// How long a server may take to write out a buffer pool.
const WRITE_OUT: Duration = Duration::from_secs(600);

/// Lets a server write out the pages that it has changed in memory alone, as fast as it can, and makes it what it was.
pub async fn write_out(server: &Process) -> anyhow::Result<()> {
    const FAST: [(&str, u64); 3] = [
        ("innodb_io_capacity_max", 100_000),
        ("innodb_io_capacity", 50_000),
        ("innodb_max_dirty_pages_pct", 0),
    ];
    let status = match server.kind() {
        Kind::MariaDb => "information_schema.GLOBAL_STATUS",
        Kind::MySql => "performance_schema.global_status",
    };
    let dirty = format!(
        "SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM {status} \
         WHERE VARIABLE_NAME = 'Innodb_buffer_pool_pages_dirty'"
    );
    let mut connection = connect(&server.url()).await?;
    let mut before = Vec::new();
    for (name, fast) in FAST {
        before.push(format!("SET GLOBAL {name} = {}", global(&mut connection, name).await?));
        run(&mut connection, &format!("SET GLOBAL {name} = {fast}")).await?;
    }
    let began = now();
    loop {
        let row = sqlx::query(sqlx::AssertSqlSafe(dirty.clone())).fetch_one(&mut connection).await?;
        let pages: u64 = row.try_get(0)?;
        if pages <= FEW_PAGES {
            break;
        }
        ensure!(began.elapsed() < WRITE_OUT, "{pages} pages are still to be written after {WRITE_OUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for statement in before.iter().rev() {
        run(&mut connection, statement).await?;
    }
    Ok(connection.close().await?)
}

async fn global(connection: &mut MySqlConnection, name: &str) -> anyhow::Result<String> {
    let statement = format!("SELECT CAST(@@global.{name} AS CHAR)");
    let row = sqlx::query(sqlx::AssertSqlSafe(statement)).fetch_one(connection).await?;
    let value: Option<String> = row.try_get(0)?;
    Ok(value.unwrap_or_default())
}

async fn run(connection: &mut MySqlConnection, statement: &str) -> anyhow::Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

/// What the server spent on one kind of statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementTime {
    /// The server's name of it; `statement/com/Execute` is what is executed prepared.
    pub text: String,
    /// How often.
    pub count: u64,
    /// From its arrival to its end, waits included, in milliseconds.
    pub total_ms: f64,
}

/// Where a server spent its time since its start, the most first; nothing unless it was started for that.
pub async fn statements_of(server: Option<&Process>, setup: &Setup) -> anyhow::Result<Vec<StatementTime>> {
    // By digest would be finer, but MariaDB has no digest of what is executed prepared.
    const ASK: &str = "SELECT EVENT_NAME AS text, COUNT_STAR AS count, \
                       CAST(SUM_TIMER_WAIT / 1e9 AS DOUBLE) AS total_ms \
                       FROM performance_schema.events_statements_summary_global_by_event_name \
                       WHERE COUNT_STAR > 0 ORDER BY total_ms DESC LIMIT 10";
    let Some(server) = server.filter(|_| setup.by_statement) else { return Ok(Vec::new()) };
    let mut connection = connect(&server.url()).await?;
    let rows = sqlx::query(ASK).fetch_all(&mut connection).await?;
    connection.close().await?;
    let read = |row: &sqlx::mysql::MySqlRow| {
        let text: String = row.try_get("text")?;
        Ok(StatementTime { text, count: row.try_get("count")?, total_ms: row.try_get("total_ms")? })
    };
    rows.iter().map(read).collect()
}
