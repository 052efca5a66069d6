//! PostgreSQL: one table as a queue, with `FOR UPDATE SKIP LOCKED`, and `NOTIFY` for waiting consumers.
//!
//! A dequeue marks its rows as leased and an ack deletes them, so that the items of a lost consumer can be
//! delivered again. No sweep for expired leases runs during a measurement, which favours PostgreSQL.

mod server;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::TryFutureExt as _;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    sync::{Notify, mpsc},
    task::AbortHandle,
    time::{Instant, timeout_at},
};

use super::delays::refuse_delays;
use crate::system::{BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System};

/// The table of the queue. Its rows are short-lived, so it is vacuumed early and at full speed.
const SCHEMA: &str = "
CREATE TABLE item (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic integer NOT NULL,
    priority smallint NOT NULL,
    ready boolean NOT NULL DEFAULT true,
    locked_until timestamptz,
    payload bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX item_ready ON item (topic, priority, id) WHERE ready;
-- Payloads are random, so compression is useless.
ALTER TABLE item ALTER COLUMN payload SET STORAGE EXTERNAL;
";

const ENQUEUE: &str = "
INSERT INTO item (topic, priority, payload)
SELECT $1, u.priority, u.payload FROM unnest($2::smallint[], $3::bytea[]) AS u (priority, payload)";

/// Reads the topics in the order of the array, each in the order of its index, until there are enough rows.
/// Nothing is sorted, and only returned rows are locked.
const DEQUEUE: &str = "
WITH taken AS (
    SELECT head.id
    FROM unnest($1::integer[]) AS wanted (topic)
    CROSS JOIN LATERAL (
        SELECT id FROM item WHERE item.topic = wanted.topic AND ready
        ORDER BY priority, id LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS head
    LIMIT $2
)
UPDATE item SET ready = false, locked_until = now() + interval '60 s'
FROM taken WHERE item.id = taken.id
RETURNING item.id, item.topic, item.priority, item.payload";

/// For a consumer of one topic, the usual case.
const DEQUEUE_ONE: &str = "
WITH taken AS (
    SELECT id FROM item WHERE topic = $1 AND ready
    ORDER BY priority, id LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE item SET ready = false, locked_until = now() + interval '60 s'
FROM taken WHERE item.id = taken.id
RETURNING item.id, item.topic, item.priority, item.payload";

const ACK: &str = "DELETE FROM item WHERE id = ANY($1)";

/// Runs after the commit, so that the lock of `NOTIFY` is not held while the log is synced.
const NOTIFY: &str = "SELECT pg_notify('t' || topic, '') FROM unnest($1::integer[]) AS u (topic)";

/// Starts the server and creates the table.
pub async fn start(program: PathBuf) -> anyhow::Result<Box<dyn System>> {
    let server = server::start(program).await?;
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(server.process().port())
        .username("postgres")
        .database("postgres")
        .disable_statement_logging();
    let connect = || PgConnection::connect_with(&options).map_err(anyhow::Error::from);
    let mut connection = server.process().until_ready(connect).await?;
    connection.execute(sqlx::raw_sql(SCHEMA)).await?;
    let (put, puts) = mpsc::unbounded_channel();
    let notifier = tokio::spawn(notify(connection, puts)).abort_handle();
    Ok(Box::new(Postgres { options, put, _notifier: Task(notifier), server }))
}

struct Postgres {
    options: PgConnectOptions,
    put: mpsc::UnboundedSender<u32>,
    _notifier: Task,
    server: server::Server,
}

/// A task that ends with its owner.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Postgres {
    async fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options).await?)
    }
}

/// Notifies the consumers of topics with new items. Topics that arrive during one statement are combined in
/// the next, so that this costs little under load.
async fn notify(mut connection: PgConnection, mut puts: mpsc::UnboundedReceiver<u32>) {
    while let Some(topic) = puts.recv().await {
        let mut topics = BTreeSet::from([topic]);
        while let Ok(topic) = puts.try_recv() {
            topics.insert(topic);
        }
        let topics: Vec<i32> = topics.into_iter().map(|topic| topic as i32).collect();
        if sqlx::query(NOTIFY).bind(topics).execute(&mut connection).await.is_err() {
            // Consumers find the items without it, only later.
            return;
        }
    }
}

#[async_trait]
impl System for Postgres {
    fn durability(&self) -> Durability {
        Durability::OnDisk
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn batches_are_ordered(&self) -> bool {
        true
    }

    fn processes(&self) -> Vec<ProcessRole> {
        let processes = self.server.process().processes().into_iter();
        processes.map(|process| ProcessRole { role: "database", ..process }).collect()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut connection = self.connect().await?;
        let mut settings = Vec::new();
        for name in server::REPORTED {
            let sql = AssertSqlSafe(format!("SHOW {name}"));
            let value: String = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
            settings.push((name.to_owned(), value));
        }
        settings.push(("waiting".to_owned(), "LISTEN/NOTIFY after the commit".to_owned()));
        Ok(settings)
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(PostgresProducer { connection: self.connect().await?, put: self.put.clone() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let mut connection = self.connect().await?;
        // The index leads to the head of each topic. With outdated statistics the planner might read the
        // whole table instead.
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off").await?;
        let pool = PgPoolOptions::new().max_connections(1).connect_with(self.options.clone()).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        let channels: Vec<String> = topics.iter().map(|topic| format!("t{topic}")).collect();
        listener.listen_all(channels.iter().map(String::as_str)).await?;
        let came = Arc::new(Notify::new());
        let notify = came.clone();
        let task = tokio::spawn(async move {
            while listener.recv().await.is_ok() {
                notify.notify_one();
            }
        });
        Ok(Box::new(PostgresConsumer {
            connection,
            topics: topics.into_iter().map(|topic| topic as i32).collect(),
            came,
            leased: Vec::new(),
            _listener: Task(task.abort_handle()),
        }))
    }
}

struct PostgresProducer {
    connection: PgConnection,
    put: mpsc::UnboundedSender<u32>,
}

#[async_trait]
impl Producer for PostgresProducer {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        refuse_delays(&items)?;
        let priorities: Vec<i16> = items.iter().map(|item| item.priority.into()).collect();
        let payloads: Vec<&[u8]> = items.iter().map(|item| &*item.payload).collect();
        let query = sqlx::query(ENQUEUE).bind(topic as i32).bind(priorities).bind(payloads);
        query.execute(&mut self.connection).await?;
        // The notifier ends with the system.
        let _ = self.put.send(topic);
        Ok(())
    }
}

struct PostgresConsumer {
    connection: PgConnection,
    topics: Vec<i32>,
    came: Arc<Notify>,
    leased: Vec<i64>,
    _listener: Task,
}

impl PostgresConsumer {
    async fn dequeue(&mut self, max: usize) -> anyhow::Result<Vec<BenchDelivery>> {
        // Another topic is first next time.
        if self.topics.len() > 1 {
            self.topics.rotate_left(1);
        }
        let query = match self.topics[..] {
            [topic] => sqlx::query(DEQUEUE_ONE).bind(topic),
            _ => sqlx::query(DEQUEUE).bind(self.topics.clone()),
        };
        let rows = query.bind(max as i64).fetch_all(&mut self.connection).await?;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            let (id, topic, priority): (i64, i32, i16) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let payload: Vec<u8> = row.try_get(3)?;
            items.push((priority, id, BenchDelivery { topic: topic as u32, payload: payload.into() }));
        }
        // An update returns its rows in any order.
        items.sort_unstable_by_key(|(priority, id, _)| (*priority, *id));
        self.leased = items.iter().map(|(_, id, _)| *id).collect();
        Ok(items.into_iter().map(|(.., item)| item).collect())
    }
}

#[async_trait]
impl Consumer for PostgresConsumer {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        let deadline = Instant::now() + wait;
        loop {
            let items = self.dequeue(max).await?;
            if !items.is_empty() || timeout_at(deadline, self.came.notified()).await.is_err() {
                return Ok(items);
            }
        }
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        let ids = std::mem::take(&mut self.leased);
        if !ids.is_empty() {
            sqlx::query(ACK).bind(ids).execute(&mut self.connection).await?;
        }
        Ok(())
    }
}
