//! Helpers that the calls share that change shards and nodes.

use forebay_proto::v1;
use forebay_types::{ShardId, cut_text};

use super::{
    cluster,
    context::{Admin, REASON_BYTES},
};
use crate::cluster::Operator;

impl Admin {
    /// Operator that makes such a change. `reason`: why it is made. It is cut, if it is too long.
    pub(super) fn operator(&self, reason: &mut String) -> &Operator {
        cut_text(reason, REASON_BYTES);
        &self.operator
    }

    /// A shard as the node sees it.
    pub(super) async fn shard(&self, id: ShardId) -> Option<v1::Shard> {
        let (shards, state) = (self.own_shards().await, self.cluster());
        let home = state.shards.iter().find(|home| home.id == id);
        let status = shards.iter().find(|status| status.id == id.0)?;
        Some(cluster::shard(status, home))
    }
}
