//! Moves all shards away from a node, or lets it own shards again.

use axum::response::Response;
use forebay_proto::v1::DrainNodeRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    drain_shard::undoes,
};

/// Serves `POST /drain-node`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(drain(&asked).await)
}

async fn drain(asked: &PageRequest) -> Result<String, Trouble> {
    let node = asked.fields.get("node");
    if node.is_empty() {
        return Err(Trouble::field("node", "must name a node"));
    }
    let undo = undoes(asked.fields.get("undo"))?;
    let request = DrainNodeRequest {
        node: node.to_owned(),
        undo,
        reason: asked.fields.get("reason").to_owned(),
        ..DrainNodeRequest::default()
    };
    asked.ask(request).await?;
    Ok(told("nodes", &[], if undo { "node-active" } else { "drained" }))
}
