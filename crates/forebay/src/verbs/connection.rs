//! The flags that verbs with a call share.

use std::time::Duration;

use clap::Args;
use forebay_client::{Client, ClientConfig};

use super::servers::Servers;
use crate::failure::Failure;

/// How long an address may not answer at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Advice about a server that is not there.
const NOBODY: &str = "; start one (try `forebay dev`), or name another with --addr or FOREBAY_ADDR";

/// The servers, and how patiently they are called.
#[derive(Args)]
pub struct Connection {
    /// Which servers are called, and for whom.
    #[command(flatten)]
    pub servers: Servers,
    /// How long a call is retried if servers do not answer, as in 10s
    #[arg(
        long,
        value_parser = humantime::parse_duration,
        default_value = "10s",
        value_name = "TIME",
        help_heading = "Server"
    )]
    timeout: Duration,
}

impl Connection {
    /// A client of servers of which one at least is there.
    pub async fn client(&self) -> Result<Client, Failure> {
        let config = ClientConfig {
            connect_timeout: CONNECT_TIMEOUT.min(self.timeout),
            // A verb ends before it could make use of what it learns.
            learn_nodes: false,
            ..self.servers.config()?.call_timeout(self.timeout)
        };
        checked(self.servers.client(config)?).await
    }
}

/// The same client, if one of its servers is there. A call alone would be retried until its timeout, because
/// a server may come back.
pub async fn checked(client: Client) -> Result<Client, Failure> {
    match client.check_server().await {
        Ok(()) => Ok(client),
        Err(error) if error.is_disconnected() => Err(Failure::from(error).hint(NOBODY)),
        Err(error) => Err(error.into()),
    }
}
