//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::database::Database;

/// Measures Forebay against the baseline (the same database without a queue) and against other queues. All of
/// them run on this machine, in turn, in temporary folders that are removed at the end. Set TMPDIR to a
/// folder on a real disk.
#[derive(Debug, Parser)]
#[command(name = "forebay-bench")]
pub struct Arguments {
    /// The measurement.
    #[command(subcommand)]
    pub command: Command,
    /// How to measure.
    #[command(flatten)]
    pub options: Options,
}

/// Measurement to make.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Enqueue, dequeue and ack at the same time.
    Lifecycle,
    /// Enqueue only.
    Enqueue {
        /// Items to enqueue in each turn.
        #[arg(long, default_value_t = 300_000)]
        items: u64,
    },
    /// Dequeue and ack a backlog, whose exact order is checked.
    Drain {
        /// Items to drain in each turn.
        #[arg(long, default_value_t = 300_000)]
        items: u64,
    },
    /// Single items at a fixed rate to waiting consumers. Latency counts from the time at which an item was
    /// due to be sent.
    Latency {
        /// Items per second.
        #[arg(long, default_value_t = 1_000)]
        rate: u32,
    },
    /// The lifecycle on an empty queue, on a backlog of less urgent items, and on a backlog of equal items.
    Backlog {
        /// Items in the backlog.
        #[arg(long, default_value_t = 5_000_000)]
        items: u64,
    },
    /// The lifecycle with increasing numbers of topics, of active ones and by the prefix of all.
    Topics {
        /// Numbers of topics, separated by commas.
        #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
        counts: Vec<u32>,
    },
    /// The lifecycle with increasing numbers of shards.
    Shards {
        /// Numbers of shards, separated by commas.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16])]
        counts: Vec<u32>,
    },
    /// The lifecycle at several nodes on a database server: with each topic at one node, with calls at any
    /// node, with all consumers at one node, with calls as answers propose, and at one node alone. Default
    /// shards: two a node.
    Cluster {
        /// Number of nodes.
        #[arg(long, default_value_t = 3)]
        nodes: u32,
    },
    /// Items with a delivery time, and how late they are delivered.
    Delay {
        /// Items per second that become due.
        #[arg(long, default_value_t = 5_000)]
        rate: u32,
    },
    /// The lifecycle with one item per call and many calls in flight.
    Singles {
        /// Calls in flight, half of them by producers.
        #[arg(long, default_value_t = 128)]
        in_flight: u32,
    },
    /// The cost of an idle node.
    Idle {
        /// Topics, each with one item that is never dequeued.
        #[arg(long, default_value_t = 10_000)]
        waiting: u32,
        /// Pause between the last enqueue and the measurement.
        #[arg(long, default_value = "3s", value_parser = humantime::parse_duration)]
        settle: Duration,
    },
    /// Cost of a turn of the engine's event loop, over a store that does nothing, against the numbers of
    /// shards, topics, waiting polls, queued enqueues and open leases. Fails if a turn takes over 5 ms.
    Turn,
    /// Everything that docs/PERFORMANCE.md sets a target for, with a verdict on each target.
    Targets {
        /// Only targets whose title contains this text.
        #[arg(long)]
        only: Option<String>,
    },
    /// List the other queues and whether they can be measured on this machine.
    #[command(alias = "peers")]
    OtherQueues,
}

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Database of Forebay and of the baseline: sqlite, mariadb, mariadb-nobinlog, mysql, mysql-nobinlog.
    #[arg(long, global = true, default_value = "mariadb")]
    pub database: Database,
    /// Shards of Forebay, tables of the baseline [default: 2, or 16 for idle]
    #[arg(long, global = true)]
    pub shards: Option<u32>,
    /// Candidates to compare with Forebay: baseline, none, all, or names of other queues. The baseline runs
    /// with the batch size of the run and with batches of 500, in scenarios that measure throughput.
    #[arg(long, global = true, value_delimiter = ',', default_value = "baseline")]
    pub against: Vec<String>,
    /// Rounds. Each candidate has one turn per round.
    #[arg(long, global = true, default_value_t = 3)]
    pub rounds: u32,
    /// Measured time of a turn.
    #[arg(long, global = true, default_value = "8s", value_parser = humantime::parse_duration)]
    pub measured: Duration,
    /// Unmeasured time at the start of a turn; at least 4 s for latency.
    #[arg(long, global = true, default_value = "2s", value_parser = humantime::parse_duration)]
    pub warm_up: Duration,
    /// Seed of all random values.
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Bytes per payload.
    #[arg(long, global = true, default_value_t = 256)]
    pub item_bytes: usize,
    /// Items per call.
    #[arg(long, global = true, default_value_t = 100)]
    pub batch: usize,
    /// Number of topics.
    #[arg(long, global = true, default_value_t = 10)]
    pub topics: u32,
    /// Number of priorities.
    #[arg(long, global = true, default_value_t = 8)]
    pub priorities: u8,
    /// Tasks that enqueue, each with one call in flight.
    #[arg(long, global = true, default_value_t = 32)]
    pub producers: u32,
    /// Tasks that dequeue and ack, each with one call in flight.
    #[arg(long, global = true, default_value_t = 32)]
    pub consumers: u32,
    /// Maximum number of items in the queue: producers wait when it is reached.
    #[arg(long, alias = "room", global = true, default_value_t = 40_000)]
    pub max_queued: usize,
    /// Buffer pool of a database server, in MiB.
    #[arg(long, global = true, default_value_t = 1_024)]
    pub pool_mib: u32,
    /// Additional flag of the database server, such as --sync-binlog=0. May be repeated. The report shows the
    /// resulting settings. Forebay then also serves if commits may be lost.
    #[arg(long = "server-flag", value_name = "FLAG", global = true, allow_hyphen_values = true)]
    pub server_flags: Vec<String>,
    /// Also report the database server's time by statement, which slows the server down a little.
    #[arg(long, global = true)]
    pub by_statement: bool,
    /// The forebay program to measure [default: built from this workspace]
    #[arg(long, global = true)]
    pub forebay: Option<PathBuf>,
    /// Also write the results to this file as JSON.
    #[arg(long, global = true)]
    pub json: Option<PathBuf>,
    /// Also write the results to this file as an HTML page with plots.
    #[arg(long, global = true)]
    pub html: Option<PathBuf>,
}
