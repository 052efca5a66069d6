//! The database of Forebay and of the baseline, and its settings.

use std::{fmt, str::FromStr, time::Duration};

use anyhow::{Context as _, ensure};
use forebay_servers::{Kind, Process};
use sqlx::{Connection as _, MySqlConnection, Row as _};

use crate::times::now;

/// A database with durable commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// Embedded SQLite; each commit is synced.
    Sqlite,
    /// A server. Each commit is synced in its log, and in the binary log if there is one.
    Server {
        /// MariaDB or MySQL.
        kind: Kind,
        /// Whether it writes a binary log.
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
                "unknown database {text:?}: use sqlite, mariadb, mariadb-nobinlog, mysql or mysql-nobinlog"
            )
        })?;
        Ok(Self::Server { kind, binlog })
    }
}

/// The URL of a database on a server, without TLS. With TLS, each statement of more than one record would
/// take sqlx 40 ms. Production has no TLS between programs on one machine either.
pub fn url_of(server: &str, database: &str) -> String {
    format!("{server}/{database}?ssl-mode=disabled")
}

/// Runs one statement on its own connection.
pub async fn execute(url: &str, statement: &str) -> anyhow::Result<()> {
    let mut connection = connect(url).await?;
    run(&mut connection, statement).await?;
    Ok(connection.close().await?)
}

/// Connects to a server.
pub async fn connect(url: &str) -> anyhow::Result<MySqlConnection> {
    MySqlConnection::connect(url).await.with_context(|| format!("cannot connect to {url}"))
}

/// Version of a server and its settings for durability and speed. Without a server: how SQLite is used.
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

/// A server in use always has some dirty pages.
const DIRTY_PAGES_MIN: u64 = 200;
/// How long a server may take to flush its buffer pool.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(600);

/// Makes a server flush its dirty pages as fast as it can, then restores its settings.
pub async fn flush_pages(server: &Process) -> anyhow::Result<()> {
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
        if pages <= DIRTY_PAGES_MIN {
            break;
        }
        ensure!(began.elapsed() < FLUSH_TIMEOUT, "{pages} pages are still dirty after {FLUSH_TIMEOUT:?}");
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
