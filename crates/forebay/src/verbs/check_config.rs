//! `forebay check-config`

use std::{io::Write as _, path::PathBuf};

use clap::Args;
use forebay_node::{
    config::Config,
    shard_reports::{self, ShardAnswer, ShardReport},
    shards,
};

use crate::{
    failure::{Failure, Status},
    output,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay check-config --config forebay.toml
  forebay check-config --config forebay.toml --connect")]
pub struct CheckConfig {
    /// The configuration file
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
    /// Also ask the databases for their versions, their schemas, and settings that may lose commits
    #[arg(long)]
    connect: bool,
}

impl CheckConfig {
    /// Prints every error, or that the file is valid. `serve` reads and checks it with the same functions.
    pub async fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        let opened = shards::open(&config).map_err(Failure::from_all)?;
        let (path, count) = (self.config.display(), opened.len());
        let shards = if count == 1 { "shard" } else { "shards" };
        writeln!(std::io::stdout().lock(), "{path} is valid: {count} {shards}, gRPC on {}", config.grpc)?;
        if !self.connect {
            return Ok(());
        }
        let reports = shard_reports::ask(&opened).await;
        let rows: Vec<_> = reports.iter().map(row).collect();
        output::table(["SHARD", "SERVER", "VERSION", "SCHEMA", "REMARKS"], &rows)?;
        let unfit = shard_reports::unfit(&reports, config.allow_not_durable);
        let unreachable = reports.iter().filter_map(|ShardReport { id, server, answer }| match answer {
            ShardAnswer::Unreachable(error) => Some(format!("cannot reach shard {id} ({server}): {error}")),
            ShardAnswer::Schema(_) | ShardAnswer::Settings(_) => None,
        });
        let unreachable: Vec<_> = unreachable.collect();
        match (unfit.is_empty(), unreachable.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err(Failure::from_all(unreachable).with(Status::Unavailable)),
            (false, _) => Err(Failure::from_all(unfit).and(Failure::from_all(unreachable))),
        }
    }
}

fn row(report: &ShardReport) -> [String; 5] {
    let (version, schema, remarks) = match &report.answer {
        ShardAnswer::Unreachable(_) => ("-", "-", "unreachable".to_owned()),
        ShardAnswer::Schema(_) => ("-", "wrong", String::new()),
        ShardAnswer::Settings(settings) => {
            let remarks = settings.not_durable.iter().chain(&settings.warnings);
            let remarks: Vec<_> = remarks.map(String::as_str).collect();
            (settings.server.as_str(), "as it must be", remarks.join("; "))
        }
    };
    let remarks = if remarks.is_empty() { "-".to_owned() } else { remarks };
    [report.id.to_string(), report.server.clone(), version.to_owned(), schema.to_owned(), remarks]
}
