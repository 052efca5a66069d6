//! A server that takes no more prepared statements refuses reads, and nothing else is lost with that.

use forebay_store::{Claim, ErrorClass, MySqlOptions, MySqlShard, Reader, Shard as _};
use forebay_testkit::servers::{Kind, Private};
use forebay_types::{ClusterId, Incarnation, Key, Seq, ShardId, TopicId};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

async fn reads(reader: &dyn Reader, limit: usize) -> Result<(), ErrorClass> {
    reader.ready(TopicId(1), Key::MIN, limit, 0).await.map(drop).map_err(|error| error.class)?;
    reader.locate(&[Seq(1)]).await.map(drop).map_err(|error| error.class)
}

async fn a_full_server_is_understood(kind: Kind) {
    let server = Private::start(kind, &[]).await;
    let url = server.fresh_url().await;
    let shard = MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap();
    shard.migrate(ClusterId::default()).await.unwrap();
    let seen = shard.observe().await.unwrap();
    let claim = Claim { incarnation: Incarnation([1; 16]), address: "here:1".into() };
    let owned = shard.take_over(&claim, &seen).await.unwrap().unwrap();

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

#[tokio::test]
async fn too_many_prepared_statements_are_understood_on_mariadb() {
    a_full_server_is_understood(Kind::MariaDb).await;
}

#[tokio::test]
async fn too_many_prepared_statements_are_understood_on_mysql() {
    a_full_server_is_understood(Kind::MySql).await;
}
