//! A change of the catalog that waits for a lock delays no beat: its node must not look dead.

use std::{sync::Arc, time::Duration};

use forebay_store::{
    Beat, Catalog as _, CatalogNode, JoinOutcome, MySqlCatalog, MySqlOptions, NodeReport, Versions,
};
use forebay_testkit::servers::{Kind, shared};
use forebay_types::{ClusterId, Incarnation};
use sqlx::{Connection as _, Executor as _, MySqlConnection};
use tokio::time::{Instant, sleep, timeout};

/// A beat takes less; a change waits for a lock for longer.
const BEAT_TIMEOUT: Duration = Duration::from_secs(2);
/// The change comes so far within this time.
const BLOCKED_TIMEOUT: Duration = Duration::from_secs(20);

fn node() -> CatalogNode {
    CatalogNode {
        name: "a".parse().unwrap(),
        incarnation: Incarnation([1; 16]),
        peer_address: "a:7430".to_owned(),
        clients_address: "a:7420".to_owned(),
        http_address: "a:7421".to_owned(),
        release: "0.2.0".to_owned(),
        format: 1,
        draining: false,
        started_at: None,
        beats: 1,
        report: NodeReport::default(),
    }
}

/// Waits until a statement on the cluster's row runs: it waits for the lock.
async fn blocked(connection: &mut MySqlConnection) {
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE 'UPDATE cluster%'";
    let deadline = Instant::now() + BLOCKED_TIMEOUT;
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut *connection).await.unwrap() == 0 {
        assert!(Instant::now() < deadline, "the change never waits");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn beats_wait_for_no_change(kind: Kind) {
    let url = shared(kind).await.fresh_url().await;
    let catalog = Arc::new(MySqlCatalog::new(&url, &MySqlOptions::default()).unwrap());
    catalog.migrate(ClusterId([1; 16])).await.unwrap();
    let node = node();
    assert_eq!(catalog.join(&node, None).await.unwrap(), JoinOutcome::Yes);

    // Another process stopped in the middle of its change.
    let mut other = MySqlConnection::connect(&url).await.unwrap();
    other.execute(sqlx::raw_sql("START TRANSACTION")).await.unwrap();
    other.execute(sqlx::raw_sql("SELECT * FROM cluster FOR UPDATE")).await.unwrap();
    let changing = tokio::spawn({
        let (catalog, name) = (catalog.clone(), node.name.clone());
        async move { catalog.set_draining(&name, true).await }
    });
    blocked(&mut other).await;

    let beat = timeout(BEAT_TIMEOUT, catalog.beat(&node.name, node.incarnation, &node.report)).await;
    assert_eq!(beat.expect("does not wait").unwrap(), Beat::Ok);
    let read = timeout(BEAT_TIMEOUT, catalog.read(Versions::default())).await;
    assert_eq!(read.expect("does not wait").unwrap().nodes[0].beats, 2);
    assert!(!changing.is_finished());

    other.execute(sqlx::raw_sql("ROLLBACK")).await.unwrap();
    assert!(changing.await.unwrap().unwrap());
}

#[tokio::test]
async fn a_change_that_waits_delays_no_beat_on_mariadb() {
    beats_wait_for_no_change(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_change_that_waits_delays_no_beat_on_mysql() {
    beats_wait_for_no_change(Kind::MySql).await;
}
