//! Reports of this node's shards to other nodes, and theirs to this one.

use std::{future::ready, time::Duration};

use forebay_engine::{Engine, ShardLoad};
use forebay_front::{Reports, WatchError};
use forebay_proto::peer::{self, WatchTopicsRequest, WatchTopicsResponse};
use forebay_types::ShardId;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::{MissedTickBehavior, interval};
use tonic::{Code, Status, Streaming};

use crate::links::PeerLinks;

/// How often a node tells of its shards.
const REPORT_EVERY: Duration = Duration::from_millis(250);
/// How long a node may take to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Reports of this node's shards, until the caller goes or the engine stops.
pub fn reports(
    engine: Engine,
    requests: Streaming<WatchTopicsRequest>,
) -> BoxStream<'static, Result<WatchTopicsResponse, Status>> {
    let mut every = interval(REPORT_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The caller has nothing to say yet. Without its half the call would end.
    let next = |(engine, requests, mut every): (Engine, _, tokio::time::Interval)| async move {
        every.tick().await;
        let loads = engine.own_loads().await?;
        let report = WatchTopicsResponse { loads: loads.into_iter().map(message).collect() };
        Some((Ok(report), (engine, requests, every)))
    };
    stream::unfold((engine, requests, every), next).boxed()
}

impl PeerLinks {
    /// Listens to what a node tells of its shards.
    pub(crate) async fn reports_of(&self, node: &str) -> Result<Reports, WatchError> {
        let link = self.watch_link(node).ok_or(WatchError::Unreached)?;
        let (number, mut client) = link.client().await.map_err(|_| WatchError::Unreached)?;
        let begun = tokio::time::timeout(BEGIN_TIMEOUT, client.watch_topics(stream::pending())).await;
        match begun {
            Ok(Ok(response)) => {
                let reports = response.into_inner().scan((), |(), report| ready(report.ok()));
                Ok(reports.map(|report| report.loads.into_iter().map(load).collect()).boxed())
            }
            Ok(Err(status)) if status.code() == Code::Unimplemented => Err(WatchError::Older),
            Ok(Err(_)) | Err(_) => {
                link.broke(number).await;
                Err(WatchError::Unreached)
            }
        }
    }
}

fn message(load: ShardLoad) -> peer::ShardLoad {
    let ShardLoad { shard, rows, bytes, takes_items } = load;
    peer::ShardLoad { shard: shard.0, rows: rows as u64, bytes: bytes as u64, takes_items }
}

fn load(message: peer::ShardLoad) -> ShardLoad {
    let peer::ShardLoad { shard, rows, bytes, takes_items } = message;
    let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
    ShardLoad { shard: ShardId(shard), rows: size(rows), bytes: size(bytes), takes_items }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_arrives_as_it_was() {
        let sent = ShardLoad { shard: ShardId(7), rows: 1 << 40, bytes: usize::MAX, takes_items: true };
        assert_eq!(load(message(sent)), sent);
        let none = ShardLoad { takes_items: false, ..sent };
        assert_eq!(load(message(none)), none);
    }
}
