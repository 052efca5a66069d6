//! Helpers that the calls share that change shards and nodes.

use forebay_proto::v1;
use forebay_types::{Reason, Refusal, ShardId, cut_text};

use super::{
    cluster,
    context::{Admin, REASON_BYTES},
};
use crate::cluster::Operator;

impl Admin {
    /// Operator that makes such a change. `reason`: why it is made. It is cut, if it is too long.
    pub(super) fn operator(&self, reason: &mut String) -> Result<&Operator, Refusal> {
        cut_text(reason, REASON_BYTES);
        let no_catalog = "the node has a static list of shards and no catalog: there is nothing to change";
        self.operator.as_ref().ok_or_else(|| Refusal::new(Reason::NoCatalog, no_catalog))
    }

    /// A shard as the node sees it.
    pub(super) async fn shard(&self, id: ShardId) -> Option<v1::Shard> {
        let (shards, state) = (self.own_shards().await, self.cluster());
        let home = state.as_ref().and_then(|state| state.shards.iter().find(|home| home.id == id));
        let status = shards.iter().find(|status| status.id == id.0)?;
        Some(cluster::shard(status, home, state.is_some(), &self.alone.name))
    }
}
