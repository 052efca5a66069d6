//! Whether the node is ready: it is as long as calls reach a shard, its own or one of a linked node.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Engine, ShardCounts};
use forebay_web::NodeInfo;

use crate::grpc::Health;

/// How long a node that begins to serve waits for the shards that it has not looked at yet. They are owned a
/// moment later, and calls need not be refused meanwhile.
const FIRST_LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// Follows what the engine serves, and sets what `/readyz` and health checks answer. Ends with the engine.
pub async fn follow(engine: Engine, health: Health, info: Arc<NodeInfo>) {
    let mut served = engine.served();
    if served.wait_for(serves).await.is_ok() {
        let looked_at = served.wait_for(|served: &ShardCounts| served.starting == 0);
        let _ = tokio::time::timeout(FIRST_LOOK_TIMEOUT, looked_at).await;
    }
    loop {
        let now = *served.borrow_and_update();
        set(&health, &info, now).await;
        if served.changed().await.is_err() {
            return;
        }
    }
}

/// Calls reach a shard.
fn serves(now: &ShardCounts) -> bool {
    now.owned > 0 || now.linked > 0
}

async fn set(health: &Health, info: &NodeInfo, now: ShardCounts) {
    let ready = serves(&now);
    if info.serving.send_replace(ready) == ready {
        return;
    }
    health.set(ready).await;
    if ready {
        tracing::info!(shards = now.owned, elsewhere = now.linked, "ready");
    } else {
        tracing::warn!("not ready: this node owns no shard, and reaches no node that owns one");
    }
}
