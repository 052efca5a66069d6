//! Reports of this node's shards, and of the topics that other nodes follow, and theirs to this one.

use std::{
    future::ready,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use forebay_engine::{Engine, NodeWatch, ShardLoad, Subscription};
use forebay_front::{PeerReport, Reports, WatchError};
use forebay_proto::peer::{self, WatchTopicsRequest, WatchTopicsResponse};
use forebay_types::ShardId;
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tonic::{Code, Status, Streaming};

use crate::{links::PeerLinks, wire};

/// How often a node tells of its shards.
const REPORT_EVERY: Duration = Duration::from_millis(250);
/// How long a node may take to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_millis(500);

/// A stream to another node.
struct Watching {
    /// Has the answers.
    engine: Engine,
    /// The topics that the other node follows.
    watch: NodeWatch,
    /// Messages of the other node.
    requests: Streaming<WatchTopicsRequest>,
    /// When the shards are told of.
    every: Interval,
}

impl Watching {
    /// The next message. `None`: the engine has stopped, or the other node ended its half.
    async fn next(&mut self) -> Option<WatchTopicsResponse> {
        let link = self.watch.link();
        loop {
            tokio::select! {
                // Neither waits behind news of topics, which may come without end.
                biased;
                _ = self.every.tick() => {
                    let loads = self.engine.own_loads().await?.into_iter().map(message).collect();
                    return Some(WatchTopicsResponse { loads, link, ..WatchTopicsResponse::default() });
                }
                request = self.requests.message() => {
                    self.watch.subscribe(wire::subscriptions(request.ok()??));
                }
                topics = self.watch.next() => {
                    let topics = topics?.into_iter().map(wire::head_message).collect();
                    return Some(WatchTopicsResponse { topics, topics_only: true, link, loads: Vec::new() });
                }
            }
        }
    }
}

/// Messages of this node. The compiler does not see of a boxed stream without a name that it may be sent.
struct Requests(BoxStream<'static, WatchTopicsRequest>);

impl Stream for Requests {
    type Item = WatchTopicsRequest;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

/// Reports for another node, until it goes or the engine stops.
pub fn reports(
    engine: Engine,
    requests: Streaming<WatchTopicsRequest>,
) -> BoxStream<'static, Result<WatchTopicsResponse, Status>> {
    let mut every = interval(REPORT_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching = Watching { watch: engine.watch(), engine, requests, every };
    let next = |mut watching: Watching| async move { Some((Ok(watching.next().await?), watching)) };
    stream::unfold(watching, next).boxed()
}

impl PeerLinks {
    /// Listens to what a node tells, and subscribes to its topics.
    pub(crate) async fn reports_of(
        &self,
        node: &str,
        subscriptions: BoxStream<'static, Vec<Subscription>>,
    ) -> Result<Reports, WatchError> {
        let link = self.watch_link(node).ok_or(WatchError::Unreached)?;
        let (number, mut client) = link.client().await.map_err(|_| WatchError::Unreached)?;
        // Without this half the call would end.
        let requests = Requests(subscriptions.map(wire::watch_request).chain(stream::pending()).boxed());
        let begun = tokio::time::timeout(BEGIN_TIMEOUT, client.watch_topics(requests)).await;
        match begun {
            Ok(Ok(response)) => {
                let reports = response.into_inner().scan((), |(), report| ready(report.ok()));
                Ok(reports.map(report).boxed())
            }
            Ok(Err(status)) if status.code() == Code::Unimplemented => Err(WatchError::Older),
            Ok(Err(_)) | Err(_) => {
                link.broke(number).await;
                Err(WatchError::Unreached)
            }
        }
    }
}

fn report(message: WatchTopicsResponse) -> PeerReport {
    let WatchTopicsResponse { loads, topics_only, topics, link } = message;
    let loads = (!topics_only).then(|| loads.into_iter().map(load).collect());
    PeerReport { link: (link > 0).then_some(link), loads, heads: wire::heads(topics) }
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
