//! `forebay migrate`

use std::{io::Write as _, path::PathBuf};

use clap::Args;
use forebay_config::Config;
use forebay_operators::{cluster, shards};

use crate::{failure::Failure, log};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay migrate --config forebay.toml
  forebay migrate --catalog --config forebay.toml")]
pub struct Migrate {
    /// The configuration file
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
    /// Only the catalog: not the shards
    #[arg(long)]
    catalog: bool,
}

impl Migrate {
    /// Creates or upgrades the schemas of the catalog and of every shard. Shards that the
    /// configuration lists come into the catalog. If one shard fails, the others are still migrated.
    pub async fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        log::start(&config)?;
        let cluster = cluster::migrate(&config).await.map_err(Failure::from_display)?;
        writeln!(std::io::stdout().lock(), "catalog: {}", done(&cluster.applied))?;
        for (ids, what) in
            [(&cluster.added, "added to the catalog"), (&cluster.moved, "its address has changed")]
        {
            for id in ids {
                writeln!(std::io::stdout().lock(), "shard {id}: {what}")?;
            }
        }
        if self.catalog {
            return Ok(());
        }
        let mut failures = Vec::new();
        let shards = shards::open_these(&config, &cluster.shards).map_err(Failure::from_all)?;
        for (id, migrated) in shards::migrate(&shards, cluster.cluster).await {
            let line = match migrated {
                Ok(applied) => format!("shard {id}: {}", done(&applied)),
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

/// Tells the result for a schema.
fn done(applied: &[u32]) -> String {
    if applied.is_empty() {
        return "up to date".to_owned();
    }
    let versions: Vec<_> = applied.iter().map(u32::to_string).collect();
    format!("applied {}", versions.join(", "))
}
