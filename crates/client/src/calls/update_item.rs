//! UpdateItem: an item that waits gets other values.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::v1::{self, update_item_request::Schedule as Proto};

use super::items::{ItemState, state_of};
use crate::{client::Client, durations, error::Error, item::Schedule};

/// What an item is to have. At least one value must be given; what is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemUpdate {
    /// Smaller numbers are delivered first.
    pub priority: Option<i32>,
    /// When it may be delivered. A span counts from the change.
    pub schedule: Option<Schedule>,
    /// More content beside the payload.
    pub metadata: Option<Bytes>,
    /// It expires so long after the change.
    pub ttl: Option<Duration>,
    /// Why, for the log of the node.
    pub reason: String,
    /// Only look whether it can be done.
    pub dry_run: bool,
}

impl Client {
    /// Changes an item that is ready or scheduled, and says which of them it is then. One that is leased or
    /// dead is refused.
    pub async fn update_item(&self, item_id: &str, update: ItemUpdate) -> Result<ItemState, Error> {
        let ItemUpdate { priority, schedule, metadata, ttl, reason, dry_run } = update;
        let request = v1::UpdateItemRequest {
            namespace: self.config.namespace.clone(),
            item_id: item_id.to_owned(),
            priority,
            schedule: schedule.map(|schedule| match schedule {
                Schedule::Now => Proto::Delay(prost_types::Duration::default()),
                Schedule::After(delay) => Proto::Delay(durations::to_proto(delay)),
                Schedule::At(at) => Proto::DeliverAfter(durations::time_to_proto(at)),
            }),
            metadata,
            ttl: ttl.map(durations::to_proto),
            reason,
            dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.update_item(request).await }
            })
            .await?;
        // A state of a later release stands for one in which it waits.
        Ok(state_of(answer.state()).unwrap_or(ItemState::Ready))
    }
}
