//! DrainShard.

use std::sync::Arc;

use forebay_config::Config;
use forebay_proto::v1;
use forebay_types::{Refusal, ShardId};

use super::{context::Admin, ctx::Ctx};
use crate::cluster;

/// Serves DrainShard.
pub async fn drain(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::DrainShardRequest,
) -> Result<v1::DrainShardResponse, Refusal> {
    let v1::DrainShardRequest { shard_id, undo, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason);
    let draining = !undo;
    let change =
        |config: Arc<Config>| async move { cluster::drain_shard(&config, shard_id, draining, dry_run).await };
    operator.change(change).await?;
    let id = ShardId(shard_id);
    if !dry_run {
        let who = &*ctx.caller.id;
        tracing::info!(shard.id = shard_id, draining, who, reason, "the state of shard {id} was changed");
        let state = if draining { "draining" } else { "active" };
        operator.seen(|seen| seen.shards.iter().any(|it| it.id == id && it.state == state)).await;
    }
    Ok(v1::DrainShardResponse { shard: admin.shard(id).await })
}
