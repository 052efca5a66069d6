//! Every kind of store passes the same contract.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_store::{MySqlOptions, MySqlShard, Shard, SqliteShard};
use forebay_testkit::{
    contract::Subject,
    fake::{Db, Dice, FakeShard, Journal, Process},
    servers,
};
use forebay_types::{ShardId, Timestamp};

forebay_testkit::store_contract!(sqlite, fresh_sqlite());
forebay_testkit::store_contract!(mariadb, fresh_schema(servers::mariadb().await));
forebay_testkit::store_contract!(mysql, fresh_schema(servers::mysql().await));

async fn fresh_sqlite() -> Subject {
    let folder = Folder::new();
    let path = folder.0.join("shard.db");
    let open = move |id| -> Arc<dyn Shard> { Arc::new(SqliteShard::new(id, &path)) };
    Subject { guard: Some(Box::new(folder)), ..Subject::new(open, false) }
}

async fn fresh_schema(server: &servers::Server) -> Subject {
    let url = server.fresh_url().await;
    let open = move |id| -> Arc<dyn Shard> {
        Arc::new(MySqlShard::new(id, &url, &MySqlOptions::default()).expect("a good URL"))
    };
    Subject::new(open, true)
}

forebay_testkit::store_contract!(fake, fresh_fake());

async fn fresh_fake() -> Subject {
    let journal = Arc::new(Journal::new(Timestamp::from_micros(1_790_000_000_000_000), false));
    let db = Db::new(ShardId(1), journal, Dice::new(1));
    let open = move |id| -> Arc<dyn Shard> {
        let process = Process::new(1);
        Arc::new(FakeShard::new(db.clone(), process).configured_as(id))
    };
    Subject::new(open, true)
}

/// A folder that is removed after its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
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
