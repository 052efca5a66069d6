//! What an operation gives items.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::v1::{self, operation_update::Schedule as Proto};

use crate::{
    durations::{from_proto, time_from_proto, time_to_proto, to_proto},
    item::Schedule,
};

/// What items are to have. What is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationUpdate {
    /// Smaller numbers are delivered first.
    pub priority: Option<i32>,
    /// When they may be delivered. A span counts from the change of each item.
    pub schedule: Option<Schedule>,
    /// More content beside the payload. An operation that is asked for does not show it.
    pub metadata: Option<Bytes>,
    /// They expire so long after the change of each item.
    pub ttl: Option<Duration>,
    /// Of an operation that is asked for: bytes of the metadata.
    pub metadata_bytes: Option<u32>,
}

impl From<OperationUpdate> for v1::OperationUpdate {
    fn from(update: OperationUpdate) -> Self {
        let OperationUpdate { priority, schedule, metadata, ttl, metadata_bytes } = update;
        let schedule = schedule.map(|schedule| match schedule {
            Schedule::Now => Proto::Delay(prost_types::Duration::default()),
            Schedule::After(delay) => Proto::Delay(to_proto(delay)),
            Schedule::At(at) => Proto::DeliverAfter(time_to_proto(at)),
        });
        Self { priority, schedule, metadata, ttl: ttl.map(to_proto), metadata_bytes }
    }
}

impl From<v1::OperationUpdate> for OperationUpdate {
    fn from(update: v1::OperationUpdate) -> Self {
        let v1::OperationUpdate { priority, schedule, metadata, ttl, metadata_bytes } = update;
        let schedule = schedule.map(|schedule| match schedule {
            Proto::Delay(delay) => Schedule::After(from_proto(delay)),
            Proto::DeliverAfter(at) => Schedule::At(time_from_proto(at)),
        });
        Self { priority, schedule, metadata, ttl: ttl.map(from_proto), metadata_bytes }
    }
}
