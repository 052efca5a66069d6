//! What every client verb takes.

use std::time::Duration;

use clap::Args;
use forebay_client::{Client, ClientConfig, Error};

use crate::output::Output;

/// How long a command line waits for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where to call, for whom, and how to print.
#[derive(Args)]
pub struct Connection {
    /// The server
    #[arg(long, env = "FOREBAY_ADDR", default_value = "http://127.0.0.1:7420", value_name = "URL")]
    addr: String,
    /// The tenant
    #[arg(long, env = "FOREBAY_NAMESPACE", default_value = "default", value_name = "NAME")]
    namespace: String,
    /// How to print results
    #[arg(long, value_enum, default_value = "table")]
    pub output: Output,
}

impl Connection {
    /// A client; it connects with its first call.
    pub fn client(&self) -> Result<Client, Error> {
        let config = ClientConfig::new(&self.addr).namespace(&self.namespace).call_timeout(PATIENCE);
        Client::connect(ClientConfig { connect_timeout: Duration::from_secs(3), ..config })
    }
}
