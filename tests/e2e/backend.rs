//! The databases of a node under test.

use std::{fmt::Write as _, fs, path::PathBuf};

use forebay_testkit::servers::{self, Kind, free_port};
use tempfile::TempDir;

use crate::node::Node;

/// Shards of a cluster.
const SHARDS: u32 = 2;

/// A kind of shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Embedded, through `forebay dev`.
    Sqlite,
    /// On a server that many tests share, through `forebay serve`.
    Server(Kind),
}

/// A set of shards, and the ports of its nodes.
pub struct Cluster {
    /// Decides how nodes are started.
    backend: Backend,
    /// Holds data, configurations and logs.
    folder: TempDir,
    /// The gRPC and HTTP port of each node. They survive restarts, so that clients find a node again.
    ports: Vec<[u16; 2]>,
}

impl Cluster {
    /// Empty shards for up to `nodes` nodes.
    pub async fn new(backend: Backend, nodes: usize) -> Self {
        let urls = match backend {
            Backend::Sqlite => Vec::new(),
            Backend::Server(kind) => {
                let server = servers::shared(kind).await;
                let mut urls = Vec::new();
                for _ in 0..SHARDS {
                    urls.push(server.fresh_url().await);
                }
                urls
            }
        };
        Self::on(backend, &urls, nodes).await
    }

    /// Shards in these databases.
    pub async fn on(backend: Backend, urls: &[String], nodes: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-e2e-").tempdir().unwrap();
        let mut ports = Vec::new();
        for _ in 0..nodes {
            ports.push([free_port().unwrap(), free_port().unwrap()]);
        }
        let cluster = Self { backend, folder, ports };
        if backend != Backend::Sqlite {
            for node in 0..nodes {
                cluster.write_config(node, urls);
            }
            Node::run(&["migrate".into(), "--config".into(), cluster.config(0)]).await;
        }
        cluster
    }

    /// Starts node number `node` and waits until it is ready.
    pub async fn start(&self, node: usize) -> Node {
        Node::start(&self.arguments(node), &self.log(node)).await
    }

    /// The same with these environment variables.
    pub async fn start_with<const N: usize>(&self, node: usize, variables: [(&str, &str); N]) -> Node {
        Node::start_with(&self.arguments(node), &self.log(node), variables).await
    }

    /// Starts node number `node`, which may have to wait for shards.
    pub async fn start_standby(&self, node: usize) -> Node {
        Node::start_standby(&self.arguments(node), &self.log(node), self.addresses(node)).await
    }

    /// Of node number `node`: of gRPC, then of HTTP.
    fn addresses(&self, node: usize) -> [String; 2] {
        self.ports[node].map(|port| format!("127.0.0.1:{port}"))
    }

    fn arguments(&self, node: usize) -> Vec<String> {
        if self.backend != Backend::Sqlite {
            return vec!["serve".into(), "--config".into(), self.config(node)];
        }
        let data = self.folder.path().join("data").display().to_string();
        let [grpc, http] = self.addresses(node);
        let shards = SHARDS.to_string();
        let flags = [("--data-dir", data), ("--shards", shards), ("--grpc", grpc), ("--http", http)];
        let flags = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        std::iter::once("dev".to_owned()).chain(flags).collect()
    }

    /// Where node number `node` logs.
    pub fn log(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node{node}.log"))
    }

    /// Gives node number `node` a catalog of its own at this URL, which has the shards that it lists.
    pub async fn set_catalog(&self, node: usize, url: &str) {
        let text = fs::read_to_string(self.config(node)).unwrap();
        fs::write(self.config(node), format!("{text}\n[catalog]\nurl = \"{url}\"\n")).unwrap();
        Node::run(&["migrate".into(), "--config".into(), self.config(node)]).await;
    }

    /// Node number `node`, which has a catalog of its own, keeps a copy of it from its next start on. Returns
    /// where.
    pub fn keep_copy(&self, node: usize) -> PathBuf {
        let copy = self.log(node).with_extension("copy");
        let text = fs::read_to_string(self.config(node)).unwrap();
        fs::write(self.config(node), format!("{text}copy_file = \"{}\"\n", copy.display())).unwrap();
        copy
    }

    /// Node number `node` lists a shard at another URL from its next start on.
    pub fn list_elsewhere(&self, node: usize, from: &str, to: &str) {
        let text = fs::read_to_string(self.config(node)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(self.config(node), text.replace(from, to)).unwrap();
    }

    /// Starts node number `node`, which is refused. Returns its log.
    pub async fn refused(&self, node: usize) -> String {
        Node::refused_with_log(&self.arguments(node), &self.log(node)).await
    }

    fn config(&self, node: usize) -> String {
        self.folder.path().join(format!("node{node}.toml")).display().to_string()
    }

    /// Configures node number `node` with these shards, numbered from 1.
    pub fn write_config(&self, node: usize, urls: &[String]) {
        let [grpc, http] = self.ports[node];
        let mut text = format!("[node]\ngrpc = \"127.0.0.1:{grpc}\"\nhttp = \"127.0.0.1:{http}\"\n");
        for (id, url) in (1..).zip(urls) {
            write!(text, "\n[[shard]]\nid = {id}\nurl = \"{url}\"\n").unwrap();
        }
        fs::write(self.config(node), text).unwrap();
    }
}
