//! `forebay check-config`

use std::{io::Write as _, path::PathBuf};

use clap::Args;
use forebay_node::{config::Config, shards};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
pub struct CheckConfig {
    /// The configuration
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
}

impl CheckConfig {
    /// Says everything that is wrong, or that nothing is. Connects to nothing.
    pub fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        shards::open(&config).map_err(Failure::from_all)?;
        let (path, count) = (self.config.display(), config.shards.len());
        writeln!(std::io::stdout().lock(), "{path} is right: {count} shards, gRPC on {}", config.grpc)?;
        Ok(())
    }
}
