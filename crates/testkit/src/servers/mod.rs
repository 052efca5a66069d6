//! Real database servers for tests.
//!
//! `cargo xtask test` starts one server of each kind for the whole run and names them in the environment;
//! a bare `cargo test` starts its own, once a process. Either way a test takes a fresh database
//! ([`Server::fresh_url`]) and shares nothing else. A test that kills its server starts a [`Private`] one.

mod private;

use std::time::Duration;

use anyhow::Context as _;
pub use forebay_servers::{Kind, free_port};
use forebay_servers::{Process, locate, named_by_environment, random, required};
pub use private::Private;
use sqlx::{Connection as _, Executor as _, MySqlConnection};
use tokio::sync::OnceCell;

static MARIADB: OnceCell<Server> = OnceCell::const_new();
static MYSQL: OnceCell<Server> = OnceCell::const_new();
/// A server that has just been started by another test may still be short of threads.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// A running server that many tests share.
#[derive(Debug)]
pub struct Server {
    /// What it really is: where only one kind of server is to be had, it stands in for the other, unless
    /// `FOREBAY_TEST_REQUIRE` names both.
    pub kind: Kind,
    /// As `mysql://root@127.0.0.1:3306`, without a database.
    url: String,
    /// Kept for its end, which comes with this process.
    _process: Option<Process>,
}

/// The run's MariaDB. Panics with the reason if there is none.
pub async fn mariadb() -> &'static Server {
    shared(Kind::MariaDb).await
}

/// The run's MySQL. Panics with the reason if there is none.
pub async fn mysql() -> &'static Server {
    shared(Kind::MySql).await
}

/// The run's server of `kind`. Panics with the reason if there is none.
pub async fn shared(kind: Kind) -> &'static Server {
    let cell = match kind {
        Kind::MariaDb => &MARIADB,
        Kind::MySql => &MYSQL,
    };
    let server = cell.get_or_try_init(|| blocking(move || Server::get(kind))).await;
    server.unwrap_or_else(|error| panic!("{kind}: {error:#}"))
}

impl Server {
    fn get(kind: Kind) -> anyhow::Result<Self> {
        if let Some((url, greeting)) = named_by_environment(kind)? {
            return Ok(Self { kind: greeting.kind, url: without_database(&url), _process: None });
        }
        let own = locate(kind).and_then(|install| Process::start(install, &[]));
        let process = match own {
            Ok(process) => process,
            Err(error) if required()?.contains(&kind) => return Err(error),
            Err(error) => {
                let other = locate(kind.other()).and_then(|install| Process::start(install, &[]));
                other.context(error)?
            }
        };
        Ok(Self { kind: process.kind(), url: process.url(), _process: Some(process) })
    }

    /// Makes a database with a random name and returns its URL.
    pub async fn fresh_url(&self) -> String {
        match fresh_database(&self.url).await {
            Ok(url) => url,
            Err(error) => panic!("a database on {}: {error:#}", self.url),
        }
    }

    /// Its URL, without a database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Makes a database with a random name on the server at `url` and returns its URL.
pub(crate) async fn fresh_database(url: &str) -> anyhow::Result<String> {
    let name = format!("forebay_{:016x}", random());
    let connecting = MySqlConnection::connect(url);
    let mut connection = tokio::time::timeout(CONNECT_PATIENCE, connecting).await??;
    connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await?;
    connection.close().await?;
    Ok(format!("{url}/{name}"))
}

fn without_database(url: &str) -> String {
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    let end = url[scheme_end..].find(['/', '?']).map_or(url.len(), |at| scheme_end + at);
    url[..end].to_owned()
}

/// Runs what blocks on a thread of its own, so that it works in every flavour of runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}
