//! Effects of a server's settings on its commits.
//!
//! Sources: MySQL 9 reference manual on `innodb_flush_log_at_trx_commit`, `innodb_doublewrite`,
//! `innodb_flush_method`, `sync_binlog`, "Disabling redo logging" and "Semisynchronous replication"; MariaDB
//! documentation, "InnoDB system variables" (value 3 of `innodb_flush_log_at_trx_commit`), "Semisynchronous
//! replication" and "Known limitations" of Galera.

use std::collections::BTreeMap;

use super::{connect, product, session::MySqlSession};
use crate::{
    error::StoreError,
    rows::Settings,
    sql::{Session as _, Statement, scalar},
};

/// A semi-synchronous commit with a shorter timeout can become asynchronous within a day.
const NEVER_MS: u64 = 24 * 60 * 60 * 1_000;

/// The variables that matter.
const NAMES: [&str; 19] = [
    "version",
    "max_allowed_packet",
    "max_connections",
    "max_user_connections",
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

/// The most connections of a node to a server, beside those to its shards there.
const CONNECTIONS_OF_NODE: usize = 18;
/// The most connections of a node to one shard.
const CONNECTIONS_OF_SHARD: usize = 6;

/// Reads and assesses the server's settings. `shards`: so many of it this process knows.
pub(super) async fn read(session: &mut MySqlSession, shards: usize) -> Result<Settings, StoreError> {
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')", NAMES.join("','"));
    let mut variables = BTreeMap::new();
    for row in session.fetch(Statement::new(sql, vec![])).await? {
        variables.insert(row.text(0)?, row.text(1)?);
    }
    let minimal = session.with_timeout(async |connection| connect::minimize_binlog(connection).await).await?;
    // Not a variable: MySQL switches it with a statement.
    let redo = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'";
    for row in session.fetch(Statement::new(redo, vec![])).await? {
        variables.insert(row.str(0)?.to_lowercase(), row.text(1)?);
    }
    let variables = Variables(variables);
    product::check(variables.value("version"))?;
    Ok(variables.settings(minimal, shards))
}

/// Fails if the server is too old.
pub(super) async fn check_version(session: &mut MySqlSession) -> Result<(), StoreError> {
    let version = session.fetch(Statement::new("SELECT @@version", vec![])).await?;
    product::check(scalar(version, "the version")?.str(0)?)
}

/// The server's global variables by name.
struct Variables(BTreeMap<String, String>);

impl Variables {
    fn value(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn on(&self, name: &str) -> bool {
        matches!(self.value(name), "ON" | "1")
    }

    fn settings(&self, minimal_row_images: bool, shards: usize) -> Settings {
        let packet = self.value("max_allowed_packet").parse::<usize>().unwrap_or(1 << 20);
        Settings {
            server: product::name(self.value("version")),
            not_durable: self.assess_durability(),
            warnings: [
                self.assess_replication(),
                self.assess_speed(minimal_row_images),
                self.assess_connections(shards),
            ]
            .concat(),
            batch_bytes: packet / 4,
            ..Settings::default()
        }
    }

    /// The settings that may lose an acknowledged commit.
    fn assess_durability(&self) -> Vec<String> {
        let mut not_durable = Vec::new();
        let flush = self.value("innodb_flush_log_at_trx_commit");
        let is_mariadb = self.value("version").contains("-MariaDB");
        if flush != "1" && !(flush == "3" && is_mariadb) {
            not_durable.push(format!(
                "innodb_flush_log_at_trx_commit is {flush}: a crash loses up to a second of commits"
            ));
        }
        let sync = self.value("sync_binlog");
        if self.on("log_bin") && sync != "1" {
            not_durable.push(format!(
                "sync_binlog is {sync}: a crash loses commits from the binary log and from replicas"
            ));
        }
        if self.value("innodb_redo_log_enabled") == "OFF" {
            not_durable.push("the redo log is disabled: a crash loses the whole server".to_owned());
        }
        let doublewrite = self.value("innodb_doublewrite");
        if matches!(doublewrite, "OFF" | "DETECT_ONLY") {
            not_durable
                .push(format!("innodb_doublewrite is {doublewrite}: a page half written in a crash is lost"));
        }
        if self.value("innodb_flush_method") == "nosync" {
            not_durable.push("innodb_flush_method is nosync: a commit does not wait for the disk".to_owned());
        }
        if self.on("wsrep_on") {
            not_durable.push("wsrep_on is ON: Galera loses updates that pass the fence".to_owned());
        }
        if self.on("log_bin") && self.value("binlog_format") == "STATEMENT" {
            not_durable.push(
                "binlog_format is STATEMENT: it does not support READ COMMITTED, so every batch fails"
                    .to_owned(),
            );
        }
        not_durable
    }

    /// The settings with which semi-synchronous replication becomes asynchronous. A server without any
    /// replication is as safe as its disk; one with it is meant to be safer.
    fn assess_replication(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (prefix, wait) in [
            ("rpl_semi_sync_source", "rpl_semi_sync_source_wait_no_replica"),
            ("rpl_semi_sync_master", "rpl_semi_sync_master_wait_no_slave"),
        ] {
            if !self.on(&format!("{prefix}_enabled")) {
                continue;
            }
            let milliseconds = self.value(&format!("{prefix}_timeout"));
            if milliseconds.parse::<u64>().is_ok_and(|milliseconds| milliseconds < NEVER_MS) {
                warnings.push(format!(
                    "{prefix}_timeout is {milliseconds} ms: \
                     after that a commit returns before a replica has it"
                ));
            }
            if self.value(wait) == "OFF" {
                warnings.push(format!("{wait} is OFF: without replicas a commit returns at once"));
            }
        }
        warnings
    }

    /// Limits that a node alone may reach. Then lists and looks take the connection that a shard's owner
    /// needs.
    fn assess_connections(&self, shards: usize) -> Vec<String> {
        let needed = CONNECTIONS_OF_NODE + CONNECTIONS_OF_SHARD * shards;
        let is_short = |name: &&str| {
            // 0: as many as max_connections.
            self.value(name).parse::<usize>().is_ok_and(|limit| limit > 0 && limit < needed)
        };
        let limits = ["max_connections", "max_user_connections"].into_iter().filter(is_short);
        let warning = |name| {
            format!(
                "{name} is {}: a node opens up to {needed} connections here, {CONNECTIONS_OF_NODE} and \
                 {CONNECTIONS_OF_SHARD} for each of {shards} shards, and each further node \
                 {CONNECTIONS_OF_NODE}",
                self.value(name)
            )
        };
        limits.map(warning).collect()
    }

    /// The settings that make commits slower.
    fn assess_speed(&self, minimal_row_images: bool) -> Vec<String> {
        let mut slow = Vec::new();
        if minimal_row_images || !self.on("log_bin") {
            return slow;
        }
        if self.value("binlog_row_image") == "FULL" {
            slow.push(
                "binlog_row_image is FULL and this account may not change it for its sessions: \
                 the binary log receives each deleted item again"
                    .to_owned(),
            );
        }
        if self.on("binlog_annotate_row_events") {
            slow.push(
                "binlog_annotate_row_events is ON and this account may not change it for its sessions: \
                 the binary log also receives the text of each statement, payloads included"
                    .to_owned(),
            );
        }
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let good = [
            ("version", "10.11.14-MariaDB-0+deb12u2"),
            ("max_allowed_packet", "16777216"),
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("binlog_row_image", "MINIMAL"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
        ];
        let all = good.iter().chain(pairs);
        Variables(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_server_with_recommended_settings() {
        let settings = variables(&[]).settings(true, 2);
        assert_eq!(settings.server, "MariaDB 10.11.14");
        assert_eq!((settings.not_durable.len(), settings.warnings.len()), (0, 0));
        assert_eq!(settings.batch_bytes, 4 << 20);
    }

    #[test]
    fn settings_that_may_lose_a_commit_are_named() {
        for (name, value) in [
            ("sync_binlog", "0"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_doublewrite", "DETECT_ONLY"),
            ("innodb_flush_method", "nosync"),
            ("wsrep_on", "ON"),
        ] {
            let settings = variables(&[(name, value)]).settings(true, 2);
            assert_eq!(settings.not_durable.len(), 1, "{name}");
            assert!(settings.not_durable[0].starts_with(name), "{name}");
        }
        let no_redo = [("version", "9.7.0"), ("innodb_redo_log_enabled", "OFF")];
        assert!(variables(&no_redo).settings(true, 2).not_durable[0].contains("the redo log is disabled"));
        // MariaDB's 3 syncs as well; MySQL has no 3.
        let three = ("innodb_flush_log_at_trx_commit", "3");
        assert_eq!(variables(&[three]).settings(true, 2).not_durable.len(), 0);
        assert_eq!(variables(&[three, ("version", "9.7.0")]).settings(true, 2).not_durable.len(), 1);
        let without_log = [("log_bin", "OFF"), ("sync_binlog", "0")];
        assert_eq!(variables(&without_log).settings(true, 2).not_durable.len(), 0);
    }

    #[test]
    fn replication_that_may_stop_waiting_is_a_warning() {
        let falls_back = [("rpl_semi_sync_master_enabled", "ON"), ("rpl_semi_sync_master_timeout", "10000")];
        let settings = variables(&falls_back).settings(true, 2);
        assert_eq!((settings.not_durable.len(), settings.warnings.len()), (0, 1));
        let waits = [("rpl_semi_sync_master_enabled", "ON"), ("rpl_semi_sync_master_timeout", "4294967295")];
        assert_eq!(variables(&waits).settings(true, 2).warnings.len(), 0);
    }

    #[test]
    fn too_few_connections_for_one_node_are_a_warning() {
        for (limits, shards, expected) in [
            (&[("max_connections", "10")][..], 2, &["max_connections is 10: a node opens up to 30 "][..]),
            (&[("max_connections", "30"), ("max_user_connections", "0")], 2, &[]),
            (&[("max_connections", "30")], 3, &["max_connections is 30: a node opens up to 36 "]),
            (
                &[("max_connections", "500"), ("max_user_connections", "20")],
                1,
                &["max_user_connections is 20"],
            ),
        ] {
            let warnings = variables(limits).settings(true, shards).warnings;
            assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
            assert!(
                warnings.iter().zip(expected).all(|(found, begin)| found.starts_with(begin)),
                "{warnings:?}"
            );
        }
    }

    #[test]
    fn full_row_images_are_slow_unless_the_session_can_change_them() {
        let full = variables(&[("binlog_row_image", "FULL"), ("version", "9.7.0")]);
        assert_eq!(full.settings(true, 2).warnings.len(), 0);
        assert_eq!(full.settings(false, 2).warnings.len(), 1);
        assert_eq!(full.settings(false, 2).server, "MySQL 9.7.0");
        let text = variables(&[("binlog_annotate_row_events", "ON")]);
        assert_eq!(text.settings(true, 2).warnings.len(), 0);
        assert!(text.settings(false, 2).warnings[0].starts_with("binlog_annotate_row_events is ON"));
    }
}
