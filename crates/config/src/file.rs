//! The keys of `forebay.toml`, as written.

use std::{collections::BTreeMap, path::PathBuf};

use forebay_access::toml_message;
use forebay_types::instead;
use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};

/// Their names.
const SECTIONS: &str = "node tls access catalog shard http traces limits engine memory metrics namespace";

/// The whole file. `check.rs` fills in the defaults of absent keys.
#[derive(Debug, Default)]
pub struct File {
    /// `[node]`: the process.
    pub node: Node,
    /// `[tls]`: certificates.
    pub tls: TlsKeys,
    /// `[access]`: who may do what.
    pub access: AccessKeys,
    /// `[catalog]`: the catalog of a cluster.
    pub catalog: Catalog,
    /// `[[shard]]`: one entry a shard.
    pub shards: Vec<Shard>,
    /// `[http]`: who may use the HTTP port.
    pub http: HttpKeys,
    /// `[traces]`: where spans go.
    pub traces: TraceKeys,
    /// `[limits]`: what one request may have.
    pub limits: LimitKeys,
    /// `[engine]`: batches, leases and calls.
    pub engine: EngineKeys,
    /// `[memory]`: what memory is used for.
    pub memory: MemoryKeys,
    /// `[metrics]`: which topics have metrics of their own.
    pub metrics: MetricsKeys,
    /// `[namespace.NAME]`: what differs for one namespace.
    pub namespaces: BTreeMap<String, NamespaceKeys>,
}

/// `[node]`: the process.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// Where to serve gRPC, `host:port`.
    pub grpc: Option<String>,
    /// Where to serve HTTP, `host:port`.
    pub http: Option<String>,
    /// Where other nodes reach this one, `host:port`.
    pub advertise: Option<String>,
    /// Where clients reach this node, `host:port`.
    pub advertise_clients: Option<String>,
    /// The node's name in its cluster.
    pub name: Option<String>,
    /// Where to serve other nodes of the cluster, `host:port`.
    pub peer: Option<String>,
    /// Holds the secret that the nodes of the cluster share.
    pub peer_secret_file: Option<String>,
    /// Serve even on a database that may lose answered commits.
    pub allow_not_durable: Option<bool>,
    /// Serve other machines even without TLS or access control.
    pub insecure: Option<bool>,
    /// The log filter, as in `info,forebay_engine=debug`.
    pub log: Option<String>,
    /// `text` or `json`.
    pub log_format: Option<String>,
    /// How long a stopping node still serves while load balancers notice.
    pub drain_ms: Option<u64>,
    /// gRPC connections.
    pub grpc_connections: Option<usize>,
    /// HTTP connections.
    pub http_connections: Option<usize>,
    /// Connections of other nodes.
    pub peer_connections: Option<usize>,
    /// Connections of one address without a credential, at each port.
    pub connections_per_address: Option<usize>,
    /// How long a connection may take to begin, and an HTTP request to arrive.
    pub handshake_timeout_ms: Option<u64>,
    /// How long nothing of a request may arrive.
    pub body_timeout_ms: Option<u64>,
    /// How old what the pages show may be.
    pub status_age_ms: Option<u64>,
    /// How long a gRPC connection may be without a call.
    pub idle_timeout_ms: Option<u64>,
    /// How long a gRPC connection may leave its answers unread.
    pub unread_timeout_ms: Option<u64>,
    /// Allow only the namespaces that have a section.
    pub strict_namespaces: Option<bool>,
    /// Holds the password of the MySQL accounts.
    pub mysql_password_file: Option<String>,
    /// CA certificates for connections to MySQL.
    pub mysql_tls_ca_file: Option<String>,
    /// Whether connections to MySQL are encrypted: `auto`, `required` or `off`.
    pub mysql_tls: Option<String>,
}

/// `[tls]`: certificates, as PEM.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsKeys {
    /// Of the gRPC and the HTTP port, with those between it and its authority.
    pub cert_file: Option<String>,
    /// Its private key.
    pub key_file: Option<String>,
    /// The authorities of clients.
    pub client_ca_file: Option<String>,
    /// Whether clients show a certificate: `off`, `optional` or `required`.
    pub client_auth: Option<String>,
    /// The certificates of this node for connections between nodes, with those between it and its authority.
    pub peer_cert_file: Option<String>,
    /// Its private key.
    pub peer_key_file: Option<String>,
    /// The authorities of nodes.
    pub peer_ca_file: Option<String>,
    /// A DNS name that every node's certificate has.
    pub peer_name: Option<String>,
}

/// `[access]`: who may do what.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessKeys {
    /// The file of tokens.
    pub tokens_file: Option<String>,
    /// Tokens of the catalog are accepted.
    pub catalog_tokens: Option<bool>,
    /// A file with the text of the first token of the catalog.
    pub bootstrap_token_file: Option<String>,
    /// `[[access.certificate]]`: what holders of certificates may do.
    pub certificate: Vec<CertificateKeys>,
}

/// `[[access.certificate]]`: what the holder of a certificate may do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateKeys {
    /// The name in it: its first URI, or else its first DNS name.
    pub san: String,
    /// Rights in namespaces, as in `team-*:produce`.
    pub grants: Vec<String>,
}

/// `[catalog]`: the catalog of a cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Catalog {
    /// The database, as in `mysql://forebay@db1:3306/forebay_catalog`.
    pub url: Option<String>,
    /// A file of the node's own, in which it keeps what the catalog says, to start with it while that is away.
    pub copy_file: Option<PathBuf>,
}

/// `[[shard]]`: one shard.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shard {
    /// Part of every item's id, so it must never change.
    pub id: Option<u32>,
    /// The database, as in `mysql://forebay@db1:3306/forebay_0001`.
    pub url: Option<String>,
}

/// `[http]`: who may use the HTTP port.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpKeys {
    /// Names by which the node may be called there, beside those that it knows.
    pub hosts: Vec<String>,
    /// Origins whose web pages may make calls.
    pub cors_origins: Vec<String>,
    /// Proxies that say truly where requests come from.
    pub trusted_proxies: Vec<String>,
    /// The template of links to Grafana.
    pub grafana: Option<String>,
}

/// `[traces]`: where spans go.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceKeys {
    /// A collector that takes OTLP over gRPC, as in `http://collector:4317`.
    pub endpoint: Option<String>,
    /// The share of calls without a trace of their own that get one.
    pub ratio: Option<f64>,
    /// The authorities that the collector's certificate may be of, as PEM. By default those of the system.
    pub ca_file: Option<String>,
    /// A file with what each request to the collector carries, one `name: value` a line.
    pub headers_file: Option<String>,
}

/// `[limits]`: what one request may have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitKeys {
    /// The most bytes of a payload.
    pub payload_bytes: Option<usize>,
    /// The most bytes of an item's metadata.
    pub metadata_bytes: Option<usize>,
    /// The most headers of an item.
    pub headers: Option<usize>,
    /// The most bytes of an item's headers together.
    pub header_bytes: Option<usize>,
    /// The most bytes of a topic or namespace.
    pub name_bytes: Option<usize>,
    /// The most bytes of a dedupe key, request id or consumer.
    pub key_bytes: Option<usize>,
    /// The most bytes of a nack's reason.
    pub reason_bytes: Option<usize>,
    /// The most members of a call.
    pub members: Option<usize>,
    /// The most bytes of a request.
    pub request_bytes: Option<usize>,
    /// The most topics of a dequeue.
    pub demands: Option<usize>,
    /// The most leased items of a topic in a shard.
    pub leased_per_topic: Option<usize>,
    /// The most leased items of a namespace in a shard.
    pub leased_per_tenant: Option<usize>,
    /// The most leased items of a shard.
    pub leased_per_shard: Option<usize>,
    /// The most topics of a namespace.
    pub topics_per_namespace: Option<usize>,
    /// The longest delay and ttl.
    pub span_ms: Option<u64>,
    /// The shortest lease.
    pub lease_min_ms: Option<u64>,
    /// The longest lease.
    pub lease_max_ms: Option<u64>,
    /// The lease of an item that names none.
    pub lease_default_ms: Option<u64>,
    /// The largest `max_attempts`.
    pub attempts_max: Option<u32>,
    /// The `max_attempts` of an item that names none.
    pub attempts_default: Option<u32>,
    /// The longest long poll.
    pub wait_max_ms: Option<u64>,
    /// Bytes of items in an answer by default.
    pub answer_bytes: Option<usize>,
    /// The largest `max_bytes` of a dequeue.
    pub answer_max_bytes: Option<usize>,
}

/// `[engine]`: batches, leases and calls.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineKeys {
    /// Rows of one commit.
    pub batch_rows: Option<usize>,
    /// Commits in flight at one database server.
    pub batches_per_server: Option<usize>,
    /// How long dedupe keys and request ids are remembered.
    pub dedupe_window_ms: Option<u64>,
    /// How long dead letters are kept; 0: for ever.
    pub dead_letter_retention_ms: Option<u64>,
    /// How long a silent owner keeps a shard.
    pub shard_lease_ms: Option<u64>,
    /// How long a topic without items is kept in memory.
    pub idle_topic_ms: Option<u64>,
    /// Long polls that may wait at the node.
    pub polls: Option<usize>,
    /// Long polls that may wait on one connection.
    pub polls_per_connection: Option<usize>,
    /// Calls in progress at the node.
    pub calls: Option<usize>,
    /// Calls in progress on one connection.
    pub calls_per_connection: Option<usize>,
}

/// `[memory]`: what memory is used for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryKeys {
    /// The ready index and cached bodies of all shards.
    pub index_bytes: Option<usize>,
    /// Topics of all shards, 1 KiB each.
    pub topic_bytes: Option<usize>,
    /// Enqueues that wait for their commit, in total.
    pub admit_bytes: Option<usize>,
    /// The same for one shard.
    pub admit_shard_bytes: Option<usize>,
    /// The same for one namespace in one shard.
    pub admit_tenant_bytes: Option<usize>,
    /// Requests that are being received or handled.
    pub request_bytes: Option<usize>,
    /// The same for one connection.
    pub request_bytes_per_connection: Option<usize>,
    /// The same for one namespace.
    pub request_bytes_per_namespace: Option<usize>,
    /// Long polls that wait.
    pub poll_bytes: Option<usize>,
    /// Calls that another node is to serve, on their way to one node.
    pub forward_bytes: Option<usize>,
    /// Answers that clients have not read yet.
    pub unsent_bytes: Option<usize>,
    /// The same for one connection.
    pub unsent_bytes_per_connection: Option<usize>,
}

/// `[metrics]`: which topics have metrics of their own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsKeys {
    /// Names as `namespace/topic`, or how they begin, with a `*`.
    pub topics: Option<Vec<String>>,
    /// At most this many topics have metrics of their own.
    pub topics_max: Option<usize>,
}

/// `[namespace.NAME]`: what differs for one namespace.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamespaceKeys {
    /// Replaces `engine.dedupe_window_ms`.
    pub dedupe_window_ms: Option<u64>,
    /// Replaces `engine.dead_letter_retention_ms`.
    pub dead_letter_retention_ms: Option<u64>,
}

/// Reads the table. Every key that is unknown or of a wrong type is reported, not only the first.
pub fn read(mut table: Table, errors: &mut Vec<String>) -> File {
    let file = File {
        node: section("node", table.remove("node"), errors),
        tls: section("tls", table.remove("tls"), errors),
        access: section("access", table.remove("access"), errors),
        catalog: section("catalog", table.remove("catalog"), errors),
        shards: shards(table.remove("shard"), errors),
        http: section("http", table.remove("http"), errors),
        traces: section("traces", table.remove("traces"), errors),
        limits: section("limits", table.remove("limits"), errors),
        engine: section("engine", table.remove("engine"), errors),
        memory: section("memory", table.remove("memory"), errors),
        metrics: section("metrics", table.remove("metrics"), errors),
        namespaces: namespaces(table.remove("namespace"), errors),
    };
    for key in table.keys() {
        errors.push(format!("unknown key {key}; the sections: {}", instead(key, SECTIONS.split(' '))));
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

/// Reads a section key by key, so that each wrong one is reported.
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
        let single = Table::from_iter([(key.to_string(), value.clone())]);
        match single.try_into::<T>() {
            Ok(_) => true,
            Err(error) => {
                errors.push(format!("{name}.{key}: {}", toml_message(&error)));
                false
            }
        }
    });
    // Each remaining key has been read once already.
    table.try_into().unwrap_or_default()
}
