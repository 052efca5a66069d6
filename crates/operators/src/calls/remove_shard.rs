//! RemoveShard.

use std::sync::Arc;

use forebay_config::Config;
use forebay_proto::v1;
use forebay_types::{Refusal, ShardId};

use super::{context::Admin, ctx::Ctx};
use crate::cluster;

/// Serves RemoveShard.
pub async fn remove(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::RemoveShardRequest,
) -> Result<v1::RemoveShardResponse, Refusal> {
    let v1::RemoveShardRequest { shard_id, lost, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason);
    let id = ShardId(shard_id);
    let before = admin.shard(id).await;
    let change =
        |config: Arc<Config>| async move { cluster::remove_shard(&config, shard_id, lost, dry_run).await };
    let was_there = operator.change(change).await?;
    if was_there && !dry_run {
        let who = &*ctx.caller.id;
        tracing::warn!(shard.id = shard_id, lost, who, reason, "shard {id} was removed");
        operator.seen(|seen| seen.shards.iter().all(|it| it.id != id)).await;
    }
    let removed = || before.unwrap_or_else(|| v1::Shard { id: shard_id, ..v1::Shard::default() });
    Ok(v1::RemoveShardResponse { shard: was_there.then(removed) })
}
