//! The flags of `forebay worker`.

use std::{ffi::OsString, time::Duration};

use clap::Args;

use crate::{failure::Failure, verbs::servers::Servers};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay worker --topic mail -- ./send-mail
  forebay worker --topic urgent --topic mail --concurrency 8 --timeout 5m -- python3 work.py --fast
  forebay worker --topic mail --shell 'gunzip | ./import'
  forebay worker --topic mail --idle-exit 30s -- ./send-mail

The command gets the payload on its stdin and facts about the item as FOREBAY_… in its environment.
Exit status 0 acks the item, 65 and 100 make it a dead letter, 126 and 127 release it twice, others
and signals retry it later. See docs/CLI.md.")]
pub struct Worker {
    /// Which servers are called, and for whom.
    #[command(flatten)]
    pub servers: Servers,
    /// The topic to work on, or 'calls/*' for all that begin with calls/; may be given several times
    #[arg(long = "topic", required = true, value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// Commands that run at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub concurrency: u32,
    /// How long an item stays with this worker if the worker dies. Leases are extended while commands run
    #[arg(long, value_parser = humantime::parse_duration, default_value = "30s", value_name = "TIME")]
    pub lease: Duration,
    /// The worker's name, stored with each lease for operators [default: worker and its process id]
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// Exit statuses that make an item a dead letter
    #[arg(long, value_delimiter = ',', default_value = "65,100", value_name = "STATUS")]
    pub dead_letter_on: Vec<u8>,
    /// Exit statuses that mean that an item is done
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "STATUS")]
    pub ack_on: Vec<u8>,
    /// How long an item that failed once is not delivered; doubled by each further failure
    #[arg(long, value_parser = humantime::parse_duration, default_value = "5s", value_name = "TIME")]
    pub retry_delay: Duration,
    /// The longest of these delays
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10m", value_name = "TIME")]
    pub retry_max: Duration,
    /// How long the command may take for an item; then it is stopped, and the item is retried [default: as
    /// long as it wants]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// How long a command that is told to stop (SIGTERM) has until it is killed
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10s", value_name = "TIME")]
    pub kill_after: Duration,
    /// How long commands may go on after SIGTERM or SIGINT to this worker; a second signal ends all at once
    #[arg(long, value_parser = humantime::parse_duration, default_value = "20s", value_name = "TIME")]
    pub grace: Duration,
    /// End after so many items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_items: Option<u64>,
    /// End after one item
    #[arg(long, conflicts_with = "max_items")]
    pub once: bool,
    /// End when no item came for so long, and the servers say that they have none
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub idle_exit: Option<Duration>,
    /// Say nothing of single items
    #[arg(short, long)]
    pub quiet: bool,
    /// A line for the shell (`sh -c`) in place of a command
    #[arg(long, value_name = "LINE", conflicts_with = "command")]
    shell: Option<String>,
    /// The command and its arguments, as they are
    #[arg(last = true, required_unless_present = "shell", value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Worker {
    /// The program and its arguments.
    pub fn command(&self) -> Result<Vec<OsString>, Failure> {
        if self.lease < Duration::from_secs(1) {
            return Err(Failure::usage("--lease: it must be at least 1s"));
        }
        match &self.shell {
            Some(line) => Ok(["sh", "-c", line].map(OsString::from).to_vec()),
            None => Ok(self.command.clone()),
        }
    }

    /// Returns the name of this worker that operators see.
    pub fn consumer_name(&self) -> String {
        self.consumer.clone().unwrap_or_else(|| format!("worker-{}", std::process::id()))
    }
}
