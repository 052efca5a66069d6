//! `forebay health`

use clap::Args;

use crate::{failure::Failure, http_get};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay health
  forebay health --http queue1:7421 --alive")]
pub struct Health {
    /// The node's HTTP address
    #[arg(long, default_value = "127.0.0.1:7421", value_name = "HOST:PORT")]
    http: String,
    /// Ask only whether the process lives, not whether it can serve
    #[arg(long)]
    alive: bool,
}

impl Health {
    /// Succeeds if the node is ready. For the health checks of containers and scripts.
    pub async fn run(self) -> Result<(), Failure> {
        let path = if self.alive { "/healthz" } else { "/readyz" };
        http_get::get(&self.http, path).await.map(drop)
    }
}
