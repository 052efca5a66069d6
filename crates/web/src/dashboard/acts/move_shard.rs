//! Moves a shard to a node and pins it there, or ends its pin.

use axum::response::Response;
use forebay_proto::v1::MoveShardRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    drain_shard::{shard_id, undoes},
};

/// Serves `POST /move-shard`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(move_shard(&asked).await)
}

async fn move_shard(asked: &PageRequest) -> Result<String, Trouble> {
    let (id, node) = (asked.fields.get("id"), asked.fields.get("node"));
    let undo = undoes(asked.fields.get("undo"))?;
    // For the call an empty name ends the pin, which a form says with a field of its own.
    if node.is_empty() != undo {
        return Err(Trouble::field("node", "must name a node, or be absent where a pin is ended"));
    }
    let request = MoveShardRequest {
        shard_id: shard_id(id)?,
        node: node.to_owned(),
        reason: asked.fields.get("reason").to_owned(),
        ..MoveShardRequest::default()
    };
    asked.ask(request).await?;
    Ok(told("shards", &[("id", id)], if undo { "unpinned" } else { "moved" }))
}
