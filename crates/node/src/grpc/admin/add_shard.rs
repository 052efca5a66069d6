//! AddShard.

use std::sync::Arc;

use forebay_access::Identity;
use forebay_proto::v1::{self, ShardState};
use forebay_types::{Refusal, ShardId};

use super::context::Admin;
use crate::{
    cluster::{self, Servers},
    config::Config,
};

/// Serves AddShard. A file would be one on this node's machine: those are added there.
pub async fn add(
    admin: &Admin,
    caller: &Identity,
    request: v1::AddShardRequest,
) -> Result<v1::AddShardResponse, Refusal> {
    let v1::AddShardRequest { url, request_id, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason, &request_id)?;
    if !url.starts_with("mysql://") {
        let message =
            "must begin with mysql://; a file is added with `forebay shard add --config` on its machine";
        return Err(Refusal::field("url", message));
    }
    let change = |config: Arc<Config>| async move {
        cluster::add_shard(&config, &url, Servers::Known, dry_run).await.map(|(id, _)| id)
    };
    let id: Option<ShardId> = operator.add(change).await?;
    let Some(id) = id else { return Ok(v1::AddShardResponse { shard: Some(active(0)) }) };
    if !dry_run {
        let who = &*caller.id;
        tracing::info!(shard.id = id.0, who, reason, "shard {id} was added");
        operator.seen(|seen| seen.shards.iter().any(|it| it.id == id)).await;
    }
    Ok(v1::AddShardResponse { shard: Some(admin.shard(id).await.unwrap_or_else(|| active(id.0))) })
}

/// A shard of which the node knows no more yet.
fn active(id: u32) -> v1::Shard {
    v1::Shard { id, state: ShardState::Active.into(), ..v1::Shard::default() }
}
