//! `forebay serve`

use std::path::PathBuf;

use clap::Args;
use forebay_config::Config;

use super::run::{self, Hangups, ShutdownSignals};
use crate::{failure::Failure, log};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay serve --config forebay.toml
  forebay serve --config forebay.toml --grpc 0.0.0.0:7420 --advertise queue1:7422")]
pub struct Serve {
    /// The configuration file
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
    /// Where to serve gRPC; overrides node.grpc
    #[arg(long, value_name = "HOST:PORT")]
    grpc: Option<String>,
    /// Where to serve HTTP; overrides node.http
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Where other nodes reach this one; overrides node.advertise
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Serve even on a database that may lose answered commits
    #[arg(long)]
    allow_not_durable: bool,
}

impl Serve {
    /// Serves until a signal.
    pub async fn run(self) -> Result<(), Failure> {
        let (signals, hangups) = (ShutdownSignals::listen()?, Hangups::listen()?);
        let given = [("grpc", self.grpc), ("http", self.http), ("advertise", self.advertise)];
        let mut flags: Vec<_> =
            given.into_iter().filter_map(|(key, text)| Some((key, toml::Value::String(text?)))).collect();
        if self.allow_not_durable {
            flags.push(("allow_not_durable", true.into()));
        }
        let config = Config::load(&self.config, flags.clone())?;
        log::start(&config)?;
        let again = || Config::load(&self.config, flags.clone());
        run::run(vec![config], signals, async |nodes, signals| {
            hangups.until_signal(nodes, signals, again).await
        })
        .await
    }
}
