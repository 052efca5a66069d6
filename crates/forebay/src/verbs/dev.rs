//! `forebay dev`

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_node::{Node, config::Config, shards};

use super::{
    demo::Demo,
    run::{self, Ending, Meanwhile},
};
use crate::{failure::Failure, log};

/// The flags.
#[derive(Args)]
pub struct Dev {
    /// Where the shards are kept; made if it is not there
    #[arg(long, default_value = "./forebay-data", value_name = "FOLDER")]
    data_dir: PathBuf,
    /// How many shards; a folder that has more already keeps them
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    shards: u32,
    /// Where gRPC is served [default: 127.0.0.1:7420]
    #[arg(long, value_name = "HOST:PORT")]
    grpc: Option<String>,
    /// Where HTTP is served [default: 127.0.0.1:7421]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Also run a producer and a consumer, so that there is something to see
    #[arg(long)]
    demo: bool,
}

impl Dev {
    /// Makes the shards and serves until a signal.
    pub async fn run(self) -> Result<(), Failure> {
        let ending = Ending::listen()?;
        let folder = &self.data_dir;
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(format!("{} can't be made: {error}", folder.display())))?;
        let shards = self.shards.max(highest_shard(folder)?);
        let given = [("grpc", self.grpc), ("http", self.http)];
        let flags = given.into_iter().filter_map(|(key, text)| Some((key, toml::Value::String(text?))));
        let config = Config::embedded(folder, shards, flags.collect())?;
        log::start(&config)?;
        for (id, shard) in shards::open(&config).map_err(Failure::from_all)? {
            let failed = |error| Failure::new(format!("shard {id} in {}: {error}", folder.display()));
            shard.migrate().await.map_err(failed)?;
        }
        run::run(config, ending, WithDemo(self.demo)).await
    }
}

/// The highest number of a shard that the folder has: items in it must not be left out.
fn highest_shard(folder: &Path) -> Result<u32, Failure> {
    let unreadable = |error| Failure::new(format!("{} can't be read: {error}", folder.display()));
    let mut highest = 0;
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".db")?.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

struct WithDemo(bool);

impl Meanwhile for WithDemo {
    type Running = Option<Demo>;

    fn start(self, node: &Node) -> Result<Option<Demo>, Failure> {
        self.0.then(|| Demo::start(node.grpc(), node.http())).transpose()
    }

    async fn end(running: Option<Demo>) {
        if let Some(demo) = running {
            demo.stop().await;
        }
    }
}
