//! ExplainTopic and ExplainItem: why items are not delivered, in the order in which what keeps them would
//! have to go.

mod item;
mod topic;
mod words;

use forebay_proto::v1;
use forebay_types::{ItemId, Refusal, TopicName};
use prost::Message as _;

use self::words::Found;
use super::context::Admin;
use crate::grpc::{admission::Call, fields};

/// What the standings of one node may take.
const STANDING_BYTES: usize = 64 << 10;

/// Serves ExplainTopic.
pub async fn serve_topic(
    admin: &Admin,
    call: &Call,
    request: v1::ExplainTopicRequest,
) -> Result<v1::ExplainTopicResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let topic = fields::topic(&admin.rules.limits, "topic", &request.topic)?;
    let _look = admin.gather.admit(&namespace, STANDING_BYTES)?;
    let (nodes, unserved) = admin.gather.standing(&TopicName { namespace, topic }).await?;
    let incomplete_shards = unserved.iter().map(|it| it.shard.0).collect();
    let blockers = topic::blockers(&nodes, &unserved).into_iter().map(Found::message).collect();
    let answer = v1::ExplainTopicResponse { blockers, incomplete_shards };
    call.reserve_answer(answer.encoded_len())?;
    Ok(answer)
}

/// Serves ExplainItem.
pub async fn serve_item(
    admin: &Admin,
    call: &Call,
    request: v1::ExplainItemRequest,
) -> Result<v1::ExplainItemResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let id: ItemId =
        request.item_id.parse().map_err(|error| Refusal::field("item_id", format!("{error}")))?;
    let _look = admin.gather.admit(&namespace, STANDING_BYTES)?;
    let (found, topic) = item::blockers(admin, &namespace, id).await?;
    let blockers = found.into_iter().map(Found::message).collect();
    let answer = v1::ExplainItemResponse { blockers, topic };
    call.reserve_answer(answer.encoded_len())?;
    Ok(answer)
}
