//! A migration whose connection is lost half way goes on, and ends with the whole schema.

use std::{sync::Arc, time::Duration};

use forebay_store::{MySqlOptions, MySqlShard, Shard as _};
use forebay_testkit::servers::{Kind, shared};
use forebay_types::{ClusterId, ShardId};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};
use tokio::time::{Instant, sleep};

/// Another session holds this table, so that the migration stops there.
const HELD: &str = "heartbeat";
/// The migration comes so far within this time.
const BLOCKED_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until the migration waits for the table. Returns its connection's number. Numbers grow, and one
/// that was killed (`after`) may be listed for a moment.
async fn blocked(connection: &mut MySqlConnection, after: u64) -> u64 {
    let waiting = format!(
        "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist \
         WHERE id > {after} AND db = DATABASE() \
         AND state LIKE 'Waiting for%metadata lock' AND info LIKE '%{HELD}%'"
    );
    let deadline = Instant::now() + BLOCKED_TIMEOUT;
    loop {
        let found = sqlx::query_scalar(AssertSqlSafe(waiting.clone())).fetch_optional(&mut *connection).await;
        // MySQL cannot show what another connection has sent in bytes: then it refuses the whole list.
        if let Ok(Some(id)) = found {
            return id;
        }
        assert!(Instant::now() < deadline, "the migration never waits for {HELD}: {found:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn tables(connection: &mut MySqlConnection) -> Vec<String> {
    let names = "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() ORDER BY 1";
    sqlx::query_scalar(names).fetch_all(connection).await.unwrap()
}

async fn a_cut_migration_goes_on(kind: Kind) {
    let server = shared(kind).await;
    let url = server.fresh_url().await;
    let shard = Arc::new(MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap());
    let mut holder = MySqlConnection::connect(&url).await.unwrap();
    let mut other = MySqlConnection::connect(&url).await.unwrap();
    // As an earlier migration left it, which was cut too.
    let schema = include_str!("../../../../migrations/mysql/0001_first.sql");
    let create = schema.split(";\n").find(|statement| statement.contains(&format!("EXISTS {HELD} ")));
    holder.execute(sqlx::raw_sql(AssertSqlSafe(create.unwrap().to_owned()))).await.unwrap();
    let hold = AssertSqlSafe(format!("LOCK TABLES {HELD} WRITE"));
    holder.execute(sqlx::raw_sql(hold)).await.unwrap();

    let migrating = tokio::spawn({
        let shard = shard.clone();
        async move { shard.migrate(ClusterId::default()).await }
    });
    let mut id = 0;
    for _ in 0..2 {
        id = blocked(&mut other, id).await;
        let before = tables(&mut other).await;
        assert!(before.contains(&"fence".into()) && !before.contains(&"topic".into()), "{before:?}");
        let kill = AssertSqlSafe(format!("KILL {id}"));
        other.execute(sqlx::raw_sql(kill)).await.unwrap();
    }
    blocked(&mut other, id).await;
    shard.check().await.expect_err("the schema is not whole yet");
    holder.execute(sqlx::raw_sql("UNLOCK TABLES")).await.unwrap();

    assert_eq!(migrating.await.unwrap().unwrap(), [1, 2, 3, 4, 5, 6]);
    shard.check().await.unwrap();
    let url = server.fresh_url().await;
    let uncut = MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap();
    uncut.migrate(ClusterId::default()).await.unwrap();
    let mut fresh = MySqlConnection::connect(&url).await.unwrap();
    assert_eq!(tables(&mut other).await, tables(&mut fresh).await);
}

/// A migration that was cut before it recorded itself runs all its statements again.
async fn a_migration_repeats_what_it_did(kind: Kind) {
    let url = shared(kind).await.fresh_url().await;
    let shard = MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap();
    let all = shard.migrate(ClusterId::default()).await.unwrap();
    let mut other = MySqlConnection::connect(&url).await.unwrap();
    other.execute("DELETE FROM schema_version WHERE version > 1").await.unwrap();
    assert_eq!(shard.migrate(ClusterId::default()).await.unwrap(), all[1..]);
    shard.check().await.unwrap();
}

#[tokio::test]
async fn a_migration_of_mariadb_repeats_what_it_did() {
    a_migration_repeats_what_it_did(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_migration_of_mysql_repeats_what_it_did() {
    a_migration_repeats_what_it_did(Kind::MySql).await;
}

#[tokio::test]
async fn a_migration_of_mariadb_goes_on_after_a_cut() {
    a_cut_migration_goes_on(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_migration_of_mysql_goes_on_after_a_cut() {
    a_cut_migration_goes_on(Kind::MySql).await;
}
