//! GetHistory.

use forebay_engine::Engine;
use forebay_proto::{peer, v1};
use forebay_types::{Namespace, Refusal};

use super::{Look, Part};
use crate::history::History;

impl Look for peer::GetHistoryRequest {
    const NAME: &'static str = "GetHistory";
    type Answer = v1::GetHistoryResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    async fn look(self, engine: &Engine, history: &History) -> Result<Part<Self::Answer>, Refusal> {
        // Shards that this node owns for certain.
        let shards = engine.owned_shards(self.caller()).await?;
        Ok(Part::new(history.answer(&self), shards))
    }
}

/// The number of the step that begins at a time, of steps of so many seconds. `None`: there is no such step.
pub fn step_of(at: Option<&prost_types::Timestamp>, step: u32) -> Option<u64> {
    u64::try_from(at?.seconds).ok()?.checked_div(step.into())
}
