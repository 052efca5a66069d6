//! The order of shutdown. It ends within 25 s, whatever clients and databases do.

use std::{sync::atomic::Ordering, time::Duration};

use crate::node::Node;

/// Pause for balancers and engine together.
const ENGINE_DONE: Duration = Duration::from_secs(21);
/// Answers that are under way may still arrive for so long.
const ANSWERS_DONE: Duration = Duration::from_secs(2);
/// The same for pages.
const PAGES_DONE: Duration = Duration::from_millis(500);

/// Stops a node: what it accepted is committed and answered.
pub async fn stop(node: Node) {
    // 1. Not ready any more: balancers send new calls elsewhere, calls that come are still served.
    node.facts.serving.store(false, Ordering::Release);
    node.grpc.set_serving(false).await;
    tracing::info!(pause = ?node.drain, "stopping");
    tokio::time::sleep(node.drain).await;

    // 2. The engine: no new work, long polls answered empty, what was accepted committed and answered, the
    //    shards given up.
    let patience = ENGINE_DONE.saturating_sub(node.drain);
    if tokio::time::timeout(patience, node.engine.stop()).await.is_err() {
        tracing::error!("a shard did not let go in time; whoever takes it over sorts out what it was doing");
    }

    // 3. The ports, once the answers have left.
    node.grpc.close(ANSWERS_DONE).await;
    node.http.close(PAGES_DONE).await;
    tracing::info!("stopped");
}
