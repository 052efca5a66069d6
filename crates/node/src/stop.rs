//! The order of shutdown. It completes within 25 s, whatever clients and databases do.

use std::time::Duration;

use forebay_membership::ClusterTask;
use forebay_operators::cluster::Member;
use futures_util::future::{BoxFuture, join_all};
use tokio::task::JoinHandle;

use crate::node::Node;

/// Limit of the drain pause and the engine's stop together.
const ENGINE_STOP_TIMEOUT: Duration = Duration::from_secs(21);
/// How long responses may still be sent after the engine has stopped.
const GRPC_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for other nodes.
const PEER_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
/// The same for pages.
const HTTP_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long spans may still be sent.
const SPANS_SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Stops all nodes of a cluster. None hands its shards over to another one that is about to stop as well.
pub fn stop_all(nodes: Vec<Node>) -> BoxFuture<'static, Result<(), String>> {
    Box::pin(stop_each(nodes))
}

async fn stop_each(mut nodes: Vec<Node>) -> Result<(), String> {
    if nodes.len() > 1 {
        let members = nodes.iter_mut().filter_map(|node| node.member.cluster.take());
        join_all(members.map(ClusterTask::leave_with_all)).await;
    }
    join_all(nodes.into_iter().map(stop)).await.into_iter().collect()
}

/// Stops a node. What it accepted is committed and answered. Fails if a task of the engine has panicked, with
/// what it said.
pub async fn stop(node: Node) -> Result<(), String> {
    // 1. Not ready any more: load balancers send new calls elsewhere. Calls that still arrive are served.
    node.readiness.abort();
    let _ = node.readiness.await;
    node.info.serving.send_replace(false);
    node.grpc.health().set(false).await;
    tracing::info!(drain = ?node.drain, "stopping");
    tokio::time::sleep(node.drain).await;

    // 2. The cluster: other nodes take the shards over, one by one. Then the engine: it refuses new work,
    // answers long polls empty, commits and answers what it accepted, and releases the shards.
    node.tasks.iter().for_each(JoinHandle::abort);
    let timeout = ENGINE_STOP_TIMEOUT.saturating_sub(node.drain);
    let Member { cluster, peers } = node.member;
    let stopped = async {
        if let Some(cluster) = cluster {
            // The engine needs the rest to commit and answer.
            cluster.leave(timeout / 3).await;
        }
        node.engine.stop().await;
    };
    if tokio::time::timeout(timeout, stopped).await.is_err() {
        tracing::error!(
            "shard not released before the drain timeout; the next owner resolves its last batch"
        );
    }

    let failure = node.engine.failure();

    // 3. The ports, once the responses are sent.
    if let Some(peers) = peers {
        peers.close(PEER_CLOSE_TIMEOUT).await;
    }
    node.grpc.close(GRPC_CLOSE_TIMEOUT).await;
    node.http.close(HTTP_CLOSE_TIMEOUT).await;

    // 4. The spans of what was answered.
    if let Some(exporting) = node.exporting {
        exporting.close(SPANS_SEND_TIMEOUT).await;
    }
    if let Some(panic) = failure {
        return Err(panic);
    }
    tracing::info!("stopped");
    Ok(())
}
