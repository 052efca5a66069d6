//! The keys of `forebay.toml`, as they stand there.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};

/// The whole file. What is absent has its default, which [`super::check`] knows.
#[derive(Debug, Default)]
pub struct File {
    /// `[node]`
    pub node: Node,
    /// `[[shard]]`
    pub shards: Vec<Shard>,
    /// `[limits]`
    pub limits: LimitKeys,
    /// `[engine]`
    pub engine: EngineKeys,
    /// `[memory]`
    pub memory: MemoryKeys,
    /// `[namespace.NAME]`
    pub namespaces: BTreeMap<String, NamespaceKeys>,
}

/// What concerns the process.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    pub grpc: Option<String>,
    pub http: Option<String>,
    pub advertise: Option<String>,
    pub allow_not_durable: Option<bool>,
    pub log: Option<String>,
    pub log_format: Option<String>,
    pub drain_ms: Option<u64>,
    pub strict_namespaces: Option<bool>,
    pub mysql_password_file: Option<String>,
    pub mysql_tls_ca_file: Option<String>,
}

/// One shard.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shard {
    pub id: Option<u32>,
    pub url: Option<String>,
}

/// What is allowed in calls.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitKeys {
    pub payload_bytes: Option<usize>,
    pub metadata_bytes: Option<usize>,
    pub headers: Option<usize>,
    pub header_bytes: Option<usize>,
    pub name_bytes: Option<usize>,
    pub key_bytes: Option<usize>,
    pub reason_bytes: Option<usize>,
    pub members: Option<usize>,
    pub request_bytes: Option<usize>,
    pub demands: Option<usize>,
    pub leased_per_topic: Option<usize>,
    pub leased_per_shard: Option<usize>,
    pub topics_per_namespace: Option<usize>,
    pub span_ms: Option<u64>,
    pub lease_min_ms: Option<u64>,
    pub lease_max_ms: Option<u64>,
    pub lease_default_ms: Option<u64>,
    pub attempts_max: Option<u32>,
    pub attempts_default: Option<u32>,
    pub wait_max_ms: Option<u64>,
    pub answer_bytes: Option<usize>,
    pub answer_max_bytes: Option<usize>,
}

/// How the engine works.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineKeys {
    pub batch_rows: Option<usize>,
    pub batches_per_server: Option<usize>,
    pub dedupe_window_ms: Option<u64>,
    pub shard_lease_ms: Option<u64>,
    pub idle_topic_ms: Option<u64>,
    pub polls: Option<usize>,
    pub polls_per_connection: Option<usize>,
    pub calls: Option<usize>,
    pub calls_per_connection: Option<usize>,
}

/// How much memory is used for what.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryKeys {
    pub index_bytes: Option<usize>,
    pub admit_bytes: Option<usize>,
    pub admit_shard_bytes: Option<usize>,
    pub admit_tenant_bytes: Option<usize>,
    pub request_bytes: Option<usize>,
    pub unsent_bytes: Option<usize>,
    pub unsent_bytes_per_connection: Option<usize>,
}

/// What one namespace has of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamespaceKeys {
    pub dedupe_window_ms: Option<u64>,
}

/// Reads the table; every key that is unknown or of a wrong type is told, not only the first.
pub fn read(mut table: Table, errors: &mut Vec<String>) -> File {
    let file = File {
        node: section("node", table.remove("node"), errors),
        shards: shards(table.remove("shard"), errors),
        limits: section("limits", table.remove("limits"), errors),
        engine: section("engine", table.remove("engine"), errors),
        memory: section("memory", table.remove("memory"), errors),
        namespaces: namespaces(table.remove("namespace"), errors),
    };
    for key in table.keys() {
        errors.push(format!(
            "unknown key {key}: there are \
             [node], [[shard]], [limits], [engine], [memory] and [namespace.NAME]"
        ));
    }
    file
}

fn shards(value: Option<Value>, errors: &mut Vec<String>) -> Vec<Shard> {
    let list = match value {
        None => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            errors.push("shard must be written as [[shard]]".to_owned());
            return Vec::new();
        }
    };
    let read = |(index, value)| section(&format!("shard[{index}]"), Some(value), errors);
    list.into_iter().enumerate().map(read).collect()
}

fn namespaces(value: Option<Value>, errors: &mut Vec<String>) -> BTreeMap<String, NamespaceKeys> {
    let table = match value {
        None => return BTreeMap::new(),
        Some(Value::Table(table)) => table,
        Some(_) => {
            errors.push("namespace must be written as [namespace.NAME]".to_owned());
            return BTreeMap::new();
        }
    };
    let read = |(name, value): (String, Value)| {
        let keys = section(&format!("namespace.{name}"), Some(value), errors);
        (name, keys)
    };
    table.into_iter().map(read).collect()
}

/// Reads a section key by key, so that each wrong one is told.
fn section<T: DeserializeOwned + Default>(name: &str, value: Option<Value>, errors: &mut Vec<String>) -> T {
    let mut table = match value {
        None => return T::default(),
        Some(Value::Table(table)) => table,
        Some(_) => {
            errors.push(format!("{name} must be a section"));
            return T::default();
        }
    };
    table.retain(|key, value| {
        let alone = Table::from_iter([(key.to_string(), value.clone())]);
        match alone.try_into::<T>() {
            Ok(_) => true,
            Err(error) => {
                errors.push(format!("{name}.{key}: {}", error.message()));
                false
            }
        }
    });
    // What is left has been read once already.
    table.try_into().unwrap_or_default()
}
