//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::database::Database;

/// Measures Forebay against the floor of its database and against other queues, all on this machine and in
/// turn. Everything it starts runs in temporary folders (TMPDIR, which should be on a real disk) and ends with it.
#[derive(Debug, Parser)]
#[command(name = "forebay-bench")]
pub struct Arguments {
    /// What to measure.
    #[command(subcommand)]
    pub verb: Verb,
    /// How.
    #[command(flatten)]
    pub options: Options,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Enqueue, dequeue and ack all at once.
    Lifecycle,
    /// Items that go in.
    Enqueue {
        /// How many a turn.
        #[arg(long, default_value_t = 300_000)]
        items: u64,
    },
    /// A backlog that is taken out, in exact order.
    Drain {
        /// How many a turn.
        #[arg(long, default_value_t = 300_000)]
        items: u64,
    },
    /// Single items at a fixed rate to waiting consumers, from the moment each was meant to be sent.
    Latency {
        /// Items a second.
        #[arg(long, default_value_t = 1_000)]
        rate: u32,
    },
    /// The lifecycle empty, on top of less urgent items that wait, and on top of items like its own.
    Backlog {
        /// How many wait.
        #[arg(long, default_value_t = 5_000_000)]
        items: u64,
    },
    /// The lifecycle over a growing number of topics.
    Topics {
        /// How many topics.
        #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
        counts: Vec<u32>,
    },
    /// The lifecycle over a growing number of shards.
    Shards {
        /// How many shards.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16])]
        counts: Vec<u32>,
    },
    /// Items that are due later, and how late they come.
    Delay {
        /// Items a second that become due.
        #[arg(long, default_value_t = 5_000)]
        rate: u32,
    },
    /// The lifecycle of one item a call, with many calls under way.
    Singles {
        /// Calls under way.
        #[arg(long, default_value_t = 128)]
        in_flight: u32,
    },
    /// What a node costs that has nothing to do.
    Idle {
        /// Topics, each with an item that nobody asks for.
        #[arg(long, default_value_t = 10_000)]
        waiting: u32,
        /// How long the node is left alone after the last item before it is measured.
        #[arg(long, default_value = "3s", value_parser = humantime::parse_duration)]
        settle: Duration,
    },
    /// Everything that docs/PERFORMANCE.md has a target for, with the verdicts.
    Targets {
        /// Only those whose title contains this.
        #[arg(long)]
        only: Option<String>,
    },
    /// Which other queues can take part here.
    Peers,
}

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Where Forebay and the floor keep their items: sqlite, mariadb, mariadb-nobinlog, mysql, mysql-nobinlog.
    #[arg(long, global = true, default_value = "mariadb")]
    pub database: Database,
    /// Shards of Forebay, tables of the floor. By default 2; idle has 16.
    #[arg(long, global = true)]
    pub shards: Option<u32>,
    /// Who is compared with Forebay: floor (in its batches and in batches of 500, where the scenario is about
    /// throughput), none, all, or names of peers.
    #[arg(long, global = true, value_delimiter = ',', default_value = "floor")]
    pub against: Vec<String>,
    /// Rounds; each contestant has one turn in each.
    #[arg(long, global = true, default_value_t = 3)]
    pub rounds: u32,
    /// The measured part of a turn.
    #[arg(long, global = true, default_value = "8s", value_parser = humantime::parse_duration)]
    pub measured: Duration,
    /// What goes before it, unmeasured; at least 4 s for latency.
    #[arg(long, global = true, default_value = "2s", value_parser = humantime::parse_duration)]
    pub warm_up: Duration,
    /// All that is random follows from it.
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Bytes of a payload.
    #[arg(long, global = true, default_value_t = 256)]
    pub item_bytes: usize,
    /// Items a call.
    #[arg(long, global = true, default_value_t = 100)]
    pub batch: usize,
    /// Topics.
    #[arg(long, global = true, default_value_t = 10)]
    pub topics: u32,
    /// Priorities.
    #[arg(long, global = true, default_value_t = 8)]
    pub priorities: u8,
    /// Tasks that enqueue, each with one call under way.
    #[arg(long, global = true, default_value_t = 32)]
    pub producers: u32,
    /// Tasks that dequeue and ack, each with one call under way.
    #[arg(long, global = true, default_value_t = 32)]
    pub consumers: u32,
    /// Items in the queue at most.
    #[arg(long, global = true, default_value_t = 40_000)]
    pub room: usize,
    /// The buffer pool of database servers, in MiB.
    #[arg(long, global = true, default_value_t = 1_024)]
    pub pool_mib: u32,
    /// A further flag of database servers, such as --sync-binlog=0; may be repeated. What they say of the usual
    /// settings is printed with the result, and Forebay is told to serve although commits may be lost.
    #[arg(long = "server-flag", value_name = "FLAG", global = true, allow_hyphen_values = true)]
    pub server_flags: Vec<String>,
    /// Also tell where the database server spends its time, by statement. It costs the server some.
    #[arg(long, global = true)]
    pub by_statement: bool,
    /// The program to measure; by default it is built from this workspace.
    #[arg(long, global = true)]
    pub forebay: Option<PathBuf>,
    /// Also writes the results to this file, as JSON.
    #[arg(long, global = true)]
    pub json: Option<PathBuf>,
    /// Also writes the results to this file, as a page with plots.
    #[arg(long, global = true)]
    pub html: Option<PathBuf>,
}
