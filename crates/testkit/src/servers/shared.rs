//! The servers that all tests of a run share.

use anyhow::Context as _;
use forebay_servers::{Kind, Process, locate, named_by_environment, required};
use tokio::sync::OnceCell;

use super::database::{blocking, fresh_database};

static MARIADB: OnceCell<Server> = OnceCell::const_new();
static MYSQL: OnceCell<Server> = OnceCell::const_new();

/// A running server that many tests share.
#[derive(Debug)]
pub struct Server {
    /// Its actual kind. If only one kind is installed, it replaces the other, unless `FOREBAY_TEST_REQUIRE`
    /// names both.
    pub kind: Kind,
    /// As `mysql://root@127.0.0.1:3306`, without a database.
    url: String,
    /// Stops the server when this process ends.
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
        if let Some((url, handshake)) = named_by_environment(kind)? {
            return Ok(Self { kind: handshake.kind, url: without_database(&url), _process: None });
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

    /// Creates a database with a random name. Returns its URL.
    pub async fn fresh_url(&self) -> String {
        match fresh_database(&self.url).await {
            Ok(url) => url,
            Err(error) => panic!("cannot create a database on {}: {error:#}", self.url),
        }
    }

    /// Its URL, without a database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn without_database(url: &str) -> String {
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    let end = url[scheme_end..].find(['/', '?']).map_or(url.len(), |at| scheme_end + at);
    url[..end].to_owned()
}
