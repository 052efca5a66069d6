//! Tests the servers that other tests use.

use forebay_testkit::servers::{Kind, Private, mariadb, mysql};
use sqlx::{Connection as _, Executor as _, MySqlConnection};

// These settings are unsigned on one kind of server and signed on the other.
const SYNC_BINLOG: &str = "SELECT CAST(@@sync_binlog AS SIGNED)";
const FLUSH_LOG: &str = "SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)";
const LOG_BIN: &str = "SELECT CAST(@@log_bin AS SIGNED)";

async fn value(url: &str, query: &'static str) -> i64 {
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn each_test_has_databases_of_its_own() {
    for server in [mariadb().await, mysql().await] {
        let (first, second) = (server.fresh_url().await, server.fresh_url().await);
        assert_ne!(first, second);
        let mut connection = MySqlConnection::connect(&first).await.unwrap();
        connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY)").await.unwrap();
        let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
        assert_eq!((value(&first, tables).await, value(&second, tables).await), (1, 0));
    }
}

#[tokio::test]
async fn a_server_commits_durably() {
    for server in [mariadb().await, mysql().await] {
        for query in [SYNC_BINLOG, FLUSH_LOG, LOG_BIN] {
            assert_eq!(value(server.url(), query).await, 1, "{query} of {}", server.kind);
        }
    }
}

#[tokio::test]
async fn what_was_committed_outlives_a_kill() {
    for kind in Kind::ALL {
        let mut server = Private::start(kind, &["--innodb-buffer-pool-size=32M"]).await;
        let url = server.fresh_url().await;
        let mut connection = MySqlConnection::connect(&url).await.unwrap();
        connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY)").await.unwrap();
        connection.execute("INSERT INTO t VALUES (42)").await.unwrap();
        server.kill9().await;
        assert!(connection.execute("SELECT 1").await.is_err());
        assert!(MySqlConnection::connect(&url).await.is_err());
        server.restart().await;
        assert_eq!(value(&url, "SELECT n FROM t").await, 42);
        server.stop().await;
        server.restart().await;
        assert_eq!(value(&url, "SELECT n FROM t").await, 42);
    }
}
