//! Cost of idle shards for their database server and the nodes that own and watch them: less than a statement
//! a shard and second. `--nocapture` shows more; `FOREBAY_IDLE_SHARDS` says how many shards there are, and
//! `FOREBAY_IDLE_SECONDS` how long they are looked at.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_engine::{Duty, Engine, ListedShard, Reach, Settings, Setup};
use forebay_store::{MySqlOptions, MySqlServers, Shard};
use forebay_testkit::servers::{Kind, Private};
use forebay_types::{ClusterId, ShardId, SystemClock};
use sqlx::{Connection as _, MySqlConnection};
use tokio::time::sleep;

/// A number from the environment, or this one.
fn given(variable: &str, default: u32) -> u32 {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The counters that are printed.
const COUNTERS: [&str; 12] = [
    "Questions",
    "Com_select",
    "Com_update",
    "Com_update_multi",
    "Com_commit",
    "Com_rollback",
    "Com_begin",
    "Com_set_option",
    "Com_change_db",
    "Com_show_variables",
    "Connections",
    "Threads_connected",
];

/// The server's counters, and this process's time on its cores in hundredths of a second.
async fn counters(root: &mut MySqlConnection) -> BTreeMap<String, i64> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("SHOW GLOBAL STATUS").fetch_all(root).await.expect("answers");
    let numbers = rows.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let time = |at: usize| fields.get(at).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    numbers.chain([("cpu".to_owned(), time(11) + time(12))]).collect()
}

/// Prints what the server has to do while nothing happens. Returns its statements a second.
async fn measure(root: &mut MySqlConnection, what: &str) -> f64 {
    let span = Duration::from_secs(given("FOREBAY_IDLE_SECONDS", 4).into());
    let before = counters(root).await;
    sleep(span).await;
    let after = counters(root).await;
    let delta = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
    let seconds = span.as_secs_f64();
    println!("{what}: {:.2} % of a core here; {} connections", delta("cpu") as f64 / seconds, {
        after["Threads_connected"] - 1
    });
    let kept = "SELECT COUNT(*), CAST(COALESCE(MAX(time), 0) AS SIGNED) FROM information_schema.processlist \
                WHERE db LIKE 'forebay%'";
    let (kept, idle): (i64, i64) = sqlx::query_as(kept).fetch_one(root).await.expect("answers");
    println!("  {kept} connections to single shards, idle for up to {idle} s");
    for name in COUNTERS.iter().filter(|name| delta(name) != 0) {
        println!("  {name}: {:.1} a second", delta(name) as f64 / seconds);
    }
    delta("Questions") as f64 / seconds
}

async fn open(urls: &[String]) -> Vec<(ShardId, Arc<dyn Shard>)> {
    let servers = MySqlServers::default();
    let shard = |(id, url): (u32, &String)| -> (ShardId, Arc<dyn Shard>) {
        let shard = servers.shard(ShardId(id), url, &MySqlOptions::default()).expect("a good URL");
        (ShardId(id), Arc::new(shard))
    };
    (1..).zip(urls).map(shard).collect()
}

async fn idle(kind: Kind) {
    let count = given("FOREBAY_IDLE_SHARDS", 20);
    let server = Private::start(kind, &["--max-connections=4000"]).await;
    let mut urls = Vec::new();
    for _ in 0..count {
        urls.push(server.fresh_url().await);
    }
    for (_, shard) in open(&urls).await {
        shard.migrate(ClusterId::default()).await.expect("migrates");
    }
    let start = async |duty, address: &str| {
        Engine::start_with(Setup {
            settings: Settings::default(),
            address: address.to_owned(),
            shards: open(&urls).await.into_iter().map(|(id, shard)| ListedShard::open(id, shard)).collect(),
            duty,
            reach: Reach::Own,
            clock: Arc::new(SystemClock::default()),
            peers: Arc::new(()),
            tasks: Arc::new(()),
            seed: 1,
        })
    };
    let mut root = MySqlConnection::connect(&server.url()).await.expect("connects");
    let owner = start(Duty::Own, "a:1").await;
    owner.ready().await;
    // Statements of the take-over are not counted.
    sleep(Duration::from_secs(2)).await;
    let owned = measure(&mut root, &format!("{kind}, {count} shards owned")).await;
    let _watcher = start(Duty::Leave { successor: String::new() }, "b:1").await;
    sleep(Duration::from_secs(2)).await;
    let watched = measure(&mut root, &format!("{kind}, {count} shards owned and watched by another")).await;
    let most = f64::from(count);
    assert!(owned < most && watched < most, "{owned} and {watched} statements a second for {count} shards");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_shards_on_mariadb() {
    idle(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_shards_on_mysql() {
    idle(Kind::MySql).await;
}
