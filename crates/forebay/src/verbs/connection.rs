//! The flags that client verbs share.

use std::time::Duration;

use clap::Args;
use forebay_client::{Client, ClientConfig};

use crate::{failure::Failure, output::Output};

/// How long a verb retries a server that does not answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an address may not answer at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// What to do about a server that is not there.
const NOBODY: &str = "; start one (try `forebay dev`), or name another with --addr or FOREBAY_ADDR";

/// The servers and the namespace.
#[derive(Args)]
pub struct Connection {
    /// The server's gRPC address, as host:port or http://host:port; several, with commas between them or each
    /// after its own --addr: if one can't be reached, another is called
    #[arg(
        long,
        env = "FOREBAY_ADDR",
        default_value = "http://127.0.0.1:7420",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    addr: Vec<String>,
    /// The namespace of the call
    #[arg(long, env = "FOREBAY_NAMESPACE", default_value = "default", value_name = "NAME")]
    pub namespace: String,
}

/// The output format.
#[derive(Args)]
pub struct Format {
    /// How results are printed
    #[arg(long, value_enum, default_value = "table")]
    pub output: Output,
}

impl Connection {
    /// A client of servers of which one at least is there.
    pub async fn client(&self) -> Result<Client, Failure> {
        let client = self.unchecked()?;
        // A call alone would be retried until its timeout, because a server may come back.
        match client.check_server().await {
            Ok(()) => Ok(client),
            Err(error) if error.is_disconnected() => Err(Failure::from(error).hint(NOBODY)),
            Err(error) => Err(error.into()),
        }
    }

    /// The first server's host.
    pub fn host(&self) -> Result<&str, Failure> {
        self.unchecked()?;
        let addr = self.addr.first().map_or("", String::as_str);
        let rest = addr.split_once("://").map_or(addr, |(_, rest)| rest);
        Ok(rest.rsplit_once(':').map_or(rest, |(host, _)| host))
    }

    fn unchecked(&self) -> Result<Client, Failure> {
        let config = ClientConfig {
            endpoints: self.addr.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            // A verb ends before it could make use of what it learns.
            learn_nodes: false,
            ..ClientConfig::new("").namespace(&self.namespace).call_timeout(CALL_TIMEOUT)
        };
        Client::connect(config).map_err(|error| Failure::usage(format!("--addr: {}", error.message())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_host_is_what_comes_before_the_port() {
        let connection = |addrs: &[&str]| Connection {
            addr: addrs.iter().map(|addr| (*addr).to_owned()).collect(),
            namespace: "default".to_owned(),
        };
        for (addr, host) in
            [("db1:7420", "db1"), ("http://127.0.0.1:1", "127.0.0.1"), ("http://[::1]:7420/", "[::1]")]
        {
            assert_eq!(connection(&[addr, "db2:1"]).host().unwrap(), host);
        }
        assert!(connection(&["db1"]).host().is_err());
        assert!(connection(&["db1:7420", "db2"]).host().is_err());
    }
}
