//! Looks and renewals cost by database server, not by shard, and one shard's trouble stays its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_store::{
    Claim, ErrorClass, Heartbeat, MySqlOptions, MySqlServers, Observation, Renewal, Shard, ShardConnections,
    StoreError,
};
use forebay_testkit::servers::{Kind, Private, ReplicatedPair};
use forebay_types::{ClusterId, Incarnation, ShardId};
use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};
use tokio::time::{Instant, timeout};

/// More than one UPDATE may have.
const SHARDS: u32 = 40;

/// A server with shards that one process owns.
struct Bench {
    /// The server.
    server: Private,
    /// The URLs of the shards.
    urls: Vec<String>,
    /// The shards, as their owner sees them.
    shards: Vec<Arc<dyn Shard>>,
    /// Renews the claims.
    owned: Vec<ShardConnections>,
    /// Another connection.
    root: MySqlConnection,
}

fn claim() -> Claim {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let address = format!("node-{number}:1");
    Claim {
        incarnation: Incarnation(u128::from(number).to_be_bytes()),
        address,
        lease: Duration::from_millis(1_500),
    }
}

fn open(urls: &[String]) -> Vec<Arc<dyn Shard>> {
    let servers = MySqlServers::default();
    let shard = |(id, url): (u32, &String)| -> Arc<dyn Shard> {
        Arc::new(servers.shard(ShardId(id), url, &MySqlOptions::default()).unwrap())
    };
    (1..).zip(urls).map(shard).collect()
}

/// Migrates a shard and takes it over.
async fn own(shard: &dyn Shard) -> ShardConnections {
    shard.migrate(ClusterId::default()).await.unwrap();
    let seen = shard.observe().await.unwrap();
    shard.take_over(&claim(), &seen).await.unwrap().unwrap()
}

async fn observe_all(shards: &[Arc<dyn Shard>]) -> Vec<Result<Observation, StoreError>> {
    join_all(shards.iter().map(|shard| shard.observe())).await
}

impl Bench {
    async fn new(kind: Kind, count: u32) -> Self {
        let server = Private::start(kind, &["--max-connections=1000"]).await;
        let mut urls = Vec::new();
        for _ in 0..count {
            urls.push(server.fresh_url().await);
        }
        urls.sort();
        let shards = open(&urls);
        let mut owned = Vec::new();
        for shard in &shards {
            owned.push(own(&**shard).await);
        }
        let root = MySqlConnection::connect(&server.url()).await.unwrap();
        Self { server, urls, shards, owned, root }
    }

    /// All claims, at the same time.
    async fn renew_all(&mut self) -> Vec<Result<Renewal, StoreError>> {
        join_all(self.owned.iter_mut().map(|owned| owned.heartbeat.renew())).await
    }

    /// Returns each shard's number of renewals.
    async fn renewals(&self) -> Vec<u64> {
        observe_all(&self.shards).await.into_iter().map(|seen| seen.unwrap().renewals).collect()
    }

    fn schema(&self, at: usize) -> &str {
        self.urls[at].rsplit('/').next().unwrap()
    }

    async fn count(&mut self, name: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        let (_, count): (String, String) = sqlx::query_as(sql).fetch_one(&mut self.root).await.unwrap();
        count.parse().unwrap()
    }

    /// Kills all connections but this one.
    async fn kill_all(&mut self) {
        let others = "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist \
                      WHERE id <> CONNECTION_ID() AND user = 'root'";
        loop {
            let ids: Vec<u64> = sqlx::query_scalar(others).fetch_all(&mut self.root).await.unwrap();
            if ids.is_empty() {
                return;
            }
            for id in ids {
                let _ = self.root.execute(sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}")))).await;
            }
        }
    }

    /// Locks a shard's heartbeat until the connection ends.
    async fn lock(&self, at: usize) -> MySqlConnection {
        let mut locking = MySqlConnection::connect(&self.urls[at]).await.unwrap();
        locking.execute("BEGIN").await.unwrap();
        locking.execute("SELECT * FROM heartbeat WHERE id = 1 FOR UPDATE").await.unwrap();
        locking
    }
}

fn is_renewed(renewal: &Result<Renewal, StoreError>) -> bool {
    matches!(renewal, Ok(Renewal::Renewed { server_time: Some(_) }))
}

async fn many_shards_cost_few_statements(kind: Kind) {
    let mut bench = Bench::new(kind, SHARDS).await;
    assert!(bench.renew_all().await.iter().all(is_renewed));
    let before = bench.renewals().await;
    let statements = bench.count("Questions").await;
    for _ in 0..10 {
        assert!(bench.renew_all().await.iter().all(is_renewed));
    }
    let renewing = bench.count("Questions").await - statements;
    let after = bench.renewals().await;
    assert!(before.iter().zip(&after).all(|(before, after)| after - before == 10), "{before:?} {after:?}");
    let statements = bench.count("Questions").await;
    for _ in 0..10 {
        assert!(observe_all(&bench.shards).await.iter().all(Result::is_ok));
    }
    let looking = bench.count("Questions").await - statements;
    println!("{kind}: {renewing} statements for 10 renewals of {SHARDS} shards, {looking} for 10 looks");
    // A transaction has at most six. Tasks that come too late have another.
    assert!(renewing <= 10 * 6 * 2, "{renewing} statements");
    assert!(looking <= 10 * 2, "{looking} statements");
}

async fn a_locked_row_delays_nobody_else(kind: Kind) {
    let mut bench = Bench::new(kind, SHARDS).await;
    assert!(bench.renew_all().await.iter().all(is_renewed));
    let before = bench.renewals().await;
    let locking = bench.lock(7).await;
    let mut owned = std::mem::take(&mut bench.owned);
    let held = owned.remove(7);
    let mut heartbeat = held.heartbeat;
    let waiting = tokio::spawn(async move {
        // It waits for the row for a second at most.
        while !is_renewed(&heartbeat.renew().await) {}
    });
    bench.owned = owned;
    let began = Instant::now();
    for _ in 0..3 {
        assert!(bench.renew_all().await.iter().all(is_renewed));
    }
    let took = began.elapsed();
    assert!(took < Duration::from_millis(900), "{took:?}: others waited for the row");
    assert!(!waiting.is_finished());
    let seen = observe_all(&bench.shards).await;
    assert_eq!(seen[7].as_ref().unwrap().renewals, before[7], "a look waits for no lock");
    drop(locking);
    timeout(Duration::from_secs(10), waiting).await.expect("the row is free").unwrap();
    assert_eq!(bench.renewals().await[7], before[7] + 1);
}

async fn a_shard_without_schema_fails_alone(kind: Kind) {
    let mut bench = Bench::new(kind, 20).await;
    let (gone, half) = (bench.schema(3).to_owned(), bench.schema(11).to_owned());
    bench.root.execute(sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {gone}")))).await.unwrap();
    bench.root.execute(sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE {half}.fence")))).await.unwrap();
    for _ in 0..3 {
        let (seen, renewed) = (observe_all(&bench.shards).await, bench.renew_all().await);
        for (at, (seen, renewed)) in seen.iter().zip(&renewed).enumerate() {
            let missing = seen.as_ref().is_err_and(|error| error.class == ErrorClass::Schema);
            assert_eq!(missing, at == 3 || at == 11, "{at}: {seen:?}");
            assert_eq!(is_renewed(renewed), at != 3, "{at}: {renewed:?}");
        }
    }
    // Shards that fail are asked alone by now, and cost the others nothing.
    let statements = bench.count("Com_select").await;
    observe_all(&bench.shards).await;
    let looking = bench.count("Com_select").await - statements;
    assert!(looking <= 6, "{looking} statements");
    bench.shards[3].migrate(ClusterId::default()).await.unwrap();
    assert!(bench.shards[3].observe().await.is_ok(), "it is there again");
}

async fn lost_connections_are_replaced(kind: Kind) {
    let mut bench = Bench::new(kind, 5).await;
    for _ in 0..3 {
        assert!(bench.renew_all().await.iter().all(is_renewed));
        assert!(observe_all(&bench.shards).await.iter().all(Result::is_ok));
        bench.kill_all().await;
    }
    assert!(bench.renew_all().await.iter().all(is_renewed), "nobody hears of it");
    assert!(observe_all(&bench.shards).await.iter().all(Result::is_ok));
    bench.server.restart().await;
    assert!(bench.renew_all().await.iter().all(is_renewed));
    assert!(observe_all(&bench.shards).await.iter().all(Result::is_ok));
}

async fn who_gives_up_harms_nobody(kind: Kind) {
    let mut bench = Bench::new(kind, 10).await;
    // At every moment of a question.
    for micros in (0..20_000).step_by(400) {
        let patience = Duration::from_micros(micros);
        let (gives_up, others) = bench.owned.split_at_mut(1);
        let heartbeat: &mut Box<dyn Heartbeat> = &mut gives_up[0].heartbeat;
        let (_, _, renewed, seen) = tokio::join!(
            timeout(patience, heartbeat.renew()),
            timeout(patience, bench.shards[0].observe()),
            join_all(others.iter_mut().map(|owned| owned.heartbeat.renew())),
            observe_all(&bench.shards[1..]),
        );
        assert!(renewed.iter().all(is_renewed));
        assert!(seen.iter().all(Result::is_ok));
    }
    assert!(bench.renew_all().await.iter().all(is_renewed));
    let before = bench.count("Connections").await;
    assert!(bench.renew_all().await.iter().all(is_renewed));
    assert_eq!(bench.count("Connections").await, before, "the connection was kept");
}

async fn a_lost_claim_is_told_to_its_shard(kind: Kind) {
    let mut bench = Bench::new(kind, SHARDS).await;
    let candidates = open(&bench.urls);
    let lost = [0, 13, 39];
    let mut successors = Vec::new();
    for at in lost {
        let seen = candidates[at].observe().await.unwrap();
        successors.push(candidates[at].take_over(&claim(), &seen).await.unwrap().unwrap());
    }
    let before = bench.renewals().await;
    for _ in 0..2 {
        for (at, renewed) in bench.renew_all().await.iter().enumerate() {
            if lost.contains(&at) {
                assert!(matches!(renewed, Ok(Renewal::Lost)), "{at}: {renewed:?}");
            } else {
                assert!(is_renewed(renewed), "{at}: {renewed:?}");
            }
        }
    }
    for (at, (before, after)) in before.iter().zip(bench.renewals().await).enumerate() {
        let expected = if lost.contains(&at) { 0 } else { 2 };
        assert_eq!(after - before, expected, "{at}");
    }
    for successor in &mut successors {
        assert!(is_renewed(&successor.heartbeat.renew().await));
    }
}

/// Two owners of one shard may be in one process for a moment: the last term's, and this one's.
async fn two_owners_of_one_process_are_told_apart(kind: Kind) {
    let mut bench = Bench::new(kind, 3).await;
    let seen = bench.shards[1].observe().await.unwrap();
    bench.owned.push(bench.shards[1].take_over(&claim(), &seen).await.unwrap().unwrap());
    for _ in 0..5 {
        let renewed = bench.renew_all().await;
        assert!(matches!(renewed[1], Ok(Renewal::Lost)), "{renewed:?}");
        assert!([0, 2, 3].iter().all(|at| is_renewed(&renewed[*at])), "{renewed:?}");
    }
}

/// The claims of one process may be on two servers behind one address, after a planned switch.
async fn a_claim_is_renewed_where_it_was_made_or_not_at_all(kind: Kind) {
    let server = ReplicatedPair::start(kind).await;
    let urls = [server.fresh_url().await, server.fresh_url().await];
    let shards = open(&urls);
    let mut owned = Vec::new();
    for shard in &shards {
        owned.push(own(&**shard).await);
    }
    for owned in &mut owned {
        assert!(is_renewed(&owned.heartbeat.renew().await));
    }
    server.switch().await;
    let seen = shards[1].observe().await.unwrap();
    let mut anew = shards[1].take_over(&claim(), &seen).await.unwrap().unwrap();
    for _ in 0..2 {
        let (old, new) = tokio::join!(owned[0].heartbeat.renew(), anew.heartbeat.renew());
        assert!(is_renewed(&new), "{new:?}");
        assert!(old.as_ref().is_err_and(|error| error.class == ErrorClass::NotPrimary), "{old:?}");
    }
    let (old, new) = (owned[0].fence, shards[0].observe().await.unwrap());
    assert_eq!((old.epoch, old.incarnation), (new.epoch, new.incarnation), "nobody has taken it yet");
    let successor = shards[0].take_over(&claim(), &new).await.unwrap();
    assert!(is_renewed(&successor.unwrap().heartbeat.renew().await));
}

macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod mariadb {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(super::Kind::MariaDb).await;
                }
            )+
        }
        mod mysql {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(super::Kind::MySql).await;
                }
            )+
        }
    };
}

on_both!(
    many_shards_cost_few_statements,
    a_locked_row_delays_nobody_else,
    a_shard_without_schema_fails_alone,
    lost_connections_are_replaced,
    who_gives_up_harms_nobody,
    a_lost_claim_is_told_to_its_shard,
    two_owners_of_one_process_are_told_apart,
    a_claim_is_renewed_where_it_was_made_or_not_at_all,
);
