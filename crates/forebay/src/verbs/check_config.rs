//! `forebay check-config`

use std::path::PathBuf;

use clap::Args;
use forebay_config::Config;
use forebay_edge::{access::Access, tls::Certificates};
use forebay_operators::{
    shard_reports::{self, ShardAnswer, ShardReport},
    shards,
};
use forebay_types::{Clock as _, SystemClock};

use crate::{
    failure::{Failure, Status},
    output::{Cell, Look, Table},
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
    /// How the table looks.
    #[command(flatten)]
    look: Look,
}

impl CheckConfig {
    /// Prints every error, or that the file is valid. `serve` reads and checks it, the certificates and the
    /// file of tokens with the same functions.
    pub async fn run(self) -> Result<(), Failure> {
        let config = Config::load(&self.config, Vec::new())?;
        Certificates::load(&config.tls, SystemClock::default().wall()).map_err(Failure::from_all)?;
        Access::check(&config.access).map_err(Failure::from_display)?;
        let opened = shards::open(&config).map_err(Failure::from_all)?;
        let (path, count) = (self.config.display(), opened.len());
        let shards = if count == 1 { "shard" } else { "shards" };
        self.look.confirm(&format!("{path} is valid: {count} {shards}, gRPC on {}", config.grpc))?;
        if !self.connect {
            return Ok(());
        }
        let reports = shard_reports::ask(&opened).await;
        let mut table = Table::new(["SHARD", "SERVER", "VERSION", "SCHEMA", "REMARKS"]);
        reports.iter().for_each(|report| table.row(row(report).map(Cell::from)));
        table.print(&self.look.style())?;
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
