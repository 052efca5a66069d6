//! Every kind of store passes the same contract.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_store::{Catalog, MySqlCatalog, MySqlOptions, MySqlShard, Shard, SqliteCatalog, SqliteShard};
use forebay_testkit::{
    contract::{
        Later, Subject,
        catalog::{CatalogSubject, Cut},
        damage::Damage,
    },
    fake::{CatalogDb, Db, Dice, FakeCatalog, FakeShard, Journal, Process},
    servers,
};
use forebay_types::{Seq, ShardId, Timestamp};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, MySqlConnection,
    sqlite::SqliteConnectOptions,
};

forebay_testkit::store_contract!(sqlite, fresh_sqlite());
forebay_testkit::store_contract!(mariadb, fresh_schema(servers::mariadb().await));
forebay_testkit::store_contract!(mysql, fresh_schema(servers::mysql().await));

async fn fresh_sqlite() -> Subject {
    let folder = Folder::new();
    let path = folder.0.join("shard.db");
    let open = move |id| -> Arc<dyn Shard> { Arc::new(SqliteShard::new(id, &path)) };
    let later = later_file(folder.0.join("shard.db"));
    let damage = damage_file(folder.0.join("shard.db"));
    Subject { guard: Some(Box::new(folder)), damage: Some(damage), ..Subject::new(open, false, later) }
}

async fn fresh_schema(server: &servers::Server) -> Subject {
    let url = server.fresh_url().await;
    let (later, damage) = (later_schema(url.clone()), damage_schema(url.clone()));
    let open = move |id| -> Arc<dyn Shard> {
        Arc::new(MySqlShard::new(id, &url, &MySqlOptions::default()).expect("a good URL"))
    };
    Subject { damage: Some(damage), ..Subject::new(open, true, later) }
}

/// Bytes that no program wrote, in the packed columns of an item.
fn damaged(seq: Seq) -> AssertSqlSafe<String> {
    let table = |table: &str| {
        format!("UPDATE {table} SET attributes = X'07FF', last_failures = X'63' WHERE seq = {};", seq.0)
    };
    AssertSqlSafe(table("item") + &table("dead_letter"))
}

fn damage_file(path: PathBuf) -> Damage {
    Box::new(move |seq| {
        let options = SqliteConnectOptions::new().filename(&path);
        Box::pin(async move {
            let mut connection = options.connect().await.expect("connects");
            connection.execute(sqlx::raw_sql(damaged(seq))).await.expect("damages");
        })
    })
}

fn damage_schema(url: String) -> Damage {
    Box::new(move |seq| {
        let url = url.clone();
        Box::pin(async move {
            let mut connection = MySqlConnection::connect(&url).await.expect("connects");
            connection.execute(sqlx::raw_sql(damaged(seq))).await.expect("damages");
        })
    })
}

/// Returns the rows that the migrations of a later release leave behind.
fn later(version: u32, oldest: Option<u32>) -> AssertSqlSafe<String> {
    let mut sql = format!("INSERT INTO schema_version (version, applied_at) VALUES ({version}, 0);");
    if let Some(oldest) = oldest {
        write!(sql, "REPLACE INTO schema_program (id, oldest) VALUES (1, {oldest});").expect("writes");
    }
    AssertSqlSafe(sql)
}

fn later_file(path: PathBuf) -> Later {
    Box::new(move |version, oldest| {
        let options = SqliteConnectOptions::new().filename(&path);
        Box::pin(async move {
            let mut connection = options.connect().await.expect("connects");
            connection.execute(sqlx::raw_sql(later(version, oldest))).await.expect("migrates");
        })
    })
}

fn later_schema(url: String) -> Later {
    Box::new(move |version, oldest| {
        let url = url.clone();
        Box::pin(async move {
            let mut connection = MySqlConnection::connect(&url).await.expect("connects");
            connection.execute(sqlx::raw_sql(later(version, oldest))).await.expect("migrates");
        })
    })
}

/// A fake has no versions of its schema, only the oldest program that may use it.
fn later_fake(set_oldest: impl Fn(u32) + Send + Sync + 'static) -> Later {
    Box::new(move |_, oldest| {
        oldest.into_iter().for_each(&set_oldest);
        Box::pin(std::future::ready(()))
    })
}

forebay_testkit::store_contract!(fake, fresh_fake());

fn journal() -> Arc<Journal> {
    Arc::new(Journal::new(Timestamp::from_micros(1_790_000_000_000_000), false))
}

async fn fresh_fake() -> Subject {
    let journal = journal();
    let db = Db::new(ShardId(1), journal, Dice::new(1));
    let later = later_fake({
        let db = db.clone();
        move |oldest| db.lock().oldest_program = oldest
    });
    let open = move |id| -> Arc<dyn Shard> {
        let process = Process::new(1);
        Arc::new(FakeShard::new(db.clone(), process).configured_as(id))
    };
    Subject::new(open, true, later)
}

forebay_testkit::catalog_contract!(sqlite_catalog, fresh_sqlite_catalog());
forebay_testkit::catalog_contract!(mariadb_catalog, fresh_catalog(servers::mariadb().await));
forebay_testkit::catalog_contract!(mysql_catalog, fresh_catalog(servers::mysql().await));

async fn fresh_sqlite_catalog() -> CatalogSubject {
    let folder = Folder::new();
    let path = folder.0.join("catalog.db");
    let shard = Arc::new(SqliteShard::new(ShardId(1), &path));
    let later = later_file(path.clone());
    let open = move || -> Arc<dyn Catalog> { Arc::new(SqliteCatalog::new(&path)) };
    CatalogSubject { open: Box::new(open), shard, cut: None, later, guard: Some(Box::new(folder)) }
}

async fn fresh_catalog(server: &servers::Server) -> CatalogSubject {
    let url = server.fresh_url().await;
    let options = MySqlOptions::default();
    let shard = Arc::new(MySqlShard::new(ShardId(1), &url, &options).expect("a good URL"));
    let cut: Cut = Box::new({
        let url = url.clone();
        move || Box::pin(kill_connections(url.clone()))
    });
    let later = later_schema(url.clone());
    let open =
        move || -> Arc<dyn Catalog> { Arc::new(MySqlCatalog::new(&url, &options).expect("a good URL")) };
    CatalogSubject { open: Box::new(open), shard, cut: Some(cut), later, guard: None }
}

forebay_testkit::catalog_contract!(fake_catalog, fresh_fake_catalog());

async fn fresh_fake_catalog() -> CatalogSubject {
    let journal = journal();
    let place = Db::new(ShardId(1), journal.clone(), Dice::new(1));
    place.lock().is_catalog = true;
    let shard = Arc::new(FakeShard::new(place, Process::new(1)));
    let db = CatalogDb::new(journal, Dice::new(1));
    let later = later_fake({
        let db = db.clone();
        move |oldest| db.lock().oldest_program = oldest
    });
    let open = move || -> Arc<dyn Catalog> { Arc::new(FakeCatalog::new(db.clone(), Process::new(1))) };
    CatalogSubject { open: Box::new(open), shard, cut: None, later, guard: None }
}

/// Kills every other connection to a database, and waits until it has none.
async fn kill_connections(url: String) {
    let mut connection = MySqlConnection::connect(&url).await.expect("connects");
    let others = "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist \
                  WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    loop {
        let ids: Vec<u64> = sqlx::query_scalar(others).fetch_all(&mut connection).await.expect("answers");
        if ids.is_empty() {
            return;
        }
        for id in ids {
            // One that is gone already can't be killed.
            let _ = connection.execute(sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}")))).await;
        }
    }
}

/// A folder that is removed after its test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("contract-{}-{number}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed remains under target/, where it is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
