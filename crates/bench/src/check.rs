//! What the command line must not ask for, said before anything is built or started.

use std::{fs::File, ops::RangeInclusive, path::Path};

use anyhow::{Context as _, bail, ensure};

use crate::{
    args::{Options, Verb},
    database::Database,
    peers,
};

/// A node serves so many shards here at most.
const SHARDS: RangeInclusive<u32> = 1..=64;
/// A payload names its topic in three bytes.
const TOPICS: RangeInclusive<u32> = 1..=1 << 24;

/// Refuses what can't be measured, or would not be what it seems.
pub fn check(verb: &Verb, options: &Options) -> anyhow::Result<()> {
    ensure!((1..=1_000).contains(&options.batch), "--batch: a call has 1 to 1,000 items");
    ensure!((1..=100).contains(&options.priorities), "--priorities: 1 to 100");
    ensure!(TOPICS.contains(&options.topics), "--topics: at least 1");
    ensure!(options.producers > 0 && options.consumers > 0, "--producers and --consumers: at least 1");
    ensure!(options.rounds > 0, "--rounds: at least 1");
    ensure!(options.room >= options.batch, "--room: at least one batch");
    ensure!(!options.measured.is_zero(), "--measured: more than nothing");
    ensure!(options.shards.is_none_or(|shards| SHARDS.contains(&shards)), "--shards: 1 to 64");
    if !options.server_flags.is_empty() {
        let sqlite = options.database == Database::Sqlite;
        ensure!(!sqlite, "--server-flag: SQLite is embedded, there is no server");
        let targets = matches!(verb, Verb::Targets { .. });
        ensure!(!targets, "--server-flag: the targets are about the usual settings");
    }
    match verb {
        Verb::Latency { rate } | Verb::Delay { rate } => ensure!(*rate > 0, "--rate: at least 1"),
        Verb::Enqueue { items } | Verb::Drain { items } => ensure!(*items > 0, "--items: at least 1"),
        Verb::Topics { counts } => {
            ensure!(counts.iter().all(|count| TOPICS.contains(count)), "--counts: at least 1");
        }
        Verb::Shards { counts } => {
            ensure!(counts.iter().all(|count| SHARDS.contains(count)), "--counts: 1 to 64 each");
        }
        Verb::Singles { in_flight } => ensure!(*in_flight >= 2, "--in-flight: at least 2, one each way"),
        Verb::Idle { waiting, .. } => ensure!(TOPICS.contains(waiting), "--waiting: at least 1"),
        Verb::Lifecycle | Verb::Backlog { .. } | Verb::Targets { .. } | Verb::Peers => {}
    }
    against(verb, &options.against)?;
    for (option, path) in [("--json", &options.json), ("--html", &options.html)] {
        if let Some(path) = path {
            writable(path).with_context(|| format!("{option}: {}", path.display()))?;
        }
    }
    Ok(())
}

/// Peers are named where they can take part, and nowhere else.
fn against(verb: &Verb, names: &[String]) -> anyhow::Result<()> {
    let why_not = match verb {
        Verb::Lifecycle
        | Verb::Enqueue { .. }
        | Verb::Drain { .. }
        | Verb::Latency { .. }
        | Verb::Singles { .. }
        | Verb::Peers => None,
        Verb::Delay { .. } => Some("delay is measured without peers, which hold no items until a time"),
        Verb::Backlog { .. } | Verb::Topics { .. } | Verb::Shards { .. } | Verb::Idle { .. } => {
            Some("this compares Forebay with itself")
        }
        Verb::Targets { .. } => Some("the targets say themselves who takes part"),
    };
    for name in names.iter().map(String::as_str) {
        if matches!(name, "floor" | "none") {
            continue;
        }
        let known = name == "all" || peers::NAMES.contains(&name);
        ensure!(known, "--against: no such peer: {name:?} (floor, none, all, {})", peers::NAMES.join(", "));
        if let Some(why) = why_not {
            bail!("--against {name}: {why}");
        }
    }
    Ok(())
}

/// What took hours is not lost to a folder that is not there. A file that is there stays as it is.
fn writable(path: &Path) -> std::io::Result<()> {
    File::options().create(true).append(true).open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Arguments;

    fn said(line: &str) -> String {
        let words = ["forebay-bench"].into_iter().chain(line.split(' '));
        let arguments = Arguments::try_parse_from(words).unwrap();
        check(&arguments.verb, &arguments.options).map_or_else(|why| format!("{why:#}"), |()| String::new())
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
        ] {
            assert_eq!(said(line), "", "{line}");
        }
    }

    #[test]
    fn peers_are_refused_where_they_have_no_part() {
        assert!(said("delay --against nats").contains("hold no items until a time"));
        assert!(said("delay --against all").contains("hold no items until a time"));
        assert!(said("topics --against foqs").contains("with itself"));
        assert!(said("targets --against foqs").contains("who takes part"));
        assert!(said("lifecycle --against kafka").contains("no such peer: \"kafka\""));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        for line in [
            "lifecycle --batch 0",
            "lifecycle --measured 0s",
            "lifecycle --room 99",
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
            assert!(said(line).starts_with("--"), "{line}: {}", said(line));
        }
    }
}
