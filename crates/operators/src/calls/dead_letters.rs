//! GroupDeadLetters.

use forebay_edge::rpc::fields;
use forebay_proto::v1;
use forebay_types::Refusal;
use prost::Message as _;

use super::{context::Admin, ctx::Ctx};

/// Dead letters of one shard that are looked at, if the request does not say, and at most.
const WINDOW: u32 = 10_000;
/// Bytes that the groups of one node may take.
const GROUPS_BYTES: usize = 2 << 20;

/// Serves GroupDeadLetters.
pub async fn group(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GroupDeadLettersRequest,
) -> Result<v1::GroupDeadLettersResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    if !request.topic.is_empty() {
        fields::topic(&admin.rules.limits, "topic", &request.topic)?;
    }
    let asked = v1::GroupDeadLettersRequest {
        namespace: namespace.to_string(),
        window: if request.window == 0 { WINDOW } else { request.window.min(WINDOW) },
        ..request
    };
    let _look = admin.gather.admit(&namespace, GROUPS_BYTES)?;
    let found = admin.gather.dead_groups(&asked).await?;
    ctx.call.reserve_answer(found.groups.iter().map(v1::DeadLetterGroup::encoded_len).sum())?;
    Ok(found)
}
