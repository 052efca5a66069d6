//! MoveShard.

use std::sync::Arc;

use forebay_config::Config;
use forebay_proto::v1;
use forebay_types::{Refusal, ShardId};

use super::{context::Admin, ctx::Ctx};
use crate::cluster::{self, OperateError};

/// Serves MoveShard.
pub async fn move_to(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::MoveShardRequest,
) -> Result<v1::MoveShardResponse, Refusal> {
    let v1::MoveShardRequest { shard_id, node, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason);
    let to = Some(node).filter(|node| !node.is_empty());
    let pins = to.is_some();
    let change = |config: Arc<Config>| async move {
        match cluster::pin(&config, shard_id, to.as_deref(), dry_run).await {
            // To repeat the call does no harm.
            Err(OperateError::NotPinned(_)) => Ok(None),
            pinned => pinned.map(Some),
        }
    };
    let home = operator.change(change).await?;
    let id = ShardId(shard_id);
    if let Some(home) = home.filter(|_| !dry_run) {
        let who = &*ctx.caller.id;
        tracing::info!(shard.id = shard_id, pins, %home, who, reason, "the pin of shard {id} was changed");
        let is_seen = |it: &forebay_membership::ShardHome| {
            it.id == id && it.pinned == pins && (!pins || it.home.as_ref() == Some(&home))
        };
        operator.seen(|seen| seen.shards.iter().any(is_seen)).await;
    }
    Ok(v1::MoveShardResponse { shard: admin.shard(id).await })
}
