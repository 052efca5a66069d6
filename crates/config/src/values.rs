//! The values of a checked configuration.

use std::{fmt, path::PathBuf, time::Duration};

use forebay_edge::{
    access::AccessSettings, admission::LoadLimits, rpc::RequestRules, tls::TlsSettings, traces::TraceSettings,
};
use forebay_engine::Settings;
use forebay_store::{Password, Tls};
use forebay_types::{NodeName, ShardId};

use super::http::HttpAccess;

/// A checked configuration.
#[derive(Clone)]
pub struct Config {
    /// Where to serve gRPC, `host:port`.
    pub grpc: String,
    /// Where to serve HTTP, `host:port`.
    pub http: String,
    /// Bounds on the use of the HTTP port, and links to Grafana.
    pub http_access: HttpAccess,
    /// Where other nodes reach this one; `None`: the bound address of `peer`.
    pub advertise: Option<String>,
    /// The catalog of the cluster.
    pub catalog: ShardUrl,
    /// Where the node keeps a copy of the catalog. `None`: nowhere.
    pub catalog_copy: Option<PathBuf>,
    /// This node's name in the cluster; `None`: the host's name.
    pub name: Option<NodeName>,
    /// Where to serve other nodes of the cluster, `host:port`.
    pub peer: String,
    /// Secrets that nodes of the cluster show each other: this node shows the first, and takes any. The
    /// others are there while the secret is changed. Empty: this node is the only one.
    pub peer_secrets: Vec<Secret>,
    /// Where clients reach this node; `None`: the bound gRPC address.
    pub advertise_clients: Option<String>,
    /// Serve even on a database that may lose answered commits.
    pub allow_not_durable: bool,
    /// The log filter, as in `info,forebay_engine=debug`.
    pub log: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// How long a stopping node still serves while load balancers notice.
    pub drain: Duration,
    /// The password of the MySQL accounts.
    pub mysql_password: Option<Password>,
    /// A file of CA certificates that the MySQL servers' certificates must chain to.
    pub mysql_tls_ca: Option<PathBuf>,
    /// Whether connections to the MySQL servers are encrypted.
    pub mysql_tls: Tls,
    /// The most gRPC connections; `None`: as many as file descriptors allow, up to 8,192.
    pub grpc_connections: Option<usize>,
    /// The most HTTP connections; `None`: as many as file descriptors allow, up to 1,024.
    pub http_connections: Option<usize>,
    /// The most connections of other nodes; `None`: as many as file descriptors allow, up to 256.
    pub peer_connections: Option<usize>,
    /// Connections of one address without a credential, at each port; `None`: a quarter of the port's.
    pub connections_per_address: Option<usize>,
    /// The certificates.
    pub tls: TlsSettings,
    /// Where spans go. `None`: there are none.
    pub traces: Option<TraceSettings>,
    /// Settings of access control.
    pub access: AccessSettings,
    /// Warnings of what strangers who reach this node from other machines may do, one sentence each.
    pub exposed: Vec<String>,
    /// Shards that `forebay migrate` adds to the catalog.
    pub shards: Vec<ShardConfig>,
    /// The most bytes of calls on their way to one other node. A namespace has a quarter.
    pub forward_bytes: usize,
    /// How old what the pages show may be.
    pub status_age: Duration,
    /// Rules that requests are checked against.
    pub rules: RequestRules,
    /// How many calls and bytes the node takes on at once.
    pub load: LoadLimits,
    /// The engine's settings.
    pub settings: Settings,
}

impl Config {
    /// Whether this node is the only one of its cluster. Others can join if they know a secret of it.
    pub fn is_alone(&self) -> bool {
        self.peer_secrets.is_empty()
    }
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardConfig {
    /// Its number. It is part of every item's id, so it must never change.
    pub id: ShardId,
    /// Its database.
    pub url: ShardUrl,
}

/// A shard's database.
#[derive(Clone, PartialEq, Eq)]
pub enum ShardUrl {
    /// A schema of a MySQL or MariaDB server. The URL may hold a password.
    MySql(String),
    /// A SQLite file.
    Sqlite(PathBuf),
}

impl fmt::Debug for ShardUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(_) => f.write_str("MySql"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
        }
    }
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A text that is never printed or logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Each line of the text.
    pub(super) fn lines(&self) -> Vec<Self> {
        self.0.lines().map(Self::new).collect()
    }

    /// The text, to log in with.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Everything that is wrong with a configuration, one message each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);
