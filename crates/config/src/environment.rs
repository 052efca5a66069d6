//! Environment variables that override the file: `FOREBAY_GRPC` for `node.grpc`,
//! `FOREBAY_LIMITS_PAYLOAD_BYTES` for `limits.payload_bytes`, and so on for each key.

use std::{collections::BTreeMap, ffi::OsString};

use forebay_types::nearest;
use toml::{Table, Value};

use super::{file, values::Secret};

/// Starts the name of every variable that is read, but for [`LOG`].
const PREFIX: &str = "FOREBAY_";
/// Overrides `node.log`, as it does in other programs.
const LOG: &str = "RUST_LOG";
/// The variable of a secret.
const MYSQL_PASSWORD: &str = "mysql_password";
/// The variable of the other secret.
const PEER_SECRET: &str = "peer_secret";
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

/// Sections whose unknown keys are refused as keys, if a variable begins with their name.
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
pub(crate) fn overlay(
    table: &mut Table,
    variables: impl IntoIterator<Item = (String, String)>,
    errors: &mut Vec<String>,
) -> Secrets {
    let (mut secrets, mut log) = (Secrets::default(), None);
    let sections = file::sections();
    let keys = sections.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key)));
    let keys: BTreeMap<_, _> =
        keys.filter_map(|(section, key)| Some((section.variable(key)?, (section.name(), key)))).collect();
    for (variable, text) in variables {
        if variable == LOG && !text.is_empty() {
            log = Some(Value::String(text));
            continue;
        }
        let Some(name) = variable.strip_prefix(PREFIX).map(str::to_ascii_lowercase) else { continue };
        if let Some((section, key)) = keys.get(&variable.to_ascii_uppercase()) {
            set(table, section, [(key.name, (key.read)(&text))], errors);
        } else if name == MYSQL_PASSWORD {
            secrets.mysql_password = Some(Secret::new(text));
        } else if name == PEER_SECRET {
            secrets.peer_secret = Some(Secret::new(text));
        } else if let Some((section, key)) =
            name.split_once('_').filter(|(section, _)| SECTIONS.contains(section))
        {
            set(table, section, [(key, Value::String(text))], errors);
        } else if !belongs_to_others(&name, &text) {
            let others = COMMAND_LINE.iter().chain([&MYSQL_PASSWORD, &PEER_SECRET]);
            let others = others.map(|name| format!("{PREFIX}{}", name.to_ascii_uppercase()));
            let known: Vec<_> = keys.keys().cloned().chain(others).collect();
            let near = nearest(&variable, known.iter().map(String::as_str));
            let hint = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            errors.push(format!(
                "unknown environment variable {variable}; `forebay config keys` lists them{hint}"
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
