//! Rejects a command line that cannot be measured before anything is built or started.

use std::{fs::File, ops::RangeInclusive, path::Path};

use anyhow::{Context as _, bail, ensure};

use crate::{
    args::{Command, Options},
    database::Database,
    other_queues,
};

/// Numbers of shards that one node serves here.
const SHARDS: RangeInclusive<u32> = 1..=64;
/// Numbers of nodes that run here.
const NODES: RangeInclusive<u32> = 2..=16;
/// A payload stores its topic in three bytes.
const TOPICS: RangeInclusive<u32> = 1..=1 << 24;

/// Fails if the options contradict each other or cannot be measured.
pub fn validate(command: &Command, options: &Options) -> anyhow::Result<()> {
    validate_options(options)?;
    if !options.server_flags.is_empty() {
        let sqlite = options.database == Database::Sqlite;
        ensure!(!sqlite, "--server-flag: SQLite is embedded and has no server; choose another --database");
        let targets = matches!(command, Command::Targets { .. });
        ensure!(!targets, "--server-flag: the targets are defined for the usual settings only");
    }
    match command {
        Command::Latency { rate } | Command::Delay { rate } => {
            ensure!(*rate > 0, "--rate: must be at least 1");
        }
        Command::Enqueue { items } | Command::Drain { items } => {
            ensure!(*items > 0, "--items: must be at least 1");
        }
        Command::Topics { counts } => {
            ensure!(
                counts.iter().all(|count| TOPICS.contains(count)),
                "--counts: each must be 1 to {}",
                TOPICS.end()
            );
        }
        Command::Shards { counts } => {
            ensure!(counts.iter().all(|count| SHARDS.contains(count)), "--counts: each must be 1 to 64");
        }
        Command::Cluster { nodes } => {
            ensure!(NODES.contains(nodes), "--nodes: must be 2 to 16");
            let sqlite = options.database == Database::Sqlite;
            ensure!(!sqlite, "cluster: nodes share a database server; choose another --database");
        }
        Command::Singles { in_flight } => {
            ensure!(*in_flight >= 2, "--in-flight: must be at least 2, one producer and one consumer");
        }
        Command::Idle { waiting, .. } => {
            ensure!(TOPICS.contains(waiting), "--waiting: must be 1 to {}", TOPICS.end());
        }
        Command::Lifecycle
        | Command::Backlog { .. }
        | Command::Turn
        | Command::Targets { .. }
        | Command::OtherQueues => {}
    }
    validate_against(command, &options.against)?;
    for (option, path) in [("--json", &options.json), ("--html", &options.html)] {
        if let Some(path) = path {
            check_writable(path).with_context(|| format!("{option}: cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

fn validate_options(options: &Options) -> anyhow::Result<()> {
    ensure!((1..=1_000).contains(&options.batch), "--batch: must be 1 to 1,000 items per call");
    ensure!((1..=100).contains(&options.priorities), "--priorities: must be 1 to 100");
    ensure!(TOPICS.contains(&options.topics), "--topics: must be 1 to {}", TOPICS.end());
    ensure!(options.producers > 0 && options.consumers > 0, "--producers, --consumers: must be at least 1");
    ensure!(options.rounds > 0, "--rounds: must be at least 1");
    ensure!(options.max_queued >= options.batch, "--max-queued: must be at least one --batch");
    ensure!(!options.measured.is_zero(), "--measured: must be longer than 0 s");
    ensure!(options.shards.is_none_or(|shards| SHARDS.contains(&shards)), "--shards: must be 1 to 64");
    Ok(())
}

/// Other queues may be named only with commands that can measure them.
fn validate_against(command: &Command, names: &[String]) -> anyhow::Result<()> {
    let unsupported = match command {
        Command::Lifecycle
        | Command::Enqueue { .. }
        | Command::Drain { .. }
        | Command::Latency { .. }
        | Command::Singles { .. }
        | Command::OtherQueues
        | Command::Turn => None,
        Command::Delay { .. } => Some("delay measures Forebay only: the other queues cannot delay items"),
        Command::Backlog { .. }
        | Command::Topics { .. }
        | Command::Shards { .. }
        | Command::Cluster { .. }
        | Command::Idle { .. } => Some("this command compares Forebay with itself"),
        Command::Targets { .. } => Some("each target defines its own candidates"),
    };
    for name in names.iter().map(String::as_str) {
        if matches!(name, "baseline" | "none") {
            continue;
        }
        let known = name == "all" || other_queues::NAMES.contains(&name);
        ensure!(
            known,
            "--against: unknown queue {name:?}; use baseline, none, all or one of {}",
            other_queues::NAMES.join(", ")
        );
        if let Some(reason) = unsupported {
            bail!("--against {name}: {reason}");
        }
    }
    Ok(())
}

/// A run of hours must not fail because its report cannot be written. An existing file is left unchanged.
fn check_writable(path: &Path) -> std::io::Result<()> {
    File::options().create(true).append(true).open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Arguments;

    fn error_of(line: &str) -> String {
        let words = ["forebay-bench"].into_iter().chain(line.split(' '));
        let arguments = Arguments::try_parse_from(words).unwrap();
        validate(&arguments.command, &arguments.options)
            .map_or_else(|why| format!("{why:#}"), |()| String::new())
    }

    #[test]
    fn what_can_be_measured_passes() {
        for line in [
            "lifecycle",
            "lifecycle --against all",
            "latency --against rabbitmq-priority,postgres",
            "delay",
            "delay --against none",
            "idle --waiting 10",
            "lifecycle --server-flag=--sync-binlog=0 --server-flag --innodb-flush-log-at-trx-commit=2",
            "targets",
            "other-queues",
        ] {
            assert_eq!(error_of(line), "", "{line}");
        }
    }

    #[test]
    fn other_queues_are_refused_where_they_cannot_be_measured() {
        assert!(error_of("delay --against nats").contains("cannot delay items"));
        assert!(error_of("delay --against all").contains("cannot delay items"));
        assert!(error_of("topics --against foqs").contains("with itself"));
        assert!(error_of("targets --against foqs").contains("its own candidates"));
        assert!(error_of("lifecycle --against kafka").contains("unknown queue \"kafka\""));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        for line in [
            "lifecycle --batch 0",
            "lifecycle --measured 0s",
            "lifecycle --max-queued 99",
            "latency --rate 0",
            "delay --rate 0",
            "drain --items 0",
            "shards --counts 1,0",
            "topics --counts 0",
            "singles --in-flight 1",
            "lifecycle --database sqlite --server-flag=--sync-binlog=0",
            "targets --server-flag=--sync-binlog=0",
            "lifecycle --json /no/such/folder/report.json",
        ] {
            assert!(error_of(line).starts_with("--"), "{line}: {}", error_of(line));
        }
    }
}
