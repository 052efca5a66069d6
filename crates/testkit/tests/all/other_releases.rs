//! A program of the release before goes on writing into tables that have got more columns since, and numbers
//! that a later one writes hide nothing.

use std::path::PathBuf;

use forebay_store::{
    AuditId, AuditOutcome, AuditQuery, AuditRecord, Catalog, CatalogNode, MySqlCatalog, MySqlOptions,
    NewToken, NodeReport, PrincipalKind, RootBounds, SqliteCatalog, TokenAddOutcome, TokenBounds, TokenMaker,
    TokenRow, Versions,
};
use forebay_testkit::servers;
use forebay_types::{ClusterId, Incarnation, Timestamp};
use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, MySqlConnection, sqlite::SqliteConnectOptions,
};

/// As the release before the column `trace_id` writes a record of a call. Texts are bytes.
const RECORD: &str = "REPLACE INTO audit (id, principal, principal_kind, token_id, peer, method, namespace, \
                      target, reason, summary, outcome, failure, operation_id, node) \
                      VALUES (x'00000000000000010000000000000001', x'6f7073', 1, x'', x'', x'50', x'61', \
                      x'', x'', x'', 1, x'', x'', x'6e31')";
/// As the release before the columns of starts replaces the process of a node.
const PROCESS: &str =
    "UPDATE node SET incarnation = x'02020202020202020202020202020202' WHERE name = x'6e31'";
/// As the release before the column `root` makes a token with the id `earlier00000`.
const TOKEN: &str = "INSERT INTO token (id, namespace, name, secret, grants, made_by, made_at, is_admin) \
                     VALUES (x'6561726c6965723030303030', x'61', x'61', \
                     x'0101010101010101010101010101010101010101010101010101010101010101', x'', x'61', 1, 0)";

/// As a later release writes how a call ended, and who made it.
const LATER_RECORD: &str = "UPDATE audit SET outcome = 9, principal_kind = 8";

async fn only_record(catalog: &dyn Catalog) -> AuditRecord {
    let (from, before) = (AuditId([0; 16]), AuditId([0xff; 16]));
    let query = AuditQuery { namespace: Some("a".to_owned()), from, before, limit: 2 };
    let mut records = catalog.audit(&query).await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

fn node() -> CatalogNode {
    CatalogNode {
        name: "n1".parse().unwrap(),
        incarnation: Incarnation([1; 16]),
        peer_address: String::new(),
        clients_address: String::new(),
        http_address: String::new(),
        release: "1".to_owned(),
        format: 1,
        draining: false,
        started_at: Some(Timestamp::from_micros(7)),
        beats: 1,
        report: NodeReport::default(),
    }
}

async fn started_at(catalog: &dyn Catalog) -> Option<Timestamp> {
    catalog.read(Versions::default()).await.unwrap().nodes[0].started_at
}

/// Adds a token that the holder of the earlier one makes, where one may descend from it.
async fn descendant(catalog: &dyn Catalog, id: &str) -> TokenAddOutcome {
    let row = TokenRow {
        id: id.to_owned(),
        namespace: id.to_owned(),
        name: String::new(),
        secret: [1; 32],
        older_secret: None,
        rotation: None,
        grants: String::new(),
        made_by: String::new(),
        made_by_id: String::new(),
        root: String::new(),
        made_at: Timestamp::from_micros(1),
        ends: None,
        overlap_ends: None,
        revoked: None,
        last_used: None,
        is_admin: false,
    };
    let maker = TokenMaker::Token("earlier00000".to_owned());
    let bounds =
        TokenBounds { by_root: RootBounds { per_root: 1, ..RootBounds::DEFAULT }, ..TokenBounds::DEFAULT };
    let forget_before = Timestamp::from_micros(0);
    catalog.add_token(&NewToken { row, maker, if_no_admin_at: None, forget_before, bounds }).await.unwrap()
}

/// `execute`: a statement of the earlier program.
async fn check(catalog: &dyn Catalog, mut execute: impl AsyncFnMut(&'static str)) {
    Catalog::migrate(catalog, ClusterId([7; 16])).await.unwrap();
    execute(RECORD).await;
    let record = only_record(catalog).await;
    assert_eq!((record.trace_id.as_str(), record.node.as_str()), ("", "n1"));
    assert_ne!(record.outcome, AuditOutcome::Denied);
    execute(LATER_RECORD).await;
    let record = only_record(catalog).await;
    assert_eq!((record.outcome, record.kind), (AuditOutcome::Unknown(9), PrincipalKind::Unknown(8)));

    catalog.join(&node(), None).await.unwrap();
    assert_eq!(started_at(catalog).await, Some(Timestamp::from_micros(7)));
    execute(PROCESS).await;
    assert_eq!(started_at(catalog).await, None, "it is another process");

    execute(TOKEN).await;
    assert!(matches!(descendant(catalog, "one000000000").await, TokenAddOutcome::Yes(_)));
    assert_eq!(descendant(catalog, "two000000000").await, TokenAddOutcome::RootFull, "it is a root itself");
}

async fn of_server(server: &servers::Server) {
    let url = server.fresh_url().await;
    let catalog = MySqlCatalog::new(&url, &MySqlOptions::default()).unwrap();
    let mut connection = MySqlConnection::connect(&url).await.unwrap();
    check(&catalog, async |statement| {
        connection.execute(statement).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn other_releases_go_on_beside_this_one_with_mariadb() {
    of_server(servers::mariadb().await).await;
}

#[tokio::test]
async fn other_releases_go_on_beside_this_one_with_mysql() {
    of_server(servers::mysql().await).await;
}

#[tokio::test]
async fn other_releases_go_on_beside_this_one_with_sqlite() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("earlier-{}", std::process::id()));
    let path = folder.join("catalog.db");
    let catalog = SqliteCatalog::new(&path);
    let execute = async |statement: &'static str| {
        let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        connection.execute(statement).await.unwrap();
    };
    check(&catalog, execute).await;
    std::fs::remove_dir_all(folder).unwrap();
}
