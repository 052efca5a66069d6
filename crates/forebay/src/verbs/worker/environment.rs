//! Environment of a command, which tells it of its item.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use forebay_client::{ReceivedItem, Timestamp};
#[cfg(target_os = "linux")]
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::process::Command;

use crate::output;

/// Parts of names of variables that the command does not inherit: secrets of this process.
const SECRETS: [&str; 3] = ["TOKEN", "SECRET", "PASSWORD"];
/// Variables of an item that not every item has. Another worker may have set them for this one.
const OF_SOME_ITEMS: [&str; 2] = ["FOREBAY_LEASE_EXPIRES_AT", "TRACEPARENT"];
/// Starts the names of variables for headers.
const HEADER: &str = "FOREBAY_HEADER_";
/// The header with a trace's context, as the W3C names it.
const TRACE: &str = "traceparent";

/// Keeps commands, which run as the same user, from reading the secrets of this process in `/proc`.
pub fn hide() {
    #[cfg(target_os = "linux")]
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "commands can read the environment of this worker");
    }
}

/// Sets the variables of an item.
pub fn set(command: &mut Command, namespace: &str, item: &ReceivedItem, result_file: &Path) {
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        let is_secret = SECRETS.iter().any(|part| name.contains(part));
        if name.starts_with("FOREBAY_") && is_secret || name.starts_with(HEADER) {
            command.env_remove(name);
        }
    }
    for name in OF_SOME_ITEMS {
        command.env_remove(name);
    }
    let time = |at: Timestamp| output::Style::iso().time(at);
    command
        .env("FOREBAY_ITEM_ID", &item.item_id)
        .env("FOREBAY_TOPIC", &item.topic)
        .env("FOREBAY_NAMESPACE", namespace)
        .env("FOREBAY_PRIORITY", item.priority.to_string())
        .env("FOREBAY_ATTEMPT", item.attempt.to_string())
        .env("FOREBAY_FAILURES", item.failures.to_string())
        .env("FOREBAY_ENQUEUED_AT", time(item.enqueued_at))
        .env("FOREBAY_METADATA_BASE64", STANDARD.encode(&item.metadata))
        .env("FOREBAY_RESULT_FILE", result_file);
    if let Some(end) = item.lease_expires_at {
        command.env("FOREBAY_LEASE_EXPIRES_AT", time(end));
    }
    command.envs(headers(item));
    if let Some(context) = item.headers.get(TRACE).filter(|context| is_trace_context(context)) {
        command.env("TRACEPARENT", context);
    }
}

/// The variables for the headers. Two headers may have one name there; the first in their order has it.
fn headers(item: &ReceivedItem) -> Vec<(String, &str)> {
    let mut headers: Vec<_> = item.headers.iter().collect();
    headers.sort_unstable();
    headers.reverse();
    // No variable can have a NUL in it. A later one of the same name replaces an earlier one.
    headers.retain(|(_, value)| !value.contains('\0'));
    headers.into_iter().map(|(name, value)| (format!("{HEADER}{}", variable(name)), value.as_str())).collect()
}

/// A name with nothing but `A-Z0-9_`.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// Whether a text has the form of a trace's context. It comes from whoever enqueued the item.
fn is_trace_context(text: &str) -> bool {
    let sizes = [2, 32, 16, 2];
    let parts: Vec<_> = text.split('-').collect();
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    parts.len() == sizes.len()
        && parts.iter().zip(sizes).all(|(part, size)| part.len() == size && is_hex(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers_become_names_of_variables() {
        assert_eq!(variable("x-Tenant.id/\u{e4}"), "X_TENANT_ID__");
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_trace_context(good) && !is_trace_context(&good[1..]) && !is_trace_context("x"));
        assert!(!is_trace_context(&good.replace('f', "\n")));
    }
}
