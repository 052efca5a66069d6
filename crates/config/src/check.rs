//! Checks the values of a configuration, and fills in defaults.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use forebay_edge::{admission::LoadLimits, rpc::RequestRules};
use forebay_engine::{Settings, TOPIC_BYTES};
use forebay_store::{CatalogError, Password, check_shard_url};
use forebay_types::{Limits, ShardId};

use super::{
    access::{access, exposed, refuse},
    addresses::{address, overlap},
    cluster::{Cluster, cluster},
    environment::Secrets,
    file::{EngineKeys, File, LimitKeys, MemoryKeys, NamespaceKeys, Node, Shard},
    log_filter::log_filter,
    mysql_tls::{mysql_tls, tls_ca_file},
    secret_file::secret_file,
    tls::tls,
    traces::traces,
    urls::shard_url,
    values::{Config, LogFormat, Secret, ShardConfig, ShardUrl},
};

/// A stopping node needs the rest of its 25 s to commit and answer.
const DRAIN_MAX: Duration = Duration::from_secs(15);
/// Names are stored in columns of 255 bytes.
const NAME_BYTES_MAX: usize = 255;
/// gRPC responses carry at most 16 MiB.
const ANSWER_BYTES_MAX: usize = 15 << 20;

/// Checks what was read and returns the configuration. Everything that is wrong is added to `errors`.
pub fn check(file: File, secrets: Secrets, errors: &mut Vec<String>) -> Config {
    let rates = [file.limits.call_rate_per_connection, file.limits.call_rate_per_namespace];
    let limits = limits(file.limits, errors);
    let mut load = LoadLimits::default();
    let mut settings = Settings { limits: limits.clone(), ..Settings::default() };
    call_rates(rates, &mut load, errors);
    engine(file.engine, &mut settings, &mut load, errors);
    memory(&file.memory, &mut settings, &mut load, errors);
    settings.reported = super::metrics::metrics(file.metrics, errors);
    namespaces(&file.namespaces, &limits, errors);
    let namespaces =
        file.node.strict_namespaces.then(|| file.namespaces.keys().cloned().collect::<BTreeSet<_>>());
    namespace_settings(file.namespaces, &mut settings, errors);

    let node = file.node;
    let drain = Duration::from_millis(node.drain_ms);
    if drain > DRAIN_MAX {
        errors.push(format!("node.drain_ms must be at most {}", DRAIN_MAX.as_millis()));
    }
    connections(&node, &mut load, errors);
    let grpc = address("node.grpc", node.grpc.clone(), errors);
    let http = address("node.http", node.http.clone(), errors);
    if overlap(&grpc, &http) {
        errors.push(format!("node.grpc and node.http are the same port: {grpc} and {http}"));
    }
    let ports = [("node.grpc", grpc.as_str()), ("node.http", http.as_str())];
    let shards = shards(file.shards, file.catalog.url.is_some(), errors);
    let Cluster { catalog, catalog_copy, name, peer, peer_secrets, advertise_clients } =
        cluster(file.catalog, &shards, &node, secrets.peer_secret, ports, errors);
    let http_access = super::http::http(file.http, errors);
    let tls = tls(file.tls, errors);
    let traces = traces(file.traces, errors);
    let access = access(file.access, &tls, errors);
    let of_nodes = (!peer_secrets.is_empty()).then_some(peer.as_str());
    let exposed = exposed([("gRPC", &grpc), ("HTTP", &http)], of_nodes, &tls, &access);
    refuse(&exposed, node.insecure, errors);
    Config {
        grpc,
        http,
        http_access,
        catalog,
        catalog_copy,
        name,
        peer,
        peer_secrets,
        advertise_clients,
        advertise: node.advertise.map(|text| address("node.advertise", text, errors)),
        allow_not_durable: node.allow_not_durable,
        log: log(node.log, errors),
        log_format: log_format(&node.log_format, errors),
        drain,
        status_age: Duration::from_millis(node.status_age_ms),
        grpc_connections: node.grpc_connections,
        http_connections: node.http_connections,
        peer_connections: node.peer_connections,
        connections_per_address: node.connections_per_address,
        tls,
        traces,
        access,
        exposed,
        mysql_password: mysql_password(secrets.mysql_password, node.mysql_password_file, errors),
        mysql_tls: mysql_tls(&node.mysql_tls, node.mysql_tls_ca_file.is_some(), errors),
        mysql_tls_ca: node.mysql_tls_ca_file.map(|path| tls_ca_file(path, errors)),
        shards,
        forward_bytes: file.memory.forward_bytes,
        rules: RequestRules { limits, namespaces },
        load,
        settings,
    }
}

/// The variable's, or what the file says whenever a connection is made. It must say something now.
fn mysql_password(
    variable: Option<Secret>,
    file: Option<String>,
    errors: &mut Vec<String>,
) -> Option<Password> {
    if let Some(secret) = variable {
        return Some(Password::Text(secret.reveal().to_owned()));
    }
    let path = file?;
    secret_file("node.mysql_password_file", path.clone(), errors).map(|_| Password::File(path.into()))
}

fn connections(keys: &Node, load: &mut LoadLimits, errors: &mut Vec<String>) {
    let timeouts = &mut load.timeouts;
    timeouts.handshake = Duration::from_millis(keys.handshake_timeout_ms);
    timeouts.idle = Duration::from_millis(keys.idle_timeout_ms);
    timeouts.unread = Duration::from_millis(keys.unread_timeout_ms);
    load.body_timeout = Duration::from_millis(keys.body_timeout_ms);
    let second = Duration::from_secs(1);
    for (wrong, message) in [
        (keys.grpc_connections == Some(0), "grpc_connections must not be 0"),
        (keys.http_connections == Some(0), "http_connections must not be 0"),
        (keys.peer_connections == Some(0), "peer_connections must not be 0"),
        (keys.connections_per_address == Some(0), "connections_per_address must not be 0"),
        (timeouts.handshake < second, "handshake_timeout_ms must be at least 1000"),
        (load.body_timeout < second, "body_timeout_ms must be at least 1000"),
        (timeouts.idle < second, "idle_timeout_ms must be at least 1000"),
        (timeouts.unread < second, "unread_timeout_ms must be at least 1000"),
    ] {
        if wrong {
            errors.push(format!("node.{message}"));
        }
    }
}

fn limits(keys: LimitKeys, errors: &mut Vec<String>) -> Limits {
    let limits = Limits {
        payload_bytes: keys.payload_bytes,
        metadata_bytes: keys.metadata_bytes,
        headers: keys.headers,
        header_bytes: keys.header_bytes,
        name_bytes: keys.name_bytes,
        key_bytes: keys.key_bytes,
        reason_bytes: keys.reason_bytes,
        members: keys.members,
        request_bytes: keys.request_bytes,
        demands: keys.demands,
        leased_per_topic: keys.leased_per_topic,
        leased_per_tenant: keys.leased_per_tenant,
        leased_per_shard: keys.leased_per_shard,
        topics_per_namespace: keys.topics_per_namespace,
        span: Duration::from_millis(keys.span_ms),
        lease_min: Duration::from_millis(keys.lease_min_ms),
        lease_max: Duration::from_millis(keys.lease_max_ms),
        lease_default: Duration::from_millis(keys.lease_default_ms),
        attempts_max: keys.attempts_max,
        attempts_default: keys.attempts_default,
        wait_max: Duration::from_millis(keys.wait_max_ms),
        answer_bytes: keys.answer_bytes,
        answer_bytes_max: keys.answer_max_bytes,
    };
    let Limits { lease_min, lease_default, lease_max, .. } = limits;
    let days = Duration::from_secs(366 * 86_400);
    for (wrong, message) in [
        (limits.payload_bytes > limits.request_bytes, "payload_bytes must be at most request_bytes"),
        (limits.request_bytes > 64 << 20, "request_bytes must be at most 64 MiB"),
        (limits.request_bytes == 0, "request_bytes must not be 0"),
        (limits.metadata_bytes > u16::MAX.into(), "metadata_bytes must be at most 65535"),
        (limits.header_bytes > 32 << 10, "header_bytes must be at most 32 KiB"),
        (!(1..=NAME_BYTES_MAX).contains(&limits.name_bytes), "name_bytes must be from 1 to 255"),
        (limits.key_bytes > 1 << 10, "key_bytes must be at most 1 KiB"),
        (limits.reason_bytes > u16::MAX.into(), "reason_bytes must be at most 65535"),
        (!(1..=10_000).contains(&limits.members), "members must be from 1 to 10000"),
        (!(1..=1_000).contains(&limits.demands), "demands must be from 1 to 1000"),
        (limits.leased_per_topic == 0, "leased_per_topic must not be 0"),
        (limits.leased_per_tenant == 0, "leased_per_tenant must not be 0"),
        (limits.leased_per_shard == 0, "leased_per_shard must not be 0"),
        (limits.topics_per_namespace == 0, "topics_per_namespace must not be 0"),
        (limits.span.is_zero() || limits.span > days, "span_ms must be from 1 ms to 366 days"),
        (lease_min.is_zero(), "lease_min_ms must not be 0"),
        (lease_default < lease_min, "lease_default_ms must be at least lease_min_ms"),
        (lease_default > lease_max, "lease_default_ms must be at most lease_max_ms"),
        // Stored as milliseconds in 32 bits.
        (lease_max.as_millis() > u32::MAX.into(), "lease_max_ms must be at most 4294967295"),
        (limits.attempts_default == 0, "attempts_default must not be 0"),
        (limits.attempts_default > limits.attempts_max, "attempts_default must be at most attempts_max"),
        // A call takes at most 30 s, including its long poll.
        (limits.wait_max > Duration::from_secs(29), "wait_max_ms must be at most 29000"),
        (limits.answer_bytes == 0, "answer_bytes must not be 0"),
        (limits.answer_bytes > limits.answer_bytes_max, "answer_bytes must be at most answer_max_bytes"),
        (limits.answer_bytes_max > ANSWER_BYTES_MAX, "answer_max_bytes must be at most 15 MiB"),
    ] {
        if wrong {
            errors.push(format!("limits.{message}"));
        }
    }
    limits
}

/// The rates of connections and of namespaces.
fn call_rates(rates: [u32; 2], load: &mut LoadLimits, errors: &mut Vec<String>) {
    let of = [&mut load.call_rate_per_connection, &mut load.call_rate_per_namespace];
    for ((key, rate), of) in ["connection", "namespace"].into_iter().zip(rates).zip(of) {
        match NonZeroU32::new(rate) {
            Some(rate) => *of = rate,
            None => errors.push(format!("limits.call_rate_per_{key} must not be 0")),
        }
    }
}

fn engine(keys: EngineKeys, settings: &mut Settings, load: &mut LoadLimits, errors: &mut Vec<String>) {
    settings.batch_rows = keys.batch_rows;
    settings.batches_per_server = keys.batches_per_server;
    settings.dedupe_window = Duration::from_millis(keys.dedupe_window_ms);
    settings.dead_letter_retention = Duration::from_millis(keys.dead_letter_retention_ms);
    settings.shard_lease = Duration::from_millis(keys.shard_lease_ms);
    settings.idle_topic = Duration::from_millis(keys.idle_topic_ms);
    settings.polls = keys.polls;
    load.parked_per_connection = keys.polls_per_connection;
    load.calls = keys.calls;
    load.calls_per_connection = keys.calls_per_connection;
    for (wrong, message) in [
        (settings.batch_rows < settings.limits.members, "batch_rows must be at least limits.members"),
        (settings.batches_per_server == 0, "batches_per_server must not be 0"),
        (settings.dedupe_window < Duration::from_secs(1), "dedupe_window_ms must be at least 1000"),
        (settings.shard_lease < Duration::from_millis(500), "shard_lease_ms must be at least 500"),
        (settings.polls == 0, "polls must not be 0"),
        (load.calls == 0, "calls must not be 0"),
        (load.calls_per_connection == 0, "calls_per_connection must not be 0"),
    ] {
        if wrong {
            errors.push(format!("engine.{message}"));
        }
    }
}

fn memory(keys: &MemoryKeys, settings: &mut Settings, load: &mut LoadLimits, errors: &mut Vec<String>) {
    settings.index_bytes = keys.index_bytes;
    settings.topic_bytes = keys.topic_bytes;
    settings.admit_bytes = keys.admit_bytes;
    settings.admit_shard_bytes = keys.admit_shard_bytes;
    settings.admit_tenant_bytes = keys.admit_tenant_bytes;
    load.request_bytes = keys.request_bytes;
    settings.poll_bytes = keys.poll_bytes;
    // Parts of the node's bytes, but room for one request in any case.
    let part = |of: usize| (keys.request_bytes / of).max(settings.limits.request_bytes);
    load.request_bytes_per_connection = keys.request_bytes_per_connection.unwrap_or_else(|| part(8));
    load.request_bytes_per_namespace = keys.request_bytes_per_namespace.unwrap_or_else(|| part(4));
    load.unread_bytes = keys.unsent_bytes;
    load.unread_bytes_per_connection = keys.unsent_bytes_per_connection;
    let request = settings.limits.request_bytes;
    let connection = load.unread_bytes_per_connection;
    for (name, bytes, min, bound) in [
        ("index_bytes", settings.index_bytes, 1 << 20, "1 MiB"),
        ("topic_bytes", settings.topic_bytes, TOPIC_BYTES, "1 KiB"),
        ("admit_bytes", settings.admit_bytes, settings.admit_shard_bytes, "memory.admit_shard_bytes"),
        (
            "admit_shard_bytes",
            settings.admit_shard_bytes,
            settings.admit_tenant_bytes,
            "memory.admit_tenant_bytes",
        ),
        ("admit_tenant_bytes", settings.admit_tenant_bytes, request, "limits.request_bytes"),
        ("request_bytes", load.request_bytes, request * 2, "twice limits.request_bytes"),
        ("request_bytes_per_connection", load.request_bytes_per_connection, request, "limits.request_bytes"),
        ("request_bytes_per_namespace", load.request_bytes_per_namespace, request, "limits.request_bytes"),
        ("poll_bytes", settings.poll_bytes, 1 << 20, "1 MiB"),
        ("forward_bytes", keys.forward_bytes, request, "limits.request_bytes"),
        ("unsent_bytes", load.unread_bytes, connection, "memory.unsent_bytes_per_connection"),
        ("unsent_bytes_per_connection", connection, 1, "1 byte"),
    ] {
        if bytes < min {
            errors.push(format!("memory.{name} is {bytes}; it must be at least {bound} ({min})"));
        }
    }
}

fn namespaces(namespaces: &BTreeMap<String, NamespaceKeys>, limits: &Limits, errors: &mut Vec<String>) {
    let rules = RequestRules { limits: limits.clone(), namespaces: None };
    for name in namespaces.keys() {
        // A name that no request may have.
        if let Err(refusal) = rules.namespace(name) {
            errors.push(format!("namespace.{name:?}: the name {}", refusal.message));
        }
    }
}

fn namespace_settings(
    namespaces: BTreeMap<String, NamespaceKeys>,
    settings: &mut Settings,
    errors: &mut Vec<String>,
) {
    for (name, keys) in namespaces {
        if let Some(window) = keys.dedupe_window_ms.map(Duration::from_millis) {
            if window < Duration::from_secs(1) {
                errors.push(format!("namespace.{name}.dedupe_window_ms must be at least 1000"));
            }
            settings.dedupe_windows.insert(name.clone(), window);
        }
        if let Some(retention) = keys.dead_letter_retention_ms.map(Duration::from_millis) {
            settings.dead_letter_retentions.insert(name, retention);
        }
    }
}

fn shards(listed: Vec<Shard>, has_catalog: bool, errors: &mut Vec<String>) -> Vec<ShardConfig> {
    if listed.is_empty() && !has_catalog {
        errors.push("no [[shard]] is configured; add at least one, or a [catalog]".to_owned());
    }
    let (mut ids, mut databases) = (BTreeSet::new(), BTreeSet::new());
    let mut shards = Vec::with_capacity(listed.len());
    for (index, shard) in listed.into_iter().enumerate() {
        let mut wrong = |message: &str| errors.push(format!("shard[{index}].{message}"));
        let Some(id) = shard.id.filter(|id| *id > 0) else {
            wrong("id must be a number of at least 1");
            continue;
        };
        if !ids.insert(id) {
            wrong(&format!("id {id} is used by another shard"));
        }
        let Some(url) = shard.url else {
            wrong("url is missing");
            continue;
        };
        // Without user and password: two accounts may name one database.
        let database = url.rsplit_once('@').map_or(url.as_str(), |(_, database)| database).to_owned();
        if !databases.insert(database) {
            wrong("url names a database that another shard uses");
        }
        let id = ShardId(id);
        match shard_url(id, &url) {
            // Shards come into the catalog, which keeps no passwords.
            Ok(ShardUrl::MySql(url)) if matches!(check_shard_url(&url), Err(CatalogError::Password)) => {
                wrong("url has a password: put it into node.mysql_password_file, or FOREBAY_MYSQL_PASSWORD")
            }
            Ok(url) => shards.push(ShardConfig { id, url }),
            Err(message) => wrong(&message),
        }
    }
    shards
}

fn log(directives: String, errors: &mut Vec<String>) -> String {
    if let Err(wrong) = log_filter(&directives) {
        errors.push(format!("node.log (or RUST_LOG) is not a valid log filter: {wrong}"));
    }
    directives
}

fn log_format(given: &str, errors: &mut Vec<String>) -> LogFormat {
    match given {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => {
            errors.push("node.log_format must be text or json".to_owned());
            LogFormat::Text
        }
    }
}
