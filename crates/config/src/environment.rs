//! Environment variables that override the file: `FOREBAY_GRPC` for `node.grpc`,
//! `FOREBAY_LIMITS_PAYLOAD_BYTES` for `limits.payload_bytes`, and so on for `TLS`, `ACCESS`, `TRACES`,
//! `ENGINE`, `MEMORY` and `METRICS`;
//! `FOREBAY_HTTP_HOSTS`, `FOREBAY_HTTP_CORS_ORIGINS`, `FOREBAY_HTTP_TRUSTED_PROXIES` and
//! `FOREBAY_HTTP_GRAFANA` for those of `[http]`.

use std::ffi::OsString;

use forebay_types::nearest;
use toml::{Table, Value};

use super::values::Secret;

/// Starts the name of every variable that is read, but for [`LOG`].
const PREFIX: &str = "FOREBAY_";
/// Overrides `node.log`, as it does in other programs.
const LOG: &str = "RUST_LOG";
/// The keys of `[http]` that variables set, as lists with commas.
const HTTP_KEYS: [&str; 3] = ["hosts", "cors_origins", "trusted_proxies"];
/// The key of `[access]` whose variable does not name the section.
const BOOTSTRAP: &str = "bootstrap_token_file";
/// The variable of `http.grafana`, the one key of its section that is no list.
const GRAFANA: &str = "http_grafana";
/// The variable of `traces.ratio`, the one key that is no whole number.
const RATIO: &str = "traces_ratio";
/// Variables of the command line.
const COMMAND_LINE: [&str; 12] = [
    "addr",
    "context",
    "namespace",
    "config",
    "ca",
    "cert",
    "key",
    "server_name",
    "health_http",
    "token",
    "token_file",
    "client_insecure",
];
/// Variables of tests and their tools.
const DEVELOPMENT: [&str; 4] = ["bin", "test_", "e2e_", "sim_"];

/// The keys of `[node]` that variables set.
const NODE_KEYS: [&str; 25] = [
    "grpc",
    "http",
    "advertise",
    "advertise_clients",
    "name",
    "peer",
    "peer_secret_file",
    "allow_not_durable",
    "insecure",
    "log",
    "log_format",
    "drain_ms",
    "strict_namespaces",
    "grpc_connections",
    "http_connections",
    "peer_connections",
    "connections_per_address",
    "handshake_timeout_ms",
    "body_timeout_ms",
    "status_age_ms",
    "idle_timeout_ms",
    "unread_timeout_ms",
    "mysql_password_file",
    "mysql_tls_ca_file",
    "mysql_tls",
];

/// Other variables that are read.
const OTHERS: [&str; 8] = [
    "mysql_password",
    "peer_secret",
    BOOTSTRAP,
    "http_hosts",
    "http_cors_origins",
    "http_trusted_proxies",
    GRAFANA,
    "metrics_topics",
];

/// Sections whose keys are set by variables that begin with their name.
const SECTIONS: [&str; 8] = ["tls", "traces", "access", "limits", "engine", "memory", "metrics", "catalog"];

/// A variable whose name and value are text. All of ours are.
pub fn text((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// Secrets, which have no key.
#[derive(Default)]
pub struct Secrets {
    /// The password of the MySQL accounts.
    pub mysql_password: Option<Secret>,
    /// The secret that nodes of the cluster show each other.
    pub peer_secret: Option<Secret>,
}

/// Sets the keys that variables name. Returns the secrets.
pub fn overlay(
    table: &mut Table,
    variables: impl IntoIterator<Item = (String, String)>,
    errors: &mut Vec<String>,
) -> Secrets {
    let (mut secrets, mut log) = (Secrets::default(), None);
    for (variable, text) in variables {
        if variable == LOG && !text.is_empty() {
            log = Some(Value::String(text));
            continue;
        }
        let Some(name) = variable.strip_prefix(PREFIX).map(str::to_ascii_lowercase) else { continue };
        if name == "mysql_password" {
            secrets.mysql_password = Some(Secret::new(text));
        } else if name == "peer_secret" {
            secrets.peer_secret = Some(Secret::new(text));
        } else if name == BOOTSTRAP {
            set(table, "access", [(BOOTSTRAP, Value::String(text))], errors);
        } else if NODE_KEYS.contains(&name.as_str()) {
            set(table, "node", [(name.as_str(), value(&text))], errors);
        } else if let Some(key) = name.strip_prefix("http_").filter(|key| HTTP_KEYS.contains(key)) {
            set(table, "http", [(key, list(&text))], errors);
        } else if name == GRAFANA {
            set(table, "http", [("grafana", Value::String(text))], errors);
        } else if name == "metrics_topics" {
            set(table, "metrics", [("topics", list(&text))], errors);
        } else if name == RATIO {
            set(table, "traces", [("ratio", decimal(&text))], errors);
        } else if let Some((section, key)) =
            name.split_once('_').filter(|(section, _)| SECTIONS.contains(section))
        {
            set(table, section, [(key, value(&text))], errors);
        } else if !belongs_to_others(&name, &text) {
            let known = NODE_KEYS.iter().chain(&COMMAND_LINE).chain(&OTHERS);
            let known: Vec<String> =
                known.map(|name| format!("{PREFIX}{}", name.to_ascii_uppercase())).collect();
            let near = nearest(&variable, known.iter().map(String::as_str));
            let hint = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            errors.push(format!(
                "unknown environment variable {variable}; FOREBAY_LOG sets node.log, \
                 FOREBAY_LIMITS_MEMBERS sets limits.members, and so on for [tls], [traces], [engine] and \
                 [memory]{hint}"
            ));
        }
    }
    set(table, "node", log.map(|log| ("log", log)), errors);
    secrets
}

/// Whether a variable is not for a node. Kubernetes describes each service of a namespace in variables, which
/// begin with `FOREBAY_` if the service's name does.
fn belongs_to_others(name: &str, text: &str) -> bool {
    let of_a_service = name.contains("service_host") || name.contains("service_port");
    let of_a_port = name == "port" || name.starts_with("port_") || name.contains("_port_");
    let of_a_port = of_a_port || text.starts_with("tcp://") || text.starts_with("udp://");
    let of_tests = DEVELOPMENT.iter().any(|prefix| name.starts_with(prefix));
    COMMAND_LINE.contains(&name) || of_tests || of_a_service || of_a_port
}

/// Puts values into a section.
pub fn set<'a>(
    table: &mut Table,
    section: &str,
    values: impl IntoIterator<Item = (&'a str, Value)>,
    errors: &mut Vec<String>,
) {
    for (key, value) in values {
        match table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(section) => drop(section.insert(key.to_owned(), value)),
            _ => errors.push(format!("{section} must be a section")),
        }
    }
}

/// The texts between the commas.
fn list(text: &str) -> Value {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    Value::Array(entries.map(|entry| Value::String(entry.to_owned())).collect())
}

/// A number, else a string, which the key then refuses.
fn decimal(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::String(text.to_owned()), Value::Float)
}

/// An integer or a boolean if the text is one, else a string.
fn value(text: &str) -> Value {
    match (text.parse(), text.parse()) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(boolean)) => Value::Boolean(boolean),
        _ => Value::String(text.to_owned()),
    }
}
