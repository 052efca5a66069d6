//! TLS on the ports for clients and operators.

mod clients;
mod expiry;
mod login;
mod renewal;
mod rights;
mod start;

use std::{fs, path::PathBuf, time::Duration};

use forebay_client::{Client, ClientConfig, NewItem, RetryPolicy, Tls, TlsConfig};
use forebay_testkit::certificates::{Authority, IssuedCertificate};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::node::Node;

/// Expected events happen within this time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A node whose ports have TLS, on an embedded shard.
struct TlsNode {
    node: Node,
    authority: Authority,
    folder: TempDir,
}

/// A folder with a configuration and certificates, for a node.
struct TlsFolder {
    authority: Authority,
    folder: TempDir,
}

impl TlsFolder {
    /// With a certificate for the node, and more keys of `[tls]`.
    async fn new(issue: impl FnOnce(&Authority) -> IssuedCertificate, keys: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-tls-").tempdir().unwrap();
        let (authority, path) = (Authority::new("authority"), folder.path());
        issue(&authority).write(path, "node");
        authority.write(path, "ca.crt");
        let at = |file: &str| path.join(file).display().to_string();
        let text = format!(
            "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain_ms = 0\n\
             [tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n{keys}\n\
             [[shard]]\nid = 1\nurl = \"sqlite://{}\"\n",
            at("node.crt"),
            at("node.key"),
            at("1.db"),
        );
        fs::write(path.join("forebay.toml"), text.replace("FOLDER", &path.display().to_string())).unwrap();
        let prepared = Self { authority, folder };
        Node::run(&prepared.verb("migrate")).await;
        prepared
    }

    /// A verb with this configuration.
    fn verb(&self, verb: &str) -> Vec<String> {
        vec![verb.into(), "--config".into(), self.path("forebay.toml").display().to_string()]
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Starts the node.
    async fn start(self, tls: TlsConfig) -> TlsNode {
        let tls = Tls::new(&tls).unwrap();
        let node = Node::start_with_tls(&self.verb("serve"), &self.path("log"), tls).await;
        let Self { authority, folder } = self;
        TlsNode { node, authority, folder }
    }
}

impl TlsNode {
    /// Clients show no certificate.
    async fn start() -> Self {
        let prepared = TlsFolder::new(|authority| authority.issue(&["127.0.0.1"]), "").await;
        let tls = TlsConfig::default().ca_certificate(prepared.authority.pem());
        prepared.start(tls).await
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    /// For a client that believes the node's authority.
    fn config(&self) -> ClientConfig {
        self.config_without_ca().ca_certificate(self.authority.pem())
    }

    /// For a client that believes the authorities of the system. It does not try again.
    fn config_without_ca(&self) -> ClientConfig {
        ClientConfig::new(format!("https://{}", self.node.grpc)).retry(RetryPolicy::never())
    }

    /// The value of a metric.
    async fn metric(&self, name: &str) -> f64 {
        let (_, page) = self.node.fetch("/metrics").await;
        let mut lines = page.lines().filter_map(|line| line.rsplit_once(' '));
        lines.find(|(found, _)| *found == name).map_or(0.0, |(_, value)| value.parse().unwrap())
    }

    /// Waits until a metric has a value as wanted.
    async fn metric_becomes(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        loop {
            let value = self.metric(name).await;
            if wanted(value) {
                return;
            }
            assert!(begun.elapsed() < TIMEOUT, "{name} is {value}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Enqueues an item.
async fn enqueue(config: ClientConfig) -> Result<(), forebay_client::Error> {
    let client = Client::connect(config)?;
    client.enqueue(vec![NewItem::new("t", "x")]).await?.remove(0).map(drop)
}
