//! The nodes that are asked for items: those that were there at the beginning, and those that join.

use std::{collections::BTreeSet, time::Duration};

use forebay_client::{Client, ClientConfig};
use tokio::time::{Instant, sleep};

use crate::{failure::Failure, verbs::servers::Servers};

/// How long a client may take to find the other nodes.
const LEARN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often it is looked whether a node has joined.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The nodes. Each has clients that ask it alone: one of an earlier release hands out items of its own shards
/// only.
pub struct Nodes<'a> {
    /// Makes clients.
    servers: &'a Servers,
    /// Their configuration.
    config: ClientConfig,
    /// A client of all nodes. It learns of those that join while it is used.
    all: Client,
    /// Nodes that have a client.
    asked: BTreeSet<String>,
}

impl<'a> Nodes<'a> {
    /// Looks which there are.
    pub async fn learn(servers: &'a Servers) -> Result<Self, Failure> {
        let config = ClientConfig { learn_nodes: true, ..servers.config()? };
        let all = servers.client(config.clone())?;
        let (count, begun) = (all.nodes().await?.len(), Instant::now());
        while all.servers().len() < count && begun.elapsed() < LEARN_TIMEOUT {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { servers, config, all, asked: BTreeSet::new() })
    }

    /// A client of all nodes.
    pub fn all(&self) -> Client {
        self.all.clone()
    }

    /// Makes clients, shared out among the nodes that are there. Each node has one at least.
    pub fn clients(&mut self, count: usize) -> Result<Vec<Client>, Failure> {
        let addresses = self.addresses();
        self.asked.extend(addresses.iter().cloned());
        addresses.iter().cycle().take(count.max(addresses.len())).map(|addr| self.client(addr)).collect()
    }

    /// Waits until a node is there that has no client, and returns one.
    pub async fn next(&mut self) -> Result<Client, Failure> {
        loop {
            if let Some(addr) = self.addresses().into_iter().find(|addr| !self.asked.contains(addr)) {
                self.asked.insert(addr.clone());
                return self.client(&addr);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn addresses(&self) -> Vec<String> {
        let tls = self.config.endpoints.iter().any(|addr| addr.starts_with("https://"));
        // Addresses that were learnt have no scheme.
        let with_scheme = |addr: String| match tls && !addr.contains("://") {
            true => format!("https://{addr}"),
            false => addr,
        };
        self.all.servers().into_iter().map(with_scheme).collect()
    }

    fn client(&self, addr: &str) -> Result<Client, Failure> {
        let config =
            ClientConfig { endpoints: vec![addr.to_owned()], learn_nodes: false, ..self.config.clone() };
        self.servers.client(config)
    }
}
