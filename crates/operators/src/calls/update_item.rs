//! UpdateItem.

use bytes::Bytes;
use forebay_edge::rpc::fields;
use forebay_engine::{ChangeCall, ItemChange, ItemUpdate};
use forebay_peers::looks::items::state_message;
use forebay_proto::v1::{self, update_item_request::Schedule as WireSchedule};
use forebay_types::{ItemId, Limits, Refusal, Schedule, cut_text};

use super::{context::Admin, ctx::Ctx};

/// The longest reason.
const REASON_BYTES: usize = 1 << 10;
/// Bytes that the answer may take between nodes.
const ANSWER_BYTES: usize = 256;

/// Serves the call.
pub async fn update(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::UpdateItemRequest,
) -> Result<v1::UpdateItemResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let id: ItemId =
        request.item_id.parse().map_err(|error| Refusal::field("item_id", format!("{error}")))?;
    cut_text(&mut request.reason, REASON_BYTES);
    let update = values(&admin.rules.limits, &request)?;
    ctx.call.reserve_answers(1)?;
    let _look = admin.gather.admit(&namespace, ANSWER_BYTES)?;
    let change = ItemChange::Update(update);
    let change = ChangeCall { namespace, items: vec![id], change, dry_run: request.dry_run };
    let changed = admin.gather.change_items(&change).await.pop();
    let state = changed.unwrap_or_else(|| Err(super::items::not_found(id)))?;
    if !request.dry_run {
        let (namespace, who, reason) = (&*change.namespace, &*ctx.caller.id, &*request.reason);
        tracing::info!(namespace, who, item = %id, reason, "an item was updated");
    }
    Ok(v1::UpdateItemResponse { state: state_message(state).into() })
}

/// Values that an item is to have. At least one must be given.
pub fn values(limits: &Limits, request: &v1::UpdateItemRequest) -> Result<ItemUpdate, Refusal> {
    let schedule = match &request.schedule {
        None => None,
        Some(WireSchedule::Delay(delay)) => {
            let delay = fields::delay(limits, "delay", delay)?;
            Some(if delay.is_zero() { Schedule::Now } else { Schedule::Delay(delay) })
        }
        Some(WireSchedule::DeliverAfter(time)) => {
            Some(Schedule::After(fields::timestamp("deliver_after", time)?))
        }
    };
    let metadata = request.metadata.as_deref().map(|metadata| {
        fields::bytes("metadata", metadata.len(), limits.metadata_bytes)?;
        // As it came it holds on to the whole request's memory.
        Ok(Bytes::copy_from_slice(metadata))
    });
    let ttl = request.ttl.as_ref().map(|ttl| fields::ttl(limits, "ttl", ttl)).transpose()?;
    if let (Some(Schedule::Delay(delay)), Some(ttl)) = (schedule, ttl)
        && delay >= ttl
    {
        return Err(Refusal::field("delay", "must be shorter than the ttl"));
    }
    let update = ItemUpdate { priority: request.priority, schedule, metadata: metadata.transpose()?, ttl };
    match update == ItemUpdate::default() {
        true => Err(Refusal::field("priority", "or another value of the item must be given: nothing is")),
        false => Ok(update),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::{Reason, Timestamp};

    use super::*;

    fn seconds(seconds: i64) -> prost_types::Duration {
        prost_types::Duration { seconds, nanos: 0 }
    }

    fn checked(request: v1::UpdateItemRequest) -> Result<ItemUpdate, Refusal> {
        values(&Limits::default(), &request)
    }

    #[track_caller]
    fn refused(request: v1::UpdateItemRequest, reason: Reason, field: &str) {
        let refusal = checked(request).unwrap_err();
        assert_eq!((refusal.reason, refusal.field.as_deref()), (reason, Some(field)));
    }

    #[test]
    fn what_is_absent_stays_and_what_is_empty_is_a_value() {
        let none = v1::UpdateItemRequest::default();
        let update = checked(v1::UpdateItemRequest { priority: Some(0), ..none.clone() }).unwrap();
        assert_eq!(update, ItemUpdate { priority: Some(0), ..ItemUpdate::default() });
        let empty = checked(v1::UpdateItemRequest { metadata: Some(Bytes::new()), ..none.clone() }).unwrap();
        assert_eq!(empty.metadata, Some(Bytes::new()));
        let after = prost_types::Timestamp { seconds: 9, nanos: 0 };
        let later = v1::UpdateItemRequest {
            schedule: Some(WireSchedule::DeliverAfter(after)),
            ttl: Some(seconds(60)),
            ..none.clone()
        };
        let later = checked(later).unwrap();
        assert_eq!(later.schedule, Some(Schedule::After(Timestamp::from_micros(9_000_000))));
        assert_eq!(later.ttl, Some(Duration::from_secs(60)));
        let now = v1::UpdateItemRequest { schedule: Some(WireSchedule::Delay(seconds(0))), ..none.clone() };
        assert_eq!(checked(now).unwrap().schedule, Some(Schedule::Now));
        refused(none, Reason::InvalidField, "priority");
    }

    #[test]
    fn each_wrong_value_is_named() {
        let none = v1::UpdateItemRequest::default();
        let metadata = Some(vec![0; Limits::default().metadata_bytes + 1].into());
        refused(v1::UpdateItemRequest { metadata, ..none.clone() }, Reason::TooLarge, "metadata");
        let delay =
            |span| v1::UpdateItemRequest { schedule: Some(WireSchedule::Delay(span)), ..none.clone() };
        refused(delay(seconds(-1)), Reason::InvalidField, "delay");
        refused(delay(seconds(367 * 86_400)), Reason::InvalidField, "delay");
        refused(
            v1::UpdateItemRequest { ttl: Some(seconds(9)), ..delay(seconds(9)) },
            Reason::InvalidField,
            "delay",
        );
        for ttl in [seconds(0), seconds(-5), seconds(367 * 86_400)] {
            refused(v1::UpdateItemRequest { ttl: Some(ttl), ..none.clone() }, Reason::InvalidField, "ttl");
        }
        let never = prost_types::Timestamp { seconds: i64::MAX, nanos: 0 };
        let never = v1::UpdateItemRequest { schedule: Some(WireSchedule::DeliverAfter(never)), ..none };
        refused(never, Reason::InvalidField, "deliver_after");
    }
}
