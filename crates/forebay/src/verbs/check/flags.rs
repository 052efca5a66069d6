//! The flags that all checks share.

use clap::{Args, ValueEnum};

use crate::{parse, verbs::connection::Connection};

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// One document
    Json,
    /// One line with performance data, as Nagios and Icinga read it
    Nagios,
    /// Gauges, for the textfile collector of the node exporter
    Prometheus,
}

/// The servers, the thresholds, and the format.
#[derive(Args)]
pub struct CheckFlags {
    /// Which servers are asked.
    #[command(flatten)]
    pub connection: Connection,
    /// Warn beyond these values, as age=60s,ready=1000; `--help` of each check lists its figures
    #[arg(long, value_name = "FIGURE=VALUE", value_delimiter = ',', value_parser = parse::pair)]
    pub warn: Vec<(String, String)>,
    /// It is critical beyond these
    #[arg(long, value_name = "FIGURE=VALUE", value_delimiter = ',', value_parser = parse::pair)]
    pub critical: Vec<(String, String)>,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Form,
}
