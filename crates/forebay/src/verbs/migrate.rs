//! `forebay migrate`

use std::{io::Write as _, path::PathBuf};

use clap::Args;
use forebay_node::{config::Config, shards};

use crate::{failure::Failure, log};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay migrate --config forebay.toml")]
pub struct Migrate {
    /// The configuration file
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
}

impl Migrate {
    /// Creates or upgrades the schema of every shard. If one fails, the others are still migrated.
    pub async fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        log::start(&config)?;
        let mut failures = Vec::new();
        let shards = shards::open(&config).map_err(Failure::from_all)?;
        for (id, migrated) in shards::migrate(&shards).await.map_err(Failure::from_all)? {
            let line = match migrated {
                Ok(applied) if applied.is_empty() => format!("shard {id}: up to date"),
                Ok(applied) => {
                    let versions: Vec<_> = applied.iter().map(u32::to_string).collect();
                    format!("shard {id}: applied {}", versions.join(", "))
                }
                Err(error) => {
                    failures.push(format!("shard {id}: {error}"));
                    continue;
                }
            };
            writeln!(std::io::stdout().lock(), "{line}")?;
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::from_all(failures)) }
    }
}
