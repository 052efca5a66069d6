//! `forebay dev`

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use forebay_config::Config;
use forebay_operators::{cluster, shards};

use super::{
    demo::Demo,
    dev_nodes::{Addresses, configure},
    dev_token,
    run::{self, ShutdownSignals},
};
use crate::{failure::Failure, log};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dev
  forebay dev --demo --data-dir /tmp/queue
  forebay dev --nodes 3 --demo
  forebay dev --shards 4 --grpc 0.0.0.0:7420 --http 0.0.0.0:7421")]
pub struct Dev {
    /// The folder of the shards; created if missing
    #[arg(long, default_value = "./forebay-data", value_name = "FOLDER")]
    data_dir: PathBuf,
    /// How many shards; existing shards of the folder are always served
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    shards: u32,
    /// How many nodes; several share the shards, as in a cluster, and each has ports 10 above the last one's
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=20))]
    nodes: u16,
    /// Where to serve gRPC [default: 127.0.0.1:7420]
    #[arg(long, value_name = "HOST:PORT")]
    grpc: Option<String>,
    /// Where to serve HTTP [default: 127.0.0.1:7421]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Also run a producer and a consumer that show a queue at work
    #[arg(long)]
    demo: bool,
}

impl Dev {
    /// Creates the shards and serves until a signal.
    pub async fn run(self) -> Result<(), Failure> {
        let signals = ShutdownSignals::listen()?;
        let folder = &self.data_dir;
        // The queue is private to this account. A folder that is there may have other uses.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))?;
        // The catalog has the shards' addresses, from wherever the command is run.
        let folder = &folder.canonicalize()?;
        let shards = self.shards.max(highest_shard(folder)?).max(self.nodes.into());
        let given = [("grpc", self.grpc), ("http", self.http)];
        let flags = given.into_iter().filter_map(|(key, text)| Some((key, toml::Value::String(text?))));
        // Where others reach the node, it asks for a token.
        let flags = flags.chain([("insecure", true.into())]);
        let config = Config::embedded(folder, shards, flags.collect())?;
        log::start(&config)?;
        let tokens = dev_token::tokens_file(folder, &config)?;
        let mut configs = match self.nodes {
            1 => vec![config],
            nodes => several(folder, &config, shards, nodes)?,
        };
        migrate(folder, &configs[0]).await?;
        for config in &mut configs {
            tokens.iter().for_each(|path| config.set_tokens_file(path.clone()));
        }
        if self.demo && configs.iter().any(|config| config.access.is_on()) {
            return Err(Failure::usage("--demo shows no token, and a node that others reach asks for one"));
        }
        if self.demo && configs.iter().any(|config| config.tls.server.is_some()) {
            return Err(Failure::usage("--demo connects without TLS, which is configured (FOREBAY_TLS_…)"));
        }
        if !self.demo {
            return run::run(configs, signals, run::until_signal).await;
        }
        run::run(configs, signals, async |nodes, signals| {
            let demo = Demo::start(nodes[0].grpc(), nodes[0].http())?;
            signals.wait().await;
            demo.stop().await;
            Ok(())
        })
        .await
    }
}

/// The configurations of several nodes, with a catalog and shards in the folder.
fn several(folder: &Path, first: &Config, shards: u32, nodes: u16) -> Result<Vec<Config>, Failure> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Failure::new(format!("{text} must be an IP address and a port here")))
    };
    let first = Addresses { grpc: parse(&first.grpc)?, http: parse(&first.http)? };
    configure(folder, shards, nodes, &first)
}

/// Makes the catalog and the shards, or brings them up to date.
async fn migrate(folder: &Path, config: &Config) -> Result<(), Failure> {
    let cluster = cluster::migrate(config).await.map_err(Failure::from_display)?;
    let shards = shards::open_these(config, &cluster.shards).map_err(Failure::from_all)?;
    for (id, migrated) in shards::migrate(&shards, cluster.cluster).await {
        let failed = |error| Failure::new(format!("shard {id} in {}: {error}", folder.display()));
        migrated.map_err(failed)?;
    }
    Ok(())
}

/// The highest shard number in the folder. Shards beyond `--shards` may still hold items.
fn highest_shard(folder: &Path) -> Result<u32, Failure> {
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    let mut highest = 0;
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".db")?.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}
