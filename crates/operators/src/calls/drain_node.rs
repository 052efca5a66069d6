//! DrainNode.

use std::sync::Arc;

use forebay_config::Config;
use forebay_proto::v1;
use forebay_types::Refusal;

use super::{context::Admin, ctx::Ctx};
use crate::cluster;

/// Serves DrainNode.
pub async fn drain(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::DrainNodeRequest,
) -> Result<v1::DrainNodeResponse, Refusal> {
    let v1::DrainNodeRequest { node: name, undo, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason);
    let (draining, of) = (!undo, name.clone());
    let change =
        |config: Arc<Config>| async move { cluster::drain_node(&config, &of, draining, dry_run).await };
    operator.change(change).await?;
    if !dry_run {
        let who = &*ctx.caller.id;
        tracing::info!(node = name, draining, who, reason, "whether node {name} drains was changed");
        operator.seen(|seen| seen.nodes.iter().any(|it| it.name == name && it.draining == draining)).await;
    }
    let state = admin.cluster();
    let nodes = admin.nodes(&state).await;
    Ok(v1::DrainNodeResponse { node: nodes.into_iter().find(|it| it.name == name) })
}
