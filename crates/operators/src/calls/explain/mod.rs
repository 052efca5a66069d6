//! ExplainTopic and ExplainItem: why items are not delivered, in the order in which what keeps them would
//! have to go.

mod item;
mod paused;
mod topic;
mod words;

use forebay_edge::rpc::fields;
use forebay_proto::v1::{self, BlockerCode};
use forebay_types::{ItemId, Refusal, Side, TopicName};
use prost::Message as _;

use self::words::FoundBlocker;
use super::{context::Admin, ctx::Ctx};

/// Bytes that the standings of one node may take.
const STANDING_BYTES: usize = 64 << 10;

/// Serves ExplainTopic.
pub(crate) async fn serve_topic(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ExplainTopicRequest,
) -> Result<v1::ExplainTopicResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic = fields::topic(&admin.rules.limits, "topic", &request.topic)?;
    let _look = admin.gather.admit(&namespace, STANDING_BYTES)?;
    let name = TopicName { namespace, topic };
    let (nodes, unserved) = admin.gather.standing(&name).await?;
    let incomplete_shards = unserved.iter().map(|it| it.shard.0).collect();
    let found = with_pauses(admin, &name, topic::blockers(&nodes, &unserved)).await?;
    let blockers = found.into_iter().map(FoundBlocker::message).collect();
    let answer = v1::ExplainTopicResponse { blockers, incomplete_shards };
    ctx.call.reserve_answer(answer.encoded_len())?;
    Ok(answer)
}

/// Adds the pauses of the topic: of deliveries, and of new items if nothing is there that could be delivered.
async fn with_pauses(
    admin: &Admin,
    name: &TopicName,
    mut found: Vec<FoundBlocker>,
) -> Result<Vec<FoundBlocker>, Refusal> {
    let mut paused = paused::pauses(admin, name, Side::Dequeue).await?;
    if !paused.is_empty() {
        found.retain(|one| one.code != BlockerCode::Deliverable);
    }
    if found.iter().any(|one| one.code == BlockerCode::NothingReady) {
        paused.extend(paused::pauses(admin, name, Side::Enqueue).await?);
    }
    paused.extend(found);
    Ok(paused)
}

/// Serves ExplainItem.
pub(crate) async fn serve_item(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ExplainItemRequest,
) -> Result<v1::ExplainItemResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let id: ItemId =
        request.item_id.parse().map_err(|error| Refusal::field("item_id", format!("{error}")))?;
    let _look = admin.gather.admit(&namespace, STANDING_BYTES)?;
    let (found, topic) = item::blockers(admin, &namespace, id).await?;
    let blockers = found.into_iter().map(FoundBlocker::message).collect();
    let answer = v1::ExplainItemResponse { blockers, topic };
    ctx.call.reserve_answer(answer.encoded_len())?;
    Ok(answer)
}
