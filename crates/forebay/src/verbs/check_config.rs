//! `forebay check-config`

use std::{io::Write as _, path::PathBuf};

use clap::Args;
use forebay_node::{config::Config, shards};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay check-config --config forebay.toml")]
pub struct CheckConfig {
    /// The configuration file
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
}

impl CheckConfig {
    /// Prints every error, or that the file is valid. Does not connect to any shard.
    pub fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        shards::open(&config).map_err(Failure::from_all)?;
        let (path, count) = (self.config.display(), config.shards.len());
        writeln!(std::io::stdout().lock(), "{path} is valid: {count} shards, gRPC on {}", config.grpc)?;
        Ok(())
    }
}
