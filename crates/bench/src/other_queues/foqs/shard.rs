//! A shard: one table, and one worker each for inserts, leases and deletes. A worker combines all waiting
//! requests in one statement.

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, Row as _, mysql::MySqlArguments,
    query::Query,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

/// Maximum rows in one statement, unless a single request has more.
pub const ROWS_MAX: usize = 1_000;
/// Maximum bytes of payload in one statement; servers accept at least 16 MiB.
const BYTES_MAX: usize = 4 << 20;

const SCHEMA: &str = "
CREATE TABLE item (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    topic INT UNSIGNED NOT NULL,
    priority TINYINT UNSIGNED NOT NULL,
    state TINYINT UNSIGNED NOT NULL COMMENT '0 ready, 1 delivered',
    deliver_after BIGINT UNSIGNED NOT NULL COMMENT 'seconds of the epoch',
    lease_until BIGINT UNSIGNED NOT NULL COMMENT 'seconds of the epoch',
    payload MEDIUMBLOB NOT NULL,
    KEY by_priority (topic, state, priority, deliver_after),
    KEY by_delay (state, deliver_after),
    KEY by_lease (state, lease_until)
) ENGINE = InnoDB";

/// An item to insert.
#[derive(Debug)]
pub struct Row {
    /// Key of the item.
    pub id: u64,
    /// Number of the topic.
    pub topic: u32,
    /// Smaller is more urgent.
    pub priority: u8,
    /// The payload.
    pub payload: Bytes,
}

/// Receives the answer to a request.
type Answer<T> = oneshot::Sender<Result<T, String>>;
type Insert = (Vec<Row>, Answer<()>);
type Lease = (Vec<u64>, Answer<Vec<(u64, Bytes)>>);
type Delete = (Vec<u64>, Answer<()>);

/// A table and its workers. Dropping it ends the workers.
pub struct Shard {
    /// Requests to the worker that inserts.
    inserts: mpsc::UnboundedSender<Insert>,
    /// Requests to the worker that leases.
    leases: mpsc::UnboundedSender<Lease>,
    /// Requests to the worker that deletes.
    deletes: mpsc::UnboundedSender<Delete>,
    /// Handles of the three workers.
    workers: [AbortHandle; 3],
}

impl Drop for Shard {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.abort();
        }
    }
}

impl Shard {
    /// Creates the shard's database on the server at this URL, and starts its workers.
    pub async fn open(url: &str, number: u32) -> anyhow::Result<Self> {
        let database = format!("foqs_{number}");
        let mut connection = MySqlConnection::connect(url).await?;
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {database}"))).await?;
        connection.close().await?;
        let url = crate::database::url_of(url, &database);
        let connect = || async {
            let mut connection = MySqlConnection::connect(&url).await?;
            connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
            anyhow::Ok(connection)
        };
        let (mut inserter, leaser, deleter) = (connect().await?, connect().await?, connect().await?);
        inserter.execute(SCHEMA).await?;
        let (inserts, queue) = mpsc::unbounded_channel();
        let inserter = tokio::spawn(insert_all(inserter, queue)).abort_handle();
        let (leases, queue) = mpsc::unbounded_channel();
        let leaser = tokio::spawn(lease_all(leaser, queue)).abort_handle();
        let (deletes, queue) = mpsc::unbounded_channel();
        let deleter = tokio::spawn(delete_all(deleter, queue)).abort_handle();
        Ok(Self { inserts, leases, deletes, workers: [inserter, leaser, deleter] })
    }

    /// Inserts the rows with the next statement. Returns when they are committed.
    pub async fn enqueue(&self, rows: Vec<Row>) -> anyhow::Result<()> {
        ask(&self.inserts, rows).await
    }

    /// Marks the rows as delivered and returns their payloads, in any order.
    pub async fn lease(&self, ids: Vec<u64>) -> anyhow::Result<Vec<(u64, Bytes)>> {
        ask(&self.leases, ids).await
    }

    /// Deletes the rows. Returns when that is committed.
    pub async fn delete(&self, ids: Vec<u64>) -> anyhow::Result<()> {
        ask(&self.deletes, ids).await
    }
}

async fn ask<Q, A>(worker: &mpsc::UnboundedSender<(Q, Answer<A>)>, question: Q) -> anyhow::Result<A> {
    let (answer, answered) = oneshot::channel();
    worker.send((question, answer)).ok().context("the worker of the shard has ended")?;
    answered.await.context("the worker of the shard has ended")?.map_err(|error| anyhow!(error))
}

/// Waits for a request and adds all other requests that wait, up to the limits of rows and bytes.
async fn gather<T, A>(
    queue: &mut mpsc::UnboundedReceiver<(Vec<T>, Answer<A>)>,
    bytes: impl Fn(&T) -> usize,
) -> Option<(Vec<T>, Vec<(usize, Answer<A>)>)> {
    let (mut all, answer) = queue.recv().await?;
    let mut size: usize = all.iter().map(&bytes).sum();
    let mut answers = vec![(all.len(), answer)];
    while all.len() < ROWS_MAX && size < BYTES_MAX {
        let Ok((more, answer)) = queue.try_recv() else { break };
        size += more.iter().map(&bytes).sum::<usize>();
        answers.push((more.len(), answer));
        all.extend(more);
    }
    Some((all, answers))
}

fn answer_all(answers: Vec<(usize, Answer<()>)>, result: Result<(), sqlx::Error>) {
    let result = result.map_err(|error| error.to_string());
    for (_, answer) in answers {
        // The caller may have gone away.
        let _ = answer.send(result.clone());
    }
}

async fn insert_all(mut connection: MySqlConnection, mut queue: mpsc::UnboundedReceiver<Insert>) {
    while let Some((rows, answers)) = gather(&mut queue, |row| row.payload.len()).await {
        answer_all(answers, insert(&mut connection, &rows).await);
    }
}

/// One statement if the number of rows is a power of two, else several statements in one transaction: a few
/// prepared statements suffice for all numbers.
async fn insert(connection: &mut MySqlConnection, mut rows: &[Row]) -> Result<(), sqlx::Error> {
    let alone = rows.len().is_power_of_two();
    if !alone {
        connection.execute("BEGIN").await?;
    }
    while !rows.is_empty() {
        let (now, rest) = rows.split_at(1 << rows.len().ilog2());
        let places = vec!["(?, ?, ?, 0, UNIX_TIMESTAMP(), 0, ?)"; now.len()].join(", ");
        let mut query = sqlx::query(AssertSqlSafe(format!(
            "INSERT INTO item (id, topic, priority, state, deliver_after, lease_until, payload) \
             VALUES {places}"
        )));
        for row in now {
            query = query.bind(row.id).bind(row.topic).bind(row.priority).bind(&row.payload[..]);
        }
        query.execute(&mut *connection).await?;
        rows = rest;
    }
    if !alone {
        connection.execute("COMMIT").await?;
    }
    Ok(())
}

async fn lease_all(mut connection: MySqlConnection, mut queue: mpsc::UnboundedReceiver<Lease>) {
    while let Some((ids, answers)) = gather(&mut queue, |_| 0).await {
        match lease(&mut connection, &ids).await {
            Ok(mut payloads) => {
                let mut rest = &ids[..];
                for (count, answer) in answers {
                    let (own, others) = rest.split_at(count);
                    let own = own.iter().filter_map(|id| Some((*id, payloads.remove(id)?))).collect();
                    // The caller may have gone away.
                    let _ = answer.send(Ok(own));
                    rest = others;
                }
            }
            Err(error) => {
                for (_, answer) in answers {
                    let _ = answer.send(Err(error.to_string()));
                }
            }
        }
    }
}

async fn lease(
    connection: &mut MySqlConnection,
    ids: &[u64],
) -> Result<std::collections::HashMap<u64, Bytes>, sqlx::Error> {
    let placeholders = placeholders(ids);
    let select = AssertSqlSafe(format!("SELECT id, payload FROM item WHERE id IN ({placeholders})"));
    let rows = bound(sqlx::query(select), ids).fetch_all(&mut *connection).await?;
    let update = AssertSqlSafe(format!(
        "UPDATE item SET state = 1, lease_until = UNIX_TIMESTAMP() + 60 WHERE id IN ({placeholders})"
    ));
    bound(sqlx::query(update), ids).execute(connection).await?;
    rows.into_iter().map(|row| Ok((row.try_get(0)?, row.try_get::<Vec<u8>, _>(1)?.into()))).collect()
}

async fn delete_all(mut connection: MySqlConnection, mut queue: mpsc::UnboundedReceiver<Delete>) {
    while let Some((ids, answers)) = gather(&mut queue, |_| 0).await {
        let delete = AssertSqlSafe(format!("DELETE FROM item WHERE id IN ({})", placeholders(&ids)));
        let done = bound(sqlx::query(delete), &ids).execute(&mut connection).await;
        answer_all(answers, done.map(drop));
    }
}

/// Placeholders for the ids, rounded up to a power of two: a few prepared statements suffice for all numbers.
fn placeholders(ids: &[u64]) -> String {
    vec!["?"; ids.len().next_power_of_two()].join(", ")
}

/// Binds the ids, and the last one again for each remaining placeholder.
fn bound<'q>(
    mut query: Query<'q, sqlx::MySql, MySqlArguments>,
    ids: &[u64],
) -> Query<'q, sqlx::MySql, MySqlArguments> {
    let last = ids.last().into_iter().cycle();
    for id in ids.iter().chain(last).take(ids.len().next_power_of_two()) {
        query = query.bind(*id);
    }
    query
}
