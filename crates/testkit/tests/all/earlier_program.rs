//! A program of the release before goes on writing into tables that have got more columns since.

use std::path::PathBuf;

use forebay_store::{AuditId, AuditQuery, AuditRecord, Catalog, MySqlCatalog, MySqlOptions, SqliteCatalog};
use forebay_testkit::servers;
use forebay_types::ClusterId;
use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, MySqlConnection, sqlite::SqliteConnectOptions,
};

/// As the release before the column `trace_id` writes a record of a call. Texts are bytes.
const RECORD: &str = "REPLACE INTO audit (id, principal, principal_kind, token_id, peer, method, namespace, \
                      target, reason, summary, outcome, failure, operation_id, node) \
                      VALUES (x'00000000000000010000000000000001', x'6f7073', 1, x'', x'', x'50', x'61', \
                      x'', x'', x'', 1, x'', x'', x'6e31')";

async fn only_record(catalog: &dyn Catalog) -> AuditRecord {
    let (from, before) = (AuditId([0; 16]), AuditId([0xff; 16]));
    let query = AuditQuery { namespace: Some("a".to_owned()), from, before, limit: 2 };
    let mut records = catalog.audit(&query).await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

async fn check(catalog: &dyn Catalog) {
    let record = only_record(catalog).await;
    assert_eq!((record.trace_id.as_str(), record.node.as_str()), ("", "n1"));
}

async fn of_server(server: &servers::Server) {
    let url = server.fresh_url().await;
    let catalog = MySqlCatalog::new(&url, &MySqlOptions::default()).unwrap();
    Catalog::migrate(&catalog, ClusterId([7; 16])).await.unwrap();
    MySqlConnection::connect(&url).await.unwrap().execute(RECORD).await.unwrap();
    check(&catalog).await;
}

#[tokio::test]
async fn a_record_of_mariadb_has_no_trace() {
    of_server(servers::mariadb().await).await;
}

#[tokio::test]
async fn a_record_of_mysql_has_no_trace() {
    of_server(servers::mysql().await).await;
}

#[tokio::test]
async fn a_record_of_sqlite_has_no_trace() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("earlier-{}", std::process::id()));
    let path = folder.join("catalog.db");
    let catalog = SqliteCatalog::new(&path);
    Catalog::migrate(&catalog, ClusterId([7; 16])).await.unwrap();
    let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    connection.execute(RECORD).await.unwrap();
    check(&catalog).await;
    std::fs::remove_dir_all(folder).unwrap();
}
