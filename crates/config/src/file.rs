//! The keys of `forebay.toml`, as written.

use std::collections::BTreeMap;

use forebay_access::toml_message;
use forebay_edge::admission::LoadLimits;
use forebay_engine::{ReportedTopics, Settings};
use forebay_types::{Limits, instead};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::keys::{KeyType, Section, ms, section};

/// The whole file. Absent keys have their defaults.
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

section! {
    /// The process.
    Node as "[node]" {
        let load = LoadLimits::default();
        /// The gRPC address, `host:port`.
        grpc: String = "127.0.0.1:7420".to_owned(),
        /// The HTTP address: every call as JSON, `/`, `/login`, `/status.json`, `/metrics`, `/healthz`,
        /// `/readyz`.
        http: String = "127.0.0.1:7421".to_owned(),
        /// The address at which other nodes reach this one. With it other nodes can join: the `peer` port
        /// opens, and there must be a secret. By default the `peer` address; for `0.0.0.0` the host's name
        /// and that port.
        advertise: Option<String>,
        /// The address at which clients reach this node. By default the gRPC address.
        advertise_clients: Option<String>,
        /// The node's name in its cluster. By default the host's name.
        name: Option<String>,
        /// The address for other nodes of the cluster. It opens once there is a secret.
        peer: String = "127.0.0.1:7422".to_owned(),
        /// Holds the secret that the nodes of a cluster share, as its first line; or `FOREBAY_PEER_SECRET`
        /// does. Without it the node is the only one. Further lines are taken from other nodes too, [while it
        /// is changed](OPERATE.md#several-nodes).
        peer_secret_file: Option<String>,
        /// Serve even if a database may lose commits.
        allow_not_durable: bool,
        /// Serve other machines even without `[tls]` or `[access]`, and other nodes on other machines without
        /// TLS.
        insecure: bool,
        /// The log filter, as in `info,forebay_engine=debug`. `RUST_LOG` overrides it.
        // Anybody can make HTTP/2 warn of what they send, as often as they like.
        log: String = "info,h2=error".to_owned(),
        /// `text`, or `json` for machines.
        log_format: String = "text".to_owned(),
        /// How long a stopping node still serves, so that load balancers notice (at most 15000).
        drain_ms: u64 = 5_000,
        /// How many connections the gRPC port has, if `ulimit -n` allows. One that has shown no credential
        /// makes room for those that come. By default as many as `ulimit -n` allows, up to 8192.
        grpc_connections: Option<usize>,
        /// The same of the HTTP port. Calls over HTTP leave an eighth of them for operators, and probes have
        /// places of their own. By default an eighth of what `ulimit -n` leaves, up to 1024.
        http_connections: Option<usize>,
        /// The same of the `peer` port. By default an eighth of what `ulimit -n` leaves, up to 256.
        peer_connections: Option<usize>,
        /// How many connections without a credential an address has at each port
        /// ([SECURITY.md](SECURITY.md#connections)). `trusted_proxies` lists balancers for which it does not
        /// hold. By default a quarter of each port's.
        connections_per_address: Option<usize>,
        /// A connection whose TLS handshake is not done by then is closed, as is one on which no credential
        /// was accepted in as long after it. The head of an HTTP request has as long.
        handshake_timeout_ms: u64 = ms(load.timeouts.handshake),
        /// A request of which nothing arrives for so long is ended.
        body_timeout_ms: u64 = ms(load.body_timeout),
        /// How old the figures on `/`, `/metrics` and `/status.json` may be.
        status_age_ms: u64 = 1_000,
        /// A gRPC connection without a call for so long is closed.
        idle_timeout_ms: u64 = ms(load.timeouts.idle),
        /// A gRPC connection whose client does not read its answers for so long is closed.
        unread_timeout_ms: u64 = ms(load.timeouts.unread),
        /// Accept only namespaces that have a section.
        strict_namespaces: bool,
        /// Holds the password of the MySQL accounts; or `FOREBAY_MYSQL_PASSWORD` does.
        mysql_password_file: Option<String>,
        /// Whether connections to the database servers are encrypted: `auto` if the server can, `required`,
        /// `off`.
        mysql_tls: String = "auto".to_owned(),
        /// The certificate authority of the database servers. Their certificates and names are verified.
        mysql_tls_ca_file: Option<String>,
    }
}

section! {
    /// With `tokens_file`, `catalog_tokens` or `[[access.certificate]]` each call needs a token or a
    /// certificate with the right for it ([SECURITY.md](SECURITY.md#access)).
    AccessKeys as "[access]" {
        /// The file of tokens, which `forebay token create --tokens-file` makes.
        tokens_file: Option<String>,
        /// Accept tokens of the catalog.
        catalog_tokens: bool,
        /// A file with the text of the first token of the catalog.
        bootstrap_token_file: Option<String>,
        /// The entries `[[access.certificate]]`.
        certificate: Vec<CertificateKeys>,
    }
}

section! {
    /// Rights of the holder of a certificate, one entry each.
    CertificateKeys as "[[access.certificate]]" {
        /// The name in the certificate: its first URI, or else its first DNS name.
        san: Option<String>,
        /// Rights in namespaces, as in `team-*:produce`.
        grants: Option<Vec<String>>,
    }
}

section! {
    /// Certificates, all files as PEM ([SECURITY.md](SECURITY.md)).
    TlsKeys as "[tls]" {
        /// The certificate of the gRPC and the HTTP port, with those between it and its authority. Without it
        /// and its key these ports have no TLS.
        cert_file: Option<String>,
        /// Its key.
        key_file: Option<String>,
        /// The authorities of clients' certificates.
        client_ca_file: Option<String>,
        /// Whether clients show a certificate: `off`, `optional`, `required`. By default `required` with
        /// `client_ca_file`, else `off`.
        client_auth: Option<String>,
        /// The certificate that the node shows other nodes, with those between it and its authority. Without
        /// it, its key and the authorities there is no TLS between nodes.
        peer_cert_file: Option<String>,
        /// Its key.
        peer_key_file: Option<String>,
        /// The authorities of nodes.
        peer_ca_file: Option<String>,
        /// A DNS name that every node's certificate has. By default the host in the address of the node that
        /// is called.
        peer_name: Option<String>,
    }
}

section! {
    /// The catalog of the cluster. `forebay migrate` makes it, and adds the shards of the file to it; on
    /// SQLite a node makes it at its first start.
    Catalog as "[catalog]" {
        /// The database, as in `mysql://forebay@db1:3306/forebay_catalog`. By default beside the `[[shard]]`
        /// with the lowest id: the file `catalog.db` in the same folder, or a schema at the same server with
        /// `_catalog` behind the name (`forebay_0001_catalog`).
        url: Option<String>,
        /// A file of the node's own, in which it keeps what the catalog says, to
        /// [start with it](OPERATE.md#starting-without-the-catalog) while the catalog is away.
        copy_file: Option<String>,
    }
}

section! {
    /// Shards that `forebay migrate` adds to the catalog, one entry each.
    Shard as "[[shard]]" {
        /// Part of every item's id, so it must never change.
        id: Option<u32>,
        /// The database, as in `mysql://forebay@db1:3306/forebay_0001` or
        /// `sqlite:///var/lib/forebay/0001.db`. It has no password.
        url: Option<String>,
    }
}

section! {
    /// Rules of the HTTP port.
    HttpKeys as "[http]" {
        /// Further names by which the HTTP port may be called. Always allowed: IP addresses, `localhost`, the
        /// host's name, and the names in `http`, `advertise` and `advertise_clients`. `*.example.com` allows
        /// all names that end so. Other names get 421, but for `/healthz` and `/readyz`.
        hosts: Vec<String>,
        /// Origins whose web pages may make calls, such as `https://app.example.com`. Other pages can't.
        cors_origins: Vec<String>,
        /// Addresses and networks of proxies, such as `10.0.0.0/8`, whose `X-Forwarded-For` says where
        /// requests come from. `connections_per_address` does not hold for them, at no port.
        trusted_proxies: Vec<String>,
        /// The target of links for long history, such as
        /// `https://grafana.example.com/d/forebay?var-namespace={namespace}&var-topic={topic}`. Pages without
        /// a topic or a namespace insert `$__all`.
        grafana: Option<String>,
    }
}

section! {
    /// Topics with [metrics](METRICS.md) of their own.
    MetricsKeys as "[metrics]" {
        let reported = ReportedTopics::default();
        /// Names as `shop/orders`, or how they begin, as in `shop/*`.
        topics: Vec<String> = reported.patterns,
        /// The most of them: the first that the node sees (at most 10000).
        topics_max: usize = reported.most,
    }
}

section! {
    /// The collector of spans.
    TraceKeys as "[traces]" {
        /// A collector that takes OTLP over gRPC, such as `http://collector:4317`. With `https://` its
        /// certificate is checked. Without an endpoint there are no spans.
        endpoint: Option<String>,
        /// The authorities that the collector's certificate may be of, as PEM. By default those of the
        /// system.
        ca_file: Option<String>,
        /// A file with headers of each request to the collector, such as `authorization: Bearer …`, one a
        /// line.
        headers_file: Option<String>,
        /// The share of calls without a trace of their own that begin one. A call with a `traceparent` is
        /// recorded if its caller's span is.
        ratio: f64 = 0.01,
    }
}

section! {
    /// Bounds on what calls may ask for ([PROTOCOL.md](PROTOCOL.md#limits)).
    LimitKeys as "[limits]" {
        let limits = Limits::default();
        let load = LoadLimits::default();
        /// The most bytes of a payload.
        payload_bytes: usize = limits.payload_bytes,
        /// The most bytes of an item's metadata.
        metadata_bytes: usize = limits.metadata_bytes,
        /// The most headers of an item.
        headers: usize = limits.headers,
        /// The most bytes of an item's headers together.
        header_bytes: usize = limits.header_bytes,
        /// The most bytes of a topic or namespace.
        name_bytes: usize = limits.name_bytes,
        /// The most bytes of a dedupe key, request id or consumer.
        key_bytes: usize = limits.key_bytes,
        /// The most bytes of a nack's reason.
        reason_bytes: usize = limits.reason_bytes,
        /// The most members of a call.
        members: usize = limits.members,
        /// The most bytes of a request.
        request_bytes: usize = limits.request_bytes,
        /// The most topics of a dequeue.
        demands: usize = limits.demands,
        /// The most leased items of a topic in a shard.
        leased_per_topic: usize = limits.leased_per_topic,
        /// The most leased items of a namespace in a shard.
        leased_per_tenant: usize = limits.leased_per_tenant,
        /// The most leased items of a shard.
        leased_per_shard: usize = limits.leased_per_shard,
        /// The most topics of a namespace.
        topics_per_namespace: usize = limits.topics_per_namespace,
        /// The most calls a second over one connection. After a pause those of a second may come at once.
        call_rate_per_connection: u32 = load.call_rate_per_connection.get(),
        /// The most calls a second for one namespace at the node, in the same way.
        call_rate_per_namespace: u32 = load.call_rate_per_namespace.get(),
        /// The longest delay and ttl.
        span_ms: u64 = ms(limits.span),
        /// The shortest lease.
        lease_min_ms: u64 = ms(limits.lease_min),
        /// The longest lease.
        lease_max_ms: u64 = ms(limits.lease_max),
        /// The lease of an item that names none.
        lease_default_ms: u64 = ms(limits.lease_default),
        /// The largest `max_attempts`.
        attempts_max: u32 = limits.attempts_max,
        /// The `max_attempts` of an item that names none.
        attempts_default: u32 = limits.attempts_default,
        /// The longest long poll.
        wait_max_ms: u64 = ms(limits.wait_max),
        /// Bytes of items in an answer to a dequeue without `max_bytes`.
        answer_bytes: usize = limits.answer_bytes,
        /// The largest `max_bytes` of a dequeue.
        answer_max_bytes: usize = limits.answer_bytes_max,
    }
}

section! {
    /// How the engine works.
    EngineKeys as "[engine]" {
        let settings = Settings::default();
        let load = LoadLimits::default();
        /// Rows of one commit.
        batch_rows: usize = settings.batch_rows,
        /// Commits in flight at one database server before the small batches of its other shards wait. On a
        /// quick server fewer small ones are in flight.
        batches_per_server: usize = settings.batches_per_server,
        /// How long dedupe keys and request ids are remembered.
        dedupe_window_ms: u64 = ms(settings.dedupe_window),
        /// How long dead letters are kept; 0: for ever.
        dead_letter_retention_ms: u64 = ms(settings.dead_letter_retention),
        /// How long a silent owner keeps a shard.
        shard_lease_ms: u64 = ms(settings.shard_lease),
        /// How long memory keeps a topic without items.
        idle_topic_ms: u64 = ms(settings.idle_topic),
        /// Long polls that may wait at the node. Over it a dequeue is rejected.
        polls: usize = settings.polls,
        /// Long polls that may wait on one connection. Over it a dequeue does not wait.
        polls_per_connection: usize = load.parked_per_connection,
        /// Calls being served at the node.
        calls: usize = load.calls,
        /// Calls being served on one connection.
        calls_per_connection: usize = load.calls_per_connection,
    }
}

section! {
    /// How much memory is used.
    MemoryKeys as "[memory]" {
        let settings = Settings::default();
        let load = LoadLimits::default();
        /// Ready index and cached bodies of all shards.
        index_bytes: usize = settings.index_bytes,
        /// Topics: 1 KiB for each topic in each shard in which it has items. Over it, items of new topics are
        /// rejected.
        topic_bytes: usize = settings.topic_bytes,
        /// Enqueues that wait for their commit, in all. One tenant has at most a quarter.
        admit_bytes: usize = settings.admit_bytes,
        /// The same in a shard. Acks, nacks and extensions may take as much again. Items on their way to a
        /// consumer may take as much of one tenant in a shard, and twice that of all.
        admit_shard_bytes: usize = settings.admit_shard_bytes,
        /// The same of one tenant in a shard. Acks, nacks and extensions may take as much again.
        admit_tenant_bytes: usize = settings.admit_tenant_bytes,
        /// Requests being received or served.
        request_bytes: usize = load.request_bytes,
        /// The same on one connection. By default an eighth of `request_bytes`.
        request_bytes_per_connection: Option<usize>,
        /// The same of one namespace. By default a quarter of `request_bytes`.
        request_bytes_per_namespace: Option<usize>,
        /// Long polls that wait. One namespace has at most a quarter.
        poll_bytes: usize = settings.poll_bytes,
        /// Calls on their way to one other node that owns their shard. One namespace has at most a quarter.
        forward_bytes: usize = 64 << 20,
        /// Answers that clients have not read yet. Over it, calls are rejected on connections that hold more
        /// than their part of a quarter of it.
        unsent_bytes: usize = load.unread_bytes,
        /// The same on one connection. Over it, further calls there are rejected.
        unsent_bytes_per_connection: usize = load.unread_bytes_per_connection,
    }
}

section! {
    /// Differences of one namespace.
    NamespaceKeys as "[namespace.NAME]" {
        /// Replaces `dedupe_window_ms` of `[engine]`.
        dedupe_window_ms: Option<u64>,
        /// Replaces `dead_letter_retention_ms` of `[engine]`.
        dead_letter_retention_ms: Option<u64>,
    }
}

/// Every section, in the order of the page.
pub fn sections() -> [Section; 13] {
    [
        Node::section(),
        AccessKeys::section(),
        CertificateKeys::section(),
        TlsKeys::section(),
        Catalog::section(),
        Shard::section(),
        HttpKeys::section(),
        MetricsKeys::section(),
        TraceKeys::section(),
        LimitKeys::section(),
        EngineKeys::section(),
        MemoryKeys::section(),
        NamespaceKeys::section(),
    ]
}

impl KeyType for Vec<CertificateKeys> {
    fn shown(&self, _: &str) -> String {
        String::new()
    }

    fn read(text: &str) -> Value {
        String::read(text)
    }
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
    let mut names: Vec<_> = sections().iter().map(Section::name).collect();
    names.dedup();
    for key in table.keys() {
        errors.push(format!("unknown key {key}; the sections: {}", instead(key, names.iter().copied())));
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
