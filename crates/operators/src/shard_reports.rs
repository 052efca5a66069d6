//! Reports of the databases of shards on themselves, and whether the shards may be served.

use std::time::Duration;

use forebay_store::{ErrorClass, Settings, StoreError};
use forebay_types::ShardId;
use futures_util::future::join_all;

use crate::shards::{KnownCluster, NumberedShard, UnfitShard};

/// A shard that does not answer within this time is taken over later.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Report of a shard's database on itself.
pub struct ShardReport {
    /// The shard.
    pub id: ShardId,
    /// Its server.
    pub server: String,
    /// Answer of the database.
    pub answer: ShardAnswer,
}

/// Whether a shard's database answers, and what.
pub enum ShardAnswer {
    /// It can't be reached now.
    Unreachable(String),
    /// Its schema is missing or of another version.
    Schema(StoreError),
    /// Its schema is right, and these are its server's version and settings.
    Settings(Settings),
}

/// Asks the database of every shard.
pub async fn ask(shards: &[NumberedShard]) -> Vec<ShardReport> {
    let checks = shards.iter().map(|(_, shard)| tokio::time::timeout(ANSWER_TIMEOUT, shard.check()));
    let answers = join_all(checks).await.into_iter().map(|checked| match checked {
        Err(_) => ShardAnswer::Unreachable(format!("no answer within {ANSWER_TIMEOUT:?}")),
        Ok(Err(error)) if error.class == ErrorClass::Schema => ShardAnswer::Schema(error),
        Ok(Err(error)) => ShardAnswer::Unreachable(error.to_string()),
        Ok(Ok(settings)) => ShardAnswer::Settings(settings),
    });
    let report =
        |((id, shard), answer): (&NumberedShard, _)| ShardReport { id: *id, server: shard.server(), answer };
    shards.iter().zip(answers).map(report).collect()
}

/// Why shards must not be served. One that can't be reached may be served later.
pub fn unfit(reports: &[ShardReport], allow_not_durable: bool) -> Vec<UnfitShard> {
    let (mut known, mut unfit) = (KnownCluster::default(), Vec::new());
    for ShardReport { id: shard, answer, .. } in reports {
        let shard = *shard;
        match answer {
            ShardAnswer::Unreachable(_) => {}
            ShardAnswer::Schema(error) => unfit.push(UnfitShard::Schema { shard, error: error.clone() }),
            ShardAnswer::Settings(settings) => {
                unfit.extend(known.join(shard, settings.cluster).err());
                if !allow_not_durable {
                    let reasons = settings.not_durable.iter().cloned();
                    unfit.extend(reasons.map(|reason| UnfitShard::NotDurable { shard, reason }));
                }
            }
        }
    }
    unfit
}

/// Checks every shard before a node serves. An unfit one is an error; an unreachable one is only logged.
pub async fn check(shards: &[NumberedShard], allow_not_durable: bool) -> Result<(), Vec<UnfitShard>> {
    let reports = ask(shards).await;
    reports.iter().for_each(|report| log(report, allow_not_durable));
    let unfit = unfit(&reports, allow_not_durable);
    if unfit.is_empty() { Ok(()) } else { Err(unfit) }
}

/// Logs a server's product and settings, or that it can't be reached.
fn log(report: &ShardReport, allow_not_durable: bool) {
    let ShardReport { id: shard, server, answer } = report;
    let id = shard.0;
    let settings = match answer {
        ShardAnswer::Unreachable(error) => {
            tracing::warn!(shard.id = id, server, error, "cannot reach shard {shard} ({server}); retrying");
            return;
        }
        // The node does not start, and says why.
        ShardAnswer::Schema(_) => return,
        ShardAnswer::Settings(settings) => settings,
    };
    let product = &settings.server;
    tracing::info!(shard.id = id, product, "shard {shard} runs on {product}");
    if allow_not_durable {
        for reason in &settings.not_durable {
            tracing::warn!(shard.id = id, reason, "shard {shard} may lose answered commits");
        }
    }
    for reason in &settings.warnings {
        tracing::warn!(shard.id = id, reason, "shard {shard} has a setting that is better changed");
    }
}
