//! A server whose administrator has chosen other defaults, or has changed the password.

use std::sync::Arc;

use forebay_store::{
    Batch, Catalog as _, Claim, MySqlCatalog, MySqlOptions, MySqlShard, Password, ReadAhead, Shard, Versions,
};
use forebay_testkit::servers::{Kind, Private};
use forebay_types::{ClusterId, Incarnation, Key, ShardId, TopicId};
use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

const CLUSTER: ClusterId = ClusterId([7; 16]);

async fn run(connection: &mut MySqlConnection, sql: &str) {
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn claim() -> Claim {
    let incarnation = Incarnation(*b"an odd server's.");
    Claim { incarnation, address: "node:7420".into(), lease: std::time::Duration::from_millis(1_500) }
}

/// Sessions begin with all of this.
const ODD: &str = "SET GLOBAL autocommit = 0, sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES', \
                   time_zone = '+05:00', completion_type = 1, sql_safe_updates = 1, sql_select_limit = 1, \
                   sql_big_selects = 0, max_join_size = 1, unique_checks = 0, \
                   character_set_client = latin1, character_set_connection = latin1, \
                   character_set_results = latin1, collation_connection = latin1_general_cs; \
                   SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY";

/// Migrations, catalog, looks, owners, renewals, readers: what they say is so for others, too.
async fn sessions_set_what_they_rely_on(kind: Kind) {
    let server = Private::start(kind, &[]).await;
    let (url, catalog) = (server.fresh_url().await, server.fresh_url().await);
    let mut root = MySqlConnection::connect(&server.url()).await.unwrap();
    run(&mut root, ODD).await;
    let open = || MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap();
    let catalog = || MySqlCatalog::new(&catalog, &MySqlOptions::default()).unwrap();

    assert_eq!(open().migrate(CLUSTER).await.unwrap(), [1, 2, 3, 4, 5, 6]);
    assert!(!catalog().migrate(CLUSTER).await.unwrap().is_empty());
    let shard = open();
    shard.check().await.unwrap();
    assert_eq!(shard.identity().await.unwrap().unwrap().cluster, CLUSTER);
    assert_eq!(catalog().cluster().await.unwrap(), Some(CLUSTER));
    for id in 1..=3 {
        catalog().add_shard(&format!("mysql://forebay@db1/forebay_{id}"), Some(ShardId(id))).await.unwrap();
    }
    assert_eq!(catalog().read(Versions::default()).await.unwrap().shards.unwrap().len(), 3);

    let seen = shard.observe().await.unwrap();
    shard.probe().await.unwrap();
    let ahead = shard.read_ahead().await.unwrap();
    let mut owner = shard.take_over(&claim(), &seen).await.unwrap().unwrap();
    owner.heartbeat.renew().await.unwrap();
    owner.heartbeat.create_generation(1).await.unwrap();
    for number in 1..=3 {
        owner.writer.commit(&Batch { number, ..Batch::default() }).await.unwrap();
    }
    let loaded = owner.reader.load(ahead).await.unwrap();
    assert_eq!(loaded.generations, [1]);
    assert_eq!(owner.reader.ready(TopicId(1), Key::MIN, 9, 0).await.unwrap(), []);
    let after = open().observe().await.unwrap();
    assert_eq!((after.epoch, after.batch), (seen.epoch + 1, 3));
    assert!(after.renewals > seen.renewals, "others see the renewal");
    // A reader holds no transaction that a change of the schema would wait for.
    run(&mut root, "SET SESSION lock_wait_timeout = 2").await;
    let schema = url.rsplit('/').next().unwrap();
    run(&mut root, &format!("ALTER TABLE {schema}.checkpoint COMMENT = 'changed'")).await;
    assert_eq!(owner.reader.load(ReadAhead::default()).await.unwrap().generations, [1]);
}

#[tokio::test]
async fn sessions_of_mariadb_set_what_they_rely_on() {
    sessions_set_what_they_rely_on(Kind::MariaDb).await;
}

#[tokio::test]
async fn sessions_of_mysql_set_what_they_rely_on() {
    sessions_set_what_they_rely_on(Kind::MySql).await;
}

/// The server refuses the old password, and ends all connections. Nothing is started anew.
#[tokio::test]
async fn a_new_connection_has_the_password_that_the_file_says_by_then() {
    let server = Private::start(Kind::MariaDb, &[]).await;
    let (url, catalog) = (server.fresh_url().await, server.fresh_url().await);
    let mut root = MySqlConnection::connect(&server.url()).await.unwrap();
    let set = async |root: &mut MySqlConnection, password: &str| {
        let sql =
            "CREATE USER IF NOT EXISTS forebay@'%'; GRANT ALL ON *.* TO forebay@'%'; ALTER USER forebay@'%'";
        run(root, &format!("{sql} IDENTIFIED BY '{password}'")).await;
    };
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("password-{}", server.port));
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("first\n");
    set(&mut root, "first").await;
    let options = MySqlOptions { password: Some(Password::File(path.clone())), ..MySqlOptions::default() };
    let account = |url: &str| url.replace("//root@", "//forebay@");
    let shard = MySqlShard::new(ShardId(1), &account(&url), &options).unwrap();
    let catalog = MySqlCatalog::new(&account(&catalog), &options).unwrap();
    shard.migrate(CLUSTER).await.unwrap();
    catalog.migrate(CLUSTER).await.unwrap();
    let seen = shard.observe().await.unwrap();
    let mut owner = shard.take_over(&claim(), &seen).await.unwrap().unwrap();
    owner.writer.commit(&Batch { number: 1, ..Batch::default() }).await.unwrap();
    owner.reader.load(ReadAhead::default()).await.unwrap();

    write("the second");
    set(&mut root, "the second").await;
    let others = "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist WHERE user = 'forebay'";
    let ids: Vec<u64> = sqlx::query_scalar(others).fetch_all(&mut root).await.unwrap();
    assert!(!ids.is_empty());
    for id in ids {
        let _ = root.execute(sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}")))).await;
    }
    owner.writer.resolve(1).await.expect("the writer connects again");
    owner.writer.commit(&Batch { number: 2, ..Batch::default() }).await.unwrap();
    owner.heartbeat.renew().await.expect("renewals do");
    owner.reader.load(ReadAhead::default()).await.expect("the pool of a reader does");
    shard.observe().await.expect("looks do");
    assert_eq!(catalog.cluster().await.expect("the catalog does"), Some(CLUSTER));
    let refused = "SELECT CAST(variable_value AS UNSIGNED) FROM information_schema.global_status \
                   WHERE variable_name = 'ACCESS_DENIED_ERRORS'";
    let refused: u64 = sqlx::query_scalar(refused).fetch_one(&mut root).await.unwrap();
    assert_eq!(refused, 0, "nobody tried the old one: a server may lock an account after a few");
    std::fs::remove_file(&path).unwrap();
}

/// They wait for each other. The first one makes the schema.
#[tokio::test]
async fn migrations_at_the_same_time_end_well() {
    let server = Private::start(Kind::MariaDb, &[]).await;
    let url = format!("{}/forebay_made_by_many", server.url());
    let open = || -> Arc<dyn Shard> {
        Arc::new(MySqlShard::new(ShardId(1), &url, &MySqlOptions::default()).unwrap())
    };
    let shards: Vec<_> = (0..6).map(|_| open()).collect();
    let applied = join_all(shards.iter().map(|shard| shard.migrate(CLUSTER))).await;
    let applied: Vec<Vec<u32>> = applied.into_iter().map(Result::unwrap).collect();
    let [first] = &*applied.iter().filter(|applied| !applied.is_empty()).collect::<Vec<_>>() else {
        panic!("{applied:?}");
    };
    assert_eq!(**first, [1, 2, 3, 4, 5, 6]);
    open().check().await.unwrap();
}
