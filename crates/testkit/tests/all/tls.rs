//! Connections to MySQL are encrypted whenever the server can, and passwords need no more than that.

use forebay_store::{MySqlOptions, MySqlShard, Shard as _, StoreError, Tls};
use forebay_testkit::servers;
use forebay_types::ShardId;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

/// Connects as this account.
async fn connect(account: &str, url: &str, tls: Tls) -> Result<(), StoreError> {
    let url = url.replace("//root@", &format!("//{account}@"));
    let options = MySqlOptions { tls, ..MySqlOptions::default() };
    MySqlShard::new(ShardId(1), &url, &options)?.identity().await.map(drop)
}

#[tokio::test]
async fn mysql_is_reached_over_tls_unless_that_is_switched_off() {
    let url = servers::mysql().await.fresh_url().await;
    let name = url.rsplit('/').next().unwrap().to_owned();
    let mut root = MySqlConnection::connect(&url).await.unwrap();
    for (account, how) in [("plain", "REQUIRE NONE"), ("safe", "REQUIRE SSL")] {
        let sql = format!(
            "CREATE USER {account}_{name}@'%' IDENTIFIED WITH caching_sha2_password BY 'secret' {how}; \
             GRANT ALL ON {name}.* TO {account}_{name}@'%'"
        );
        root.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
    }
    let [plain, safe] = ["plain", "safe"].map(|account| format!("{account}_{name}:secret"));
    let error = connect(&plain, &url, Tls::Off).await.unwrap_err();
    assert!(error.message.contains("only sent over TLS"), "{error}");
    for account in [&plain, &safe] {
        connect(account, &url, Tls::Auto).await.unwrap();
        connect(account, &url, Tls::Required).await.unwrap();
    }
    // The server has kept the password's hash by now, so that it is not sent.
    connect(&plain, &url, Tls::Off).await.unwrap();
    let error = connect(&safe, &url, Tls::Off).await.unwrap_err();
    assert!(error.message.contains("Access denied"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_that_is_required() {
    let server = servers::Private::start(servers::Kind::MariaDb, &["--skip-ssl"]).await;
    let url = server.fresh_url().await;
    connect("root", &url, Tls::Auto).await.unwrap();
    let error = connect("root", &url, Tls::Required).await.unwrap_err();
    assert!(error.message.contains("TLS"), "{error}");
}
