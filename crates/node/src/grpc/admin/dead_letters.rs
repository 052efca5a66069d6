//! GroupDeadLetters.

use forebay_engine::{DeadGroups, DeadGroupsCall};
use forebay_proto::v1;
use forebay_types::Refusal;
use prost::Message as _;

use super::context::Admin;
use crate::{
    grpc::{admission::Call, fields},
    peers::wire::dead_groups::shown,
};

/// Dead letters of one shard that are looked at, if the request does not say, and at most.
const WINDOW: usize = 10_000;
/// Groups of one answer.
const GROUPS_MAX: usize = 200;
/// What the groups of one node may take.
const GROUPS_BYTES: usize = 2 << 20;

/// Serves GroupDeadLetters.
pub async fn group(
    admin: &Admin,
    call: &Call,
    request: v1::GroupDeadLettersRequest,
) -> Result<v1::GroupDeadLettersResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let topic = match request.topic.as_str() {
        "" => None,
        topic => Some(fields::topic(&admin.rules.limits, "topic", topic)?),
    };
    let window = match request.window as usize {
        0 => WINDOW,
        window => window.min(WINDOW),
    };
    let _look = admin.gather.admit(&namespace, GROUPS_BYTES)?;
    let found = admin.gather.dead_groups(&DeadGroupsCall { namespace, topic, window }).await?;
    let DeadGroups { mut groups, looked_at, mut ungrouped, total, topics_cut, shards } = found;
    ungrouped += groups.iter().skip(GROUPS_MAX).map(|group| group.count).sum::<u64>();
    groups.truncate(GROUPS_MAX);
    let groups: Vec<v1::DeadLetterGroup> = groups.into_iter().map(shown).collect();
    call.reserve_answer(groups.iter().map(v1::DeadLetterGroup::encoded_len).sum())?;
    let shards = shards.into_iter().map(|id| id.0).collect();
    Ok(v1::GroupDeadLettersResponse {
        groups,
        looked_at,
        total,
        ungrouped,
        topics_cut,
        incomplete_shards: admin.gather.incomplete(&shards).await,
    })
}
