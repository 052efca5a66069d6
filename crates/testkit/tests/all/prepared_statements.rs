//! Prepared statements of a reader: how many there are, and a server that takes no more of them.

use forebay_store::{
    Claim, ErrorClass, MySqlOptions, MySqlShard, Reader, Shard as _, ShardConnections, Sweep,
};
use forebay_testkit::servers::{Kind, Private};
use forebay_types::{ClusterId, Incarnation, Key, Seq, ShardId, Timestamp, TopicId};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

async fn reads(reader: &dyn Reader, limit: usize) -> Result<(), ErrorClass> {
    reader.ready(TopicId(1), Key::MIN, limit, 0).await.map(drop).map_err(|error| error.class)?;
    reader.locate(&[Seq(1)]).await.map(drop).map_err(|error| error.class)
}

/// The connections to a new shard.
async fn owner(server: &Private) -> ShardConnections {
    let url = server.fresh_url().await;
    let shard = MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap();
    shard.migrate(ClusterId::default()).await.unwrap();
    let seen = shard.observe().await.unwrap();
    let claim = Claim {
        incarnation: Incarnation([1; 16]),
        address: "here:1".into(),
        lease: std::time::Duration::ZERO,
    };
    shard.take_over(&claim, &seen).await.unwrap().unwrap()
}

async fn a_full_server_is_understood(kind: Kind) {
    let server = Private::start(kind, &[]).await;
    let owned = owner(&server).await;
    let mut root = MySqlConnection::connect(&server.url()).await.unwrap();
    let mut set = async |most: u32| {
        let sql = AssertSqlSafe(format!("SET GLOBAL max_prepared_stmt_count = {most}"));
        root.execute(sqlx::raw_sql(sql)).await.unwrap();
    };
    set(0).await;
    for _ in 0..8 {
        assert_eq!(reads(&*owned.reader, 10).await, Err(ErrorClass::Unavailable));
    }
    set(1_000).await;
    assert_eq!(reads(&*owned.reader, 10).await, Ok(()));
}

/// Most statements that the four connections of a reader prepare together, 60 each.
const STATEMENTS_MAX: i64 = 240;

/// Reads of all kinds and all numbers of rows.
async fn read_everything(reader: &dyn Reader, generations: &[u64]) {
    for number in [1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 480, 500, 1_000] {
        let seqs: Vec<Seq> = (1..=number).map(Seq).collect();
        let hashes: Vec<[u8; 16]> = (1..=number).map(|n| u128::from(n).to_be_bytes()).collect();
        for bytes in [0, 1 << 20] {
            reader.ready(TopicId(1), Key::MIN, number as usize, bytes).await.unwrap();
        }
        reader.bodies(&seqs).await.unwrap();
        reader.locate(&seqs).await.unwrap();
        reader.dedupe(generations, &hashes).await.unwrap();
        for sweep in Sweep::ALL {
            reader.due(sweep, Timestamp::MIN, Timestamp::MAX, number as usize).await.unwrap();
            reader.next_due(sweep, Timestamp::MIN).await.unwrap();
        }
    }
}

async fn a_reader_prepares_few_statements(kind: Kind) {
    let server = Private::start(kind, &[]).await;
    let mut owned = owner(&server).await;
    // As many as there are with the default windows.
    let generations = [600, 1_200, 1_800];
    for generation in generations {
        owned.heartbeat.create_generation(generation).await.unwrap();
    }
    let mut root = MySqlConnection::connect(&server.url()).await.unwrap();
    let mut count = async || -> i64 {
        let sql = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
        let (_, count): (String, String) = sqlx::query_as(sql).fetch_one(&mut root).await.unwrap();
        count.parse().unwrap()
    };
    let before = count().await;
    let read = async || {
        for _ in 0..4 {
            read_everything(&*owned.reader, &generations).await;
        }
    };
    // All connections are in use, and each of them comes to know every statement.
    tokio::join!(read(), read(), read(), read());
    let prepared = count().await - before;
    println!("{prepared} statements on {kind}");
    assert!((STATEMENTS_MAX / 2..=STATEMENTS_MAX).contains(&prepared), "{prepared} statements are prepared");
}

#[tokio::test]
async fn a_reader_prepares_few_statements_on_mariadb() {
    a_reader_prepares_few_statements(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_reader_prepares_few_statements_on_mysql() {
    a_reader_prepares_few_statements(Kind::MySql).await;
}

#[tokio::test]
async fn too_many_prepared_statements_are_understood_on_mariadb() {
    a_full_server_is_understood(Kind::MariaDb).await;
}

#[tokio::test]
async fn too_many_prepared_statements_are_understood_on_mysql() {
    a_full_server_is_understood(Kind::MySql).await;
}
