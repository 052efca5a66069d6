//! The floor: the same items through the same database in plain batched statements, without any queue.
//!
//! A transaction inserts one batch with its delivery index, writes one lease row for the last batch, and
//! deletes the batch before that by key. A table and a connection a shard, READ COMMITTED. No queue on this
//! database that keeps its items in rows can be faster, so each figure of Forebay is divided by this one.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use forebay_servers::Process;
use sqlx::{Connection as _, MySqlConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{Part, Setup};
use crate::{
    database::{Database, StatementTime, execute, settings_of, start_server, statements_of, url_of},
    payload::{Head, Payloads},
    workload::Gate,
};

/// Which steps of an item's life are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// Insert, lease and delete.
    All,
    /// Insert alone.
    Insert,
    /// Lease and delete what is there.
    Drain,
}

/// Tables with nothing in them.
pub struct Floor {
    tables: Vec<Table>,
    setup: Setup,
    server: Option<Process>,
    _folder: TempDir,
}

struct Table {
    connection: Connection,
    /// The number of the next item.
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

impl Floor {
    /// Starts the database.
    pub async fn start(setup: &Setup) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
        let server = match setup.database {
            Database::Sqlite => None,
            Database::Server { kind, binlog } => Some(start_server(kind, binlog, setup)?),
        };
        let mut tables = Vec::new();
        for shard in 0..setup.shards {
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
        Ok(Self { tables, setup: setup.clone(), server, _folder: folder })
    }

    /// The database's process; with SQLite the work is done in this one.
    pub fn parts(&self) -> Vec<Part> {
        let pid = self.server.as_ref().and_then(Process::pid);
        pid.map(|pid| Part { role: "database", pid }).into_iter().collect()
    }

    /// Where the database spent its time, if that was asked for.
    pub async fn statements(&self) -> anyhow::Result<Vec<StatementTime>> {
        statements_of(self.server.as_ref(), &self.setup).await
    }

    /// As [`super::System::settings`].
    pub async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        settings_of(self.server.as_ref()).await
    }

    /// Inserts `count` items that the next run finds.
    pub async fn fill(&mut self, payloads: &Payloads, count: u64) -> anyhow::Result<()> {
        let each = count as i64 / self.tables.len() as i64;
        for table in &mut self.tables {
            while table.next < each {
                let batch = (each - table.next).min(500);
                table.begin().await?;
                table.insert(payloads, batch, &self.setup).await?;
                table.commit().await?;
            }
        }
        Ok(())
    }

    /// Works until the gate closes, or a drain is at its end; `done` counts the items that went through.
    pub async fn run(
        &mut self,
        steps: Steps,
        batch: usize,
        payloads: Arc<Payloads>,
        gate: &Arc<Gate>,
        done: &Arc<AtomicU64>,
    ) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        for mut table in self.tables.drain(..) {
            let (payloads, gate, setup) = (payloads.clone(), gate.clone(), self.setup.clone());
            let done = done.clone();
            tasks.spawn(async move {
                table.work(steps, batch as i64, &payloads, &gate, &done, &setup).await?;
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
    let name = format!("floor_{shard}");
    execute(&server.url(), &format!("CREATE DATABASE {name}")).await?;
    let mut connection = MySqlConnection::connect(&url_of(&server.url(), &name)).await?;
    // As Forebay's own sessions have it: no statement text in the binary log.
    sqlx::raw_sql(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         SET SESSION autocommit = 0, binlog_row_image = MINIMAL /*M!100204 , binlog_annotate_row_events = OFF */",
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
        gate: &Gate,
        done: &AtomicU64,
        setup: &Setup,
    ) -> anyhow::Result<()> {
        let filled = self.next;
        // What has been leased, and what has been deleted, ends before these numbers.
        let (mut leased, mut deleted) = (0, 0);
        if steps == Steps::All {
            // What was there before stays, as a backlog does.
            (leased, deleted) = (filled, filled);
        }
        while gate.is_open() && (steps != Steps::Drain || deleted < filled) {
            self.begin().await?;
            let (before, next, gone) = (leased, self.next, deleted);
            if steps != Steps::Drain {
                self.insert(payloads, batch, setup).await?;
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

    async fn insert(&mut self, payloads: &Payloads, batch: i64, setup: &Setup) -> anyhow::Result<()> {
        let statement = format!("INSERT INTO item VALUES {}", list("(?,?,?,?)", batch));
        let mut values = Vec::with_capacity(batch as usize * 4);
        for seq in self.next..self.next + batch {
            // Batches of one topic each, as a producer's calls are.
            let (topic, priority) =
                ((seq / batch) as u32 % setup.topics, (seq % i64::from(setup.priorities)) as u8);
            let payload = payloads.make(Head { number: seq as u64, topic, priority, at_us: 0 });
            values.extend([seq, i64::from(topic), i64::from(priority)].map(Value::Number));
            values.push(Value::Bytes(payload));
        }
        self.next += batch;
        self.execute(&statement, values).await
    }

    async fn lease(&mut self, from: i64, until: i64) -> anyhow::Result<()> {
        /// What is needed of a delivery: number, topic, priority, nonce, deadline, packed.
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
