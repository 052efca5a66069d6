//! The flags that every client verb takes.

use std::time::Duration;

use clap::Args;
use forebay_client::{Client, ClientConfig, Error};

use crate::output::Output;

/// How long a verb retries a server that does not answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The server, the namespace and the output format.
#[derive(Args)]
pub struct Connection {
    /// The server's gRPC address
    #[arg(long, env = "FOREBAY_ADDR", default_value = "http://127.0.0.1:7420", value_name = "URL")]
    addr: String,
    /// The namespace of the call
    #[arg(long, env = "FOREBAY_NAMESPACE", default_value = "default", value_name = "NAME")]
    namespace: String,
    /// How results are printed
    #[arg(long, value_enum, default_value = "table")]
    pub output: Output,
}

impl Connection {
    /// A client. It connects with its first call.
    pub fn client(&self) -> Result<Client, Error> {
        let config = ClientConfig::new(&self.addr).namespace(&self.namespace).call_timeout(CALL_TIMEOUT);
        Client::connect(ClientConfig { connect_timeout: Duration::from_secs(3), ..config })
    }
}
