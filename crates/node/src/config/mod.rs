//! What a node is told: flags override the environment, which overrides the file. Units stand in the names;
//! a key that nobody knows is an error that names it.

mod check;
mod environment;
mod file;

use std::{fmt, path::Path, path::PathBuf, time::Duration};

use forebay_engine::Settings;
use forebay_types::ShardId;

use crate::grpc::{LoadLimits, Rules};

/// Everything that a node needs to know, checked.
#[derive(Clone)]
pub struct Config {
    /// Where gRPC is served, `host:port`.
    pub grpc: String,
    /// Where HTTP is served, `host:port`.
    pub http: String,
    /// Where other nodes reach this one; `None`: the address that gRPC is bound to.
    pub advertise: Option<String>,
    /// Serve even where the database may lose an answered commit.
    pub allow_not_durable: bool,
    /// What is logged, as in `info,forebay_engine=debug`.
    pub log: String,
    /// How it is logged.
    pub log_format: LogFormat,
    /// How long a stopping node still serves while balancers notice.
    pub drain: Duration,
    /// The password of the MySQL accounts.
    pub mysql_password: Option<Secret>,
    /// The authorities that may vouch for the MySQL servers.
    pub mysql_tls_ca: Option<PathBuf>,
    /// The shards.
    pub shards: Vec<ShardConfig>,
    /// What calls are checked against.
    pub rules: Rules,
    /// How much the node takes on at once.
    pub load: LoadLimits,
    /// How the engine works.
    pub settings: Settings,
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardConfig {
    /// Its number: part of every item's id, so it never changes.
    pub id: ShardId,
    /// Where it is kept.
    pub place: Place,
}

/// Where a shard is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A schema of a MySQL or MariaDB server. The URL may hold a password.
    MySql(String),
    /// A SQLite file.
    Sqlite(PathBuf),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(_) => f.write_str("MySql"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever needs it to log in.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Everything that is wrong with a configuration, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);

/// Keys of `[node]` that flags set, with their values.
pub type Flags = Vec<(&'static str, toml::Value)>;

impl Config {
    /// Reads the file, then what the environment and the flags say instead.
    pub fn load(path: &Path, flags: Flags) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(vec![format!("{} can't be read: {error}", path.display())]))?;
        Self::parse(&text, std::env::vars_os().filter_map(environment::text), flags)
    }

    /// The same from a text and given variables.
    pub fn parse(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        flags: Flags,
    ) -> Result<Self, ConfigError> {
        let mut errors = Vec::new();
        let table = toml::from_str::<toml::Table>(text).unwrap_or_else(|error| {
            errors.push(error.to_string().trim_end().to_owned());
            toml::Table::new()
        });
        // A text that is no TOML has no shards either: that need not be said as well.
        if !errors.is_empty() {
            return Err(ConfigError(errors));
        }
        Self::from_table(table, variables, flags)
    }

    /// A node on `shards` SQLite files in a folder, which stops at once.
    pub fn embedded(folder: &Path, shards: u32, flags: Flags) -> Result<Self, ConfigError> {
        let shard = |id: u32| {
            let path = folder.join(format!("{id:04}.db"));
            let url = format!("sqlite://{}", path.display());
            toml::Table::from_iter([("id".to_owned(), id.into()), ("url".to_owned(), url.into())])
        };
        let shards: Vec<_> = (1..=shards).map(shard).map(toml::Value::Table).collect();
        let node = toml::Table::from_iter([("drain_ms".to_owned(), 0.into())]);
        let table = toml::Table::from_iter([
            ("node".to_owned(), toml::Value::Table(node)),
            ("shard".to_owned(), toml::Value::Array(shards)),
        ]);
        Self::from_table(table, std::env::vars_os().filter_map(environment::text), flags)
    }

    fn from_table(
        mut table: toml::Table,
        variables: impl IntoIterator<Item = (String, String)>,
        flags: Flags,
    ) -> Result<Self, ConfigError> {
        let mut errors = Vec::new();
        let password = environment::overlay(&mut table, variables, &mut errors);
        environment::set(&mut table, "node", flags, &mut errors);
        let file = file::read(table, &mut errors);
        let config = check::check(file, password, &mut errors);
        if errors.is_empty() { Ok(config) } else { Err(ConfigError(errors)) }
    }
}

#[cfg(test)]
mod tests;
