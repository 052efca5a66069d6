//! Groups of dead letters, as operators look at them.

use forebay_engine::{DeadGroup, DeadGroups, DeadGroupsCall};
use forebay_proto::{peer, v1};
use forebay_types::{ShardId, Timestamp};

use crate::grpc::to_timestamp;

/// A request to another node.
pub fn request(call: &DeadGroupsCall) -> peer::GroupDeadLettersRequest {
    peer::GroupDeadLettersRequest {
        namespace: call.namespace.to_string(),
        topic: call.topic.as_deref().map(str::to_owned),
        window: u32::try_from(call.window).unwrap_or(u32::MAX),
    }
}

/// A request of another node.
pub fn call(request: peer::GroupDeadLettersRequest) -> DeadGroupsCall {
    let peer::GroupDeadLettersRequest { namespace, topic, window } = request;
    DeadGroupsCall { namespace: namespace.into(), topic: topic.map(Into::into), window: window as usize }
}

/// What this node has, as another one is told.
pub fn response(found: DeadGroups) -> peer::GroupDeadLettersResponse {
    let DeadGroups { groups, looked_at, ungrouped, total, topics_cut, shards } = found;
    let group = |group: DeadGroup| peer::DeadLetterGroup {
        first_micros: group.first.as_micros(),
        last_micros: group.last.as_micros(),
        fingerprint: group.fingerprint,
        reason: group.reason,
        count: group.count,
        topics: group.topics.iter().map(ToString::to_string).collect(),
        topics_cut: group.topics_cut,
        samples: group.samples.iter().map(ToString::to_string).collect(),
    };
    peer::GroupDeadLettersResponse {
        groups: groups.into_iter().map(group).collect(),
        looked_at,
        ungrouped,
        total,
        topics_cut,
        shards: shards.into_iter().map(|id| id.0).collect(),
    }
}

/// What another node has.
pub fn found(response: peer::GroupDeadLettersResponse) -> DeadGroups {
    let peer::GroupDeadLettersResponse { groups, looked_at, ungrouped, total, topics_cut, shards } = response;
    let group = |group: peer::DeadLetterGroup| DeadGroup {
        fingerprint: group.fingerprint,
        reason: group.reason,
        count: group.count,
        topics: group.topics.into_iter().map(Into::into).collect(),
        topics_cut: group.topics_cut,
        first: Timestamp::from_micros(group.first_micros),
        last: Timestamp::from_micros(group.last_micros),
        samples: group.samples.iter().filter_map(|id| id.parse().ok()).collect(),
    };
    DeadGroups {
        groups: groups.into_iter().map(group).collect(),
        looked_at,
        ungrouped,
        total,
        topics_cut,
        shards: shards.into_iter().map(ShardId).collect(),
    }
}

/// A group as callers see it.
pub fn shown(group: DeadGroup) -> v1::DeadLetterGroup {
    v1::DeadLetterGroup {
        fingerprint: group.fingerprint,
        reason: group.reason,
        count: group.count,
        topics: group.topics.iter().map(ToString::to_string).collect(),
        topics_cut: group.topics_cut,
        first_died_at: Some(to_timestamp(group.first)),
        last_died_at: Some(to_timestamp(group.last)),
        sample_item_ids: group.samples.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_arrive_as_they_were() {
        let group = DeadGroup {
            fingerprint: "0123456789abcdef".to_owned(),
            reason: "timeout after <n> s".to_owned(),
            count: 3,
            topics: vec!["a".into(), "b".into()],
            topics_cut: true,
            first: Timestamp::from_micros(-5),
            last: Timestamp::from_micros(9),
            samples: vec!["3-1041".parse().unwrap()],
        };
        let groups = DeadGroups {
            groups: vec![group],
            looked_at: 3,
            ungrouped: 1,
            total: 9,
            topics_cut: true,
            shards: vec![ShardId(7)],
        };
        assert_eq!(found(response(groups.clone())), groups);
        for topic in [None, Some("t".into())] {
            let asked = DeadGroupsCall { namespace: "ns".into(), topic, window: 7 };
            assert_eq!(call(request(&asked)), asked);
        }
    }
}
