//! `forebay check`: one thing, compared with thresholds, for monitoring.

mod certificate;
mod cluster;
mod figures;
mod flags;
mod report;
mod topic;

use std::io::{self, Write as _};

use clap::{Args, Subcommand};

use super::severity::Severity;
use crate::failure::Failure;
use figures::{Limits, Spec};
use flags::CheckFlags;
use report::Report;

/// The flags.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  forebay check topic mail --warn age=60s,ready=1000 --critical age=5m,dead=100 --format nagios
  forebay check cluster
  forebay check certificate --addr https://queue1:7420 --ca ca.crt --warn days=30 --critical days=7"
)]
pub struct Check {
    /// The check.
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// How old and how many the items of a topic are
    Topic(topic::Topic),
    /// Whether all nodes live and all shards are served
    Cluster(cluster::Cluster),
    /// How long the certificates of servers are still valid
    Certificate(certificate::Certificate),
}

impl Check {
    /// Checks. Whatever goes wrong is "unknown", as monitoring expects it.
    pub async fn run(self) -> Result<(), Failure> {
        let (name, specs, checking) = match &self.what {
            What::Topic(it) => ("topic", topic::FIGURES, &it.checking),
            What::Cluster(it) => ("cluster", cluster::FIGURES, &it.checking),
            What::Certificate(it) => ("certificate", certificate::FIGURES, &it.checking),
        };
        let limits =
            limits(specs, checking).map_err(|failure| failure.with_code(Severity::Unknown.code()))?;
        let seen = match &self.what {
            What::Topic(it) => topic::look(it).await,
            What::Cluster(it) => cluster::look(it).await,
            What::Certificate(it) => certificate::look(it).await,
        };
        let report = match seen {
            Ok(seen) => Report::of(name, seen, specs, &limits),
            Err(failure) => Report::unknown(name, failure.text()),
        };
        io::stdout().lock().write_all(report.print(checking.format).as_bytes())?;
        report.severity.end()
    }
}

/// The thresholds. Those of figures that neither flag names have their defaults.
fn limits(specs: &[Spec], checking: &CheckFlags) -> Result<Limits, Failure> {
    Limits::read(specs, &checking.warn, &checking.critical)
}
