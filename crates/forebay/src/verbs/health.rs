//! `forebay health`

use clap::Args;

use super::tls_flags::TlsFlags;
use crate::{failure::Failure, http_get::HttpPort, token_flags::TokenFlags};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay health
  forebay health --http queue1:7421 --alive
  forebay health --http https://localhost:7421 --ca ca.crt --server-name queue1")]
pub struct Health {
    /// The node's HTTP address, as host:port, http://host:port or https://host:port
    #[arg(long, env = "FOREBAY_HEALTH_HTTP", default_value = "127.0.0.1:7421", value_name = "ADDRESS")]
    http: String,
    /// Ask only whether the process lives, not whether it can serve
    #[arg(long)]
    alive: bool,
    /// TLS, if the node uses it.
    #[command(flatten)]
    tls: TlsFlags,
    /// Credentials, if nodes ask for them.
    #[command(flatten)]
    token: TokenFlags,
}

impl Health {
    /// Succeeds if the node is ready. For the health checks of containers and scripts.
    pub async fn run(self) -> Result<(), Failure> {
        let path = if self.alive { "/healthz" } else { "/readyz" };
        HttpPort::new(&self.http, &self.tls.config()?, &self.token)?.get(path).await.map(drop)
    }
}
