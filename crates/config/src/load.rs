//! Reads a configuration from its file, the environment and flags.

use std::path::Path;

use forebay_access::toml_error;

use super::{
    check, environment, file,
    values::{Config, ConfigError},
};

/// Keys of `[node]` that flags set, with their values.
pub type Flags = Vec<(&'static str, toml::Value)>;

impl Config {
    /// Reads the file, then applies the environment and the flags.
    pub fn load(path: &Path, flags: Flags) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            ConfigError(vec![format!("cannot read {}: {error} (try `--config`)", path.display())])
        })?;
        Self::parse(&text, std::env::vars_os().filter_map(environment::text), flags)
    }

    /// The same with the file's text and the variables given.
    pub fn parse(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        flags: Flags,
    ) -> Result<Self, ConfigError> {
        let mut errors = Vec::new();
        let table = toml::from_str::<toml::Table>(text).unwrap_or_else(|error| {
            errors.push(toml_error(text, &error));
            toml::Table::new()
        });
        // A file that is not TOML would also be reported to have no shards.
        if !errors.is_empty() {
            return Err(ConfigError(errors));
        }
        Self::from_table(table, variables, flags)
    }

    /// A node on `shards` SQLite files in a folder. It stops without a drain pause.
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
        let secrets = environment::overlay(&mut table, variables, &mut errors);
        environment::set(&mut table, "node", flags, &mut errors);
        let file = file::read(table, &mut errors);
        let config = check::check(file, secrets, &mut errors);
        if errors.is_empty() { Ok(config) } else { Err(ConfigError(errors)) }
    }
}
