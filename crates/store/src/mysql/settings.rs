//! What a server's settings mean for what it commits.

use std::collections::BTreeMap;

use super::{connect, session::MySqlSession};
use crate::{
    Settings, StoreError,
    sql::{Session as _, Statement},
};

/// A semi-synchronous commit that waits for less falls back to an asynchronous one within a day.
const NEVER_MS: u64 = 24 * 60 * 60 * 1_000;

const NAMES: [&str; 17] = [
    "version",
    "max_allowed_packet",
    "log_bin",
    "sync_binlog",
    "binlog_format",
    "binlog_row_image",
    "binlog_annotate_row_events",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_flush_method",
    "rpl_semi_sync_source_enabled",
    "rpl_semi_sync_source_timeout",
    "rpl_semi_sync_source_wait_no_replica",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_master_timeout",
    "rpl_semi_sync_master_wait_no_slave",
    "wsrep_on",
];

pub(super) async fn look(session: &mut MySqlSession) -> Result<Settings, StoreError> {
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')", NAMES.join("','"));
    let mut variables = BTreeMap::new();
    for row in session.fetch(Statement::new(sql, vec![])).await? {
        variables.insert(row.text(0)?, row.text(1)?);
    }
    let minimal = session.with_timeout(async |connection| connect::minimize_binlog(connection).await).await?;
    Ok(assess_durability(&variables, minimal))
}

fn assess_durability(variables: &BTreeMap<String, String>, minimal_row_images: bool) -> Settings {
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    let on = |name: &str| matches!(value(name), "ON" | "1");
    let mut not_durable = Vec::new();
    let flush = value("innodb_flush_log_at_trx_commit");
    if flush != "1" {
        not_durable.push(format!(
            "innodb_flush_log_at_trx_commit is {flush}: a crash loses up to a second of commits"
        ));
    }
    if on("log_bin") && value("sync_binlog") != "1" {
        let sync = value("sync_binlog");
        not_durable.push(format!(
            "sync_binlog is {sync}: a crash loses commits from the binary log and from replicas"
        ));
    }
    if value("innodb_doublewrite") == "OFF" {
        not_durable.push("innodb_doublewrite is OFF: a page half written in a crash is lost".to_owned());
    }
    if value("innodb_flush_method") == "nosync" {
        not_durable.push("innodb_flush_method is nosync: nothing waits for the disk".to_owned());
    }
    for (enabled, timeout, wait) in [
        (
            "rpl_semi_sync_source_enabled",
            "rpl_semi_sync_source_timeout",
            "rpl_semi_sync_source_wait_no_replica",
        ),
        (
            "rpl_semi_sync_master_enabled",
            "rpl_semi_sync_master_timeout",
            "rpl_semi_sync_master_wait_no_slave",
        ),
    ] {
        if !on(enabled) {
            continue;
        }
        if value(timeout).parse::<u64>().is_ok_and(|milliseconds| milliseconds < NEVER_MS) {
            let milliseconds = value(timeout);
            not_durable.push(format!(
                "{timeout} is {milliseconds} ms: after that a commit returns before a replica has it"
            ));
        }
        if value(wait) == "OFF" {
            not_durable.push(format!("{wait} is OFF: without replicas a commit returns at once"));
        }
    }
    if on("wsrep_on") {
        not_durable.push("wsrep_on is ON: Galera loses updates that pass the fence".to_owned());
    }
    if on("log_bin") && value("binlog_format") == "STATEMENT" {
        not_durable.push(
            "binlog_format is STATEMENT: it can't carry READ COMMITTED, and every batch fails".to_owned(),
        );
    }
    let mut slow = Vec::new();
    if on("log_bin") && value("binlog_row_image") == "FULL" && !minimal_row_images {
        slow.push(
            "binlog_row_image is FULL and this account may not change it for its sessions: \
             each removed item is written to the binary log once more"
                .to_owned(),
        );
    }
    if on("log_bin") && on("binlog_annotate_row_events") && !minimal_row_images {
        slow.push(
            "binlog_annotate_row_events is ON and this account may not change it for its sessions: \
             the text of each statement, payloads included, is written to the binary log too"
                .to_owned(),
        );
    }
    let version = value("version");
    let server = match version.split_once("-MariaDB") {
        Some((number, _)) => format!("MariaDB {number}"),
        None => format!("MySQL {version}"),
    };
    let packet = value("max_allowed_packet").parse::<usize>().unwrap_or(1 << 20);
    Settings { server, not_durable, slow, batch_bytes: packet / 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let good = [
            ("version", "10.11.14-MariaDB-0+deb12u2"),
            ("max_allowed_packet", "16777216"),
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("binlog_row_image", "MINIMAL"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
        ];
        good.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_server_as_it_should_be() {
        let settings = assess_durability(&variables(&[]), true);
        assert_eq!(settings.server, "MariaDB 10.11.14");
        assert_eq!((settings.not_durable.len(), settings.slow.len()), (0, 0));
        assert_eq!(settings.batch_bytes, 4 << 20);
    }

    #[test]
    fn what_may_lose_a_commit_is_named() {
        for (name, value) in [
            ("sync_binlog", "0"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("wsrep_on", "ON"),
        ] {
            let settings = assess_durability(&variables(&[(name, value)]), true);
            assert_eq!(settings.not_durable.len(), 1, "{name}");
            assert!(settings.not_durable[0].starts_with(name), "{name}");
        }
        let falls_back = [("rpl_semi_sync_master_enabled", "ON"), ("rpl_semi_sync_master_timeout", "10000")];
        assert_eq!(assess_durability(&variables(&falls_back), true).not_durable.len(), 1);
        let waits = [("rpl_semi_sync_master_enabled", "ON"), ("rpl_semi_sync_master_timeout", "4294967295")];
        assert_eq!(assess_durability(&variables(&waits), true).not_durable.len(), 0);
        let without_log = [("log_bin", "OFF"), ("sync_binlog", "0")];
        assert_eq!(assess_durability(&variables(&without_log), true).not_durable.len(), 0);
    }

    #[test]
    fn whole_row_images_are_slow_where_they_can_not_be_helped() {
        let full = variables(&[("binlog_row_image", "FULL"), ("version", "9.7.0")]);
        assert_eq!(assess_durability(&full, true).slow.len(), 0);
        assert_eq!(assess_durability(&full, false).slow.len(), 1);
        assert_eq!(assess_durability(&full, false).server, "MySQL 9.7.0");
        let text = variables(&[("binlog_annotate_row_events", "ON")]);
        assert_eq!(assess_durability(&text, true).slow.len(), 0);
        assert!(assess_durability(&text, false).slow[0].starts_with("binlog_annotate_row_events is ON"));
    }
}
