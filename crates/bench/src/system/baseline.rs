//! The baseline: the same items through the same database in plain batched statements, without a queue.
//!
//! A transaction inserts one batch with its delivery index, writes one lease row for the previous batch, and
//! deletes the batch before that by key. Each shard has one table and one connection, at READ COMMITTED. A
//! queue that stores items as rows of this database does at least this work for each of its batches, so
//! results of Forebay are shown relative to the baseline.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use forebay_servers::Process;
use sqlx::{Connection as _, MySqlConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    ProcessRole, SystemConfig,
    server::{StatementTime, start_server, statements_of},
};
use crate::{
    database::{Database, execute, settings_of, url_of},
    limit::StopFlag,
    payload::{Header, Payloads},
};

/// Which steps are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// Insert, lease and delete.
    All,
    /// Insert only.
    Insert,
    /// Lease and delete the backlog.
    Drain,
}

/// A running database with one table per shard, without a queue.
pub struct Baseline {
    /// One table per shard.
    tables: Vec<Table>,
    /// The configuration it was started with.
    config: SystemConfig,
    /// The database server; `None` for SQLite.
    server: Option<Process>,
    /// Holds SQLite's files; removed at the end.
    _folder: TempDir,
}

struct Table {
    connection: Connection,
    /// Number of the next item.
    next: i64,
}

enum Connection {
    MySql(MySqlConnection),
    Sqlite(SqliteConnection),
}

enum Value {
    Number(i64),
    Bytes(Bytes),
}

impl Baseline {
    /// Starts the database.
    pub async fn start(config: &SystemConfig) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
        let server = match config.database {
            Database::Sqlite => None,
            Database::Server { kind, binlog } => Some(start_server(kind, binlog, config)?),
        };
        let mut tables = Vec::new();
        for shard in 0..config.shards {
            let connection = match &server {
                Some(server) => Connection::MySql(mysql(server, shard).await?),
                None => {
                    let file = folder.path().join(format!("{shard}.db"));
                    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
                    let options = options
                        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                        .synchronous(sqlx::sqlite::SqliteSynchronous::Full);
                    Connection::Sqlite(SqliteConnection::connect_with(&options).await?)
                }
            };
            let mut table = Table { connection, next: 0 };
            table.make().await?;
            tables.push(table);
        }
        Ok(Self { tables, config: config.clone(), server, _folder: folder })
    }

    /// The database's process. With SQLite there is none: this process does the work.
    pub fn processes(&self) -> Vec<ProcessRole> {
        let pid = self.server.as_ref().and_then(Process::pid);
        pid.map(|pid| ProcessRole { role: "database", pid }).into_iter().collect()
    }

    /// The database's time by statement, if requested.
    pub async fn statements(&self) -> anyhow::Result<Vec<StatementTime>> {
        statements_of(self.server.as_ref(), &self.config).await
    }

    /// As [`super::System::settings`].
    pub async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        settings_of(self.server.as_ref()).await
    }

    /// Inserts a backlog of `count` items.
    pub async fn fill(&mut self, payloads: &Payloads, count: u64) -> anyhow::Result<()> {
        let each = count as i64 / self.tables.len() as i64;
        for table in &mut self.tables {
            while table.next < each {
                let batch = (each - table.next).min(500);
                table.begin().await?;
                table.insert(payloads, batch, &self.config).await?;
                table.commit().await?;
            }
        }
        Ok(())
    }

    /// Works until `stop` is set or the backlog is drained. `done` counts the processed items.
    pub async fn run(
        &mut self,
        steps: Steps,
        batch: usize,
        payloads: Arc<Payloads>,
        stop: &Arc<StopFlag>,
        done: &Arc<AtomicU64>,
    ) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        for mut table in self.tables.drain(..) {
            let (payloads, stop, config) = (payloads.clone(), stop.clone(), self.config.clone());
            let done = done.clone();
            tasks.spawn(async move {
                table.work(steps, batch as i64, &payloads, &stop, &done, &config).await?;
                anyhow::Ok(table)
            });
        }
        while let Some(ended) = tasks.join_next().await {
            self.tables.push(ended??);
        }
        Ok(())
    }
}

async fn mysql(server: &Process, shard: u32) -> anyhow::Result<MySqlConnection> {
    let name = format!("baseline_{shard}");
    execute(&server.url(), &format!("CREATE DATABASE {name}")).await?;
    let mut connection = MySqlConnection::connect(&url_of(&server.url(), &name)).await?;
    // The same settings as Forebay's sessions: minimal row images, no statement text in the binary log.
    sqlx::raw_sql(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         SET SESSION autocommit = 0, binlog_row_image = MINIMAL \
         /*M!100204 , binlog_annotate_row_events = OFF */",
    )
    .execute(&mut connection)
    .await?;
    Ok(connection)
}

impl Table {
    async fn make(&mut self) -> anyhow::Result<()> {
        let (engine, blob) = match self.connection {
            Connection::MySql(_) => (" ENGINE=InnoDB", "MEDIUMBLOB"),
            Connection::Sqlite(_) => ("", "BLOB"),
        };
        let item = format!(
            "CREATE TABLE item (seq BIGINT NOT NULL PRIMARY KEY, topic INT NOT NULL, priority INT NOT NULL, \
             payload {blob} NOT NULL){engine}"
        );
        let lease =
            format!("CREATE TABLE lease (id BIGINT NOT NULL PRIMARY KEY, entries {blob} NOT NULL){engine}");
        self.execute(&item, Vec::new()).await?;
        self.execute("CREATE INDEX delivery ON item (topic, priority, seq)", Vec::new()).await?;
        self.execute(&lease, Vec::new()).await
    }

    async fn work(
        &mut self,
        steps: Steps,
        batch: i64,
        payloads: &Payloads,
        stop: &StopFlag,
        done: &AtomicU64,
        config: &SystemConfig,
    ) -> anyhow::Result<()> {
        let filled = self.next;
        // Items below these numbers are leased and deleted, respectively.
        let (mut leased, mut deleted) = (0, 0);
        if steps == Steps::All {
            // The backlog stays.
            (leased, deleted) = (filled, filled);
        }
        while !stop.is_set() && (steps != Steps::Drain || deleted < filled) {
            self.begin().await?;
            let (before, next, gone) = (leased, self.next, deleted);
            if steps != Steps::Drain {
                self.insert(payloads, batch, config).await?;
            }
            if steps != Steps::Insert {
                if before > deleted {
                    self.delete(deleted, before).await?;
                    deleted = before;
                }
                let until = if steps == Steps::Drain { next.min(leased + batch) } else { next };
                if until > leased {
                    self.lease(leased, until).await?;
                    leased = until;
                }
            }
            self.commit().await?;
            let through = if steps == Steps::Insert { batch } else { deleted - gone };
            done.fetch_add(through as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn begin(&mut self) -> anyhow::Result<()> {
        match self.connection {
            Connection::MySql(_) => Ok(()),
            Connection::Sqlite(_) => self.execute("BEGIN IMMEDIATE", Vec::new()).await,
        }
    }

    async fn commit(&mut self) -> anyhow::Result<()> {
        self.execute("COMMIT", Vec::new()).await
    }

    async fn insert(&mut self, payloads: &Payloads, batch: i64, config: &SystemConfig) -> anyhow::Result<()> {
        let statement = format!("INSERT INTO item VALUES {}", list("(?,?,?,?)", batch));
        let mut values = Vec::with_capacity(batch as usize * 4);
        for seq in self.next..self.next + batch {
            // Each batch has one topic, like a producer's call.
            let (topic, priority) =
                ((seq / batch) as u32 % config.topics, (seq % i64::from(config.priorities)) as u8);
            let payload = payloads.make(Header { number: seq as u64, topic, priority, at_us: 0 });
            values.extend([seq, i64::from(topic), i64::from(priority)].map(Value::Number));
            values.push(Value::Bytes(payload));
        }
        self.next += batch;
        self.execute(&statement, values).await
    }

    async fn lease(&mut self, from: i64, until: i64) -> anyhow::Result<()> {
        /// A packed delivery: number, topic, priority, nonce, deadline.
        const ENTRY_BYTES: usize = 28;
        let entries = vec![7; ENTRY_BYTES * (until - from) as usize];
        let values = vec![Value::Number(from), Value::Bytes(entries.into())];
        self.execute("INSERT INTO lease VALUES (?,?)", values).await
    }

    async fn delete(&mut self, from: i64, until: i64) -> anyhow::Result<()> {
        let limit = match self.connection {
            Connection::MySql(_) => format!(" ORDER BY seq LIMIT {}", until - from),
            Connection::Sqlite(_) => String::new(),
        };
        let statement = format!("DELETE FROM item WHERE seq IN ({}){limit}", list("?", until - from));
        self.execute(&statement, (from..until).map(Value::Number).collect()).await
    }

    async fn execute(&mut self, statement: &str, values: Vec<Value>) -> anyhow::Result<()> {
        macro_rules! bound {
            ($connection:expr) => {{
                let mut query = sqlx::query(sqlx::AssertSqlSafe(statement));
                for value in values {
                    query = match value {
                        Value::Number(number) => query.bind(number),
                        Value::Bytes(bytes) => query.bind(bytes.to_vec()),
                    };
                }
                query.execute($connection).await?;
            }};
        }
        match &mut self.connection {
            Connection::MySql(connection) => bound!(connection),
            Connection::Sqlite(connection) => bound!(connection),
        }
        Ok(())
    }
}

fn list(one: &str, count: i64) -> String {
    vec![one; count as usize].join(",")
}
