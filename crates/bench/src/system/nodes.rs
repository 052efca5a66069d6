//! The nodes of a benchmark: one alone, or several with a catalog.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use forebay_proto::v1::{ListNodesRequest, admin_service_client::AdminServiceClient};
use forebay_servers::{Process, SupervisedChild, free_port};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::SystemConfig;
use crate::{database::execute, wait::wait_for};

/// Each node owns its share of the shards within this time: one that has just moved stays for 30 s.
const EVEN_TIMEOUT: Duration = Duration::from_secs(90);

/// A running node.
pub struct BenchNode {
    /// Its process.
    pub process: SupervisedChild,
    /// Where it answers.
    pub grpc: String,
}

/// Starts the nodes of a configuration over this server; without one, over SQLite.
pub async fn start_nodes(
    config: &SystemConfig,
    server: Option<&Process>,
    folder: &TempDir,
) -> anyhow::Result<Vec<BenchNode>> {
    let Some(server) = server else {
        ensure!(config.nodes == 1, "several nodes need a database server; choose another --database");
        return Ok(vec![
            start(config, &embedded_arguments(config, folder), &folder.path().join("node0"))?.ready().await?,
        ]);
    };
    let shards = shards(config, server).await?;
    let catalog = match config.nodes {
        1 => None,
        _ => {
            execute(&server.url(), "CREATE DATABASE forebay_catalog").await?;
            Some(format!("{}/forebay_catalog", server.url()))
        }
    };
    let secret = folder.path().join("secret");
    fs::write(&secret, "the-secret-of-the-benchmark\n")?;
    let mut starting = Vec::new();
    for node in 0..config.nodes {
        let path = folder.path().join(format!("forebay{node}.toml")).display().to_string();
        let part = catalog.as_deref().map(|url| cluster_part(node, url, &secret)).transpose()?;
        fs::write(&path, configuration(config, &part.unwrap_or_default(), &shards)?)?;
        if node == 0 {
            migrate(config, &path)?;
        }
        let arguments = ["serve".to_owned(), "--config".to_owned(), path];
        starting.push(start(config, &arguments, &folder.path().join(format!("node{node}")))?);
    }
    let mut nodes = Vec::new();
    for node in starting {
        nodes.push(node.ready().await?);
    }
    if nodes.len() > 1 {
        evenly_owned(&nodes, config.shards).await?;
    }
    Ok(nodes)
}

/// A node that starts.
struct StartingNode {
    process: SupervisedChild,
    log: PathBuf,
}

fn start(config: &SystemConfig, arguments: &[String], at: &Path) -> anyhow::Result<StartingNode> {
    fs::create_dir(at)?;
    let process = SupervisedChild::spawn(Command::new(&config.forebay).args(arguments), at)?;
    Ok(StartingNode { process, log: at.join("output.log") })
}

impl StartingNode {
    async fn ready(self) -> anyhow::Result<BenchNode> {
        let mut log = String::new();
        let ready = wait_for(Duration::from_secs(60), || {
            log = fs::read_to_string(&self.log).unwrap_or_default();
            log.lines().any(|line| line.starts_with("forebay ready")) || self.process.has_ended()
        });
        let ready = ready.await;
        let line = log.lines().find(|line| line.starts_with("forebay ready"));
        let Some(line) = line.filter(|_| ready) else { bail!("the node did not start; its log:\n{log}") };
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("grpc="));
        let grpc = address.with_context(|| format!("the node printed no gRPC address: {line:?}"))?.to_owned();
        Ok(BenchNode { process: self.process, grpc })
    }
}

/// Waits until each node owns its share of the shards, and hands out the items of all.
async fn evenly_owned(nodes: &[BenchNode], shards: u32) -> anyhow::Result<()> {
    let share = shards / nodes.len() as u32;
    let until = Instant::now() + EVEN_TIMEOUT;
    for node in nodes {
        let mut client = AdminServiceClient::connect(format!("http://{}", node.grpc)).await?;
        loop {
            let listed = client.list_nodes(ListNodesRequest::default()).await?.into_inner().nodes;
            if listed.len() == nodes.len() && listed.iter().all(|it| it.delivers_all && it.shards >= share) {
                break;
            }
            ensure!(Instant::now() < until, "the nodes do not share the shards evenly: {listed:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

fn embedded_arguments(config: &SystemConfig, folder: &TempDir) -> Vec<String> {
    let data = folder.path().join("data").display().to_string();
    let shards = config.shards.to_string();
    let flags =
        ["dev", "--data-dir", &data, "--shards", &shards, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    flags.map(str::to_owned).to_vec()
}

/// Creates the databases of the shards. Returns their part of the configuration.
async fn shards(config: &SystemConfig, server: &Process) -> anyhow::Result<String> {
    let mut text = String::new();
    for id in 1..=config.shards {
        let name = format!("forebay_{id:04}");
        execute(&server.url(), &format!("CREATE DATABASE {name}")).await?;
        write!(text, "\n[[shard]]\nid = {id}\nurl = \"{}/{name}\"\n", server.url())?;
    }
    Ok(text)
}

/// The number of the node of this name.
pub fn node_number(name: &str) -> Option<usize> {
    name.strip_prefix("node")?.parse().ok()
}

fn cluster_part(node: u32, catalog: &str, secret: &Path) -> anyhow::Result<String> {
    let port = free_port()?;
    Ok(format!(
        "name = \"node{node}\"\npeer = \"127.0.0.1:{port}\"\npeer_secret_file = \"{}\"\n\
         [catalog]\nurl = \"{catalog}\"\n",
        secret.display()
    ))
}

fn configuration(config: &SystemConfig, cluster: &str, shards: &str) -> anyhow::Result<String> {
    let mut text = "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\nlog = \"warn\"\n".to_owned();
    // The other systems' connections are not encrypted either.
    writeln!(text, "mysql_tls = \"off\"")?;
    writeln!(text, "allow_not_durable = {}", !config.server_flags.is_empty())?;
    Ok(text + cluster + shards)
}

fn migrate(config: &SystemConfig, config_file: &str) -> anyhow::Result<()> {
    let done = Command::new(&config.forebay).args(["migrate", "--config", config_file]).output();
    let done = done.with_context(|| format!("cannot run {}", config.forebay.display()))?;
    ensure!(done.status.success(), "forebay migrate failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
