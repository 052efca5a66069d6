//! Why an item is not delivered.

use forebay_engine::BehindCall;
use forebay_proto::{
    time::from_timestamp,
    v1::{self, BlockerCode, ItemState},
};
use forebay_types::{ItemId, Key, Namespace, Refusal, ShardId, Side, Timestamp, TopicName};

use super::{
    paused, topic,
    words::{FoundBlocker, consumer, items, node},
};
use crate::{
    calls::context::Admin,
    gather::{NodeStanding, UnservedShard},
};

/// The most items before it that are counted.
const BEHIND_MAX: u64 = 10_000;

/// Causes that keep an item, and its topic. The topic is empty if the item was not found.
pub async fn blockers(
    admin: &Admin,
    namespace: &Namespace,
    id: ItemId,
) -> Result<(Vec<FoundBlocker>, String), Refusal> {
    let item = match admin.gather.item(namespace, id, 0).await? {
        Some(Some(item)) => item,
        None if admin.gather.knows(id.shard) => {
            let owner = admin.gather.owner(id.shard);
            return Ok((vec![topic::unserved(&UnservedShard { shard: id.shard, owner })], String::new()));
        }
        _ => return Ok((vec![gone(id)], String::new())),
    };
    let topic = item.topic.clone();
    if let Some(found) = of_item(&item, id.shard, admin.clock.wall()) {
        return Ok((vec![found], topic));
    }
    let name = TopicName::new(namespace.clone(), topic.as_str());
    let (nodes, _) = admin.gather.standing(&name).await?;
    let owns = |it: &&NodeStanding| it.shards.iter().any(|one| one.shard == id.shard);
    let Some(mut at) = nodes.iter().find(owns).cloned() else {
        let owner = admin.gather.owner(id.shard);
        return Ok((vec![topic::unserved(&UnservedShard { shard: id.shard, owner })], topic));
    };
    let rank = item.ready_at.map(from_timestamp).map_or(0, Timestamp::as_micros);
    let key = Key { priority: item.priority, rank, seq: id.seq };
    let mut paused = paused::pauses(admin, &name, Side::Dequeue).await?;
    let before = admin.gather.count_before(&BehindCall { name, id, key }, &at.node).await?;
    // A poll takes from all shards of the node. What else other shards hold does not keep it.
    let no_consumer = topic::no_consumer(&at, &nodes);
    at.shards.retain(|one| one.shard == id.shard);
    // A pause would have to go first.
    paused.extend(of_ready(&at, no_consumer, before));
    Ok((or_next(paused, &at), topic))
}

/// It is not there, or is another tenant's.
fn gone(id: ItemId) -> FoundBlocker {
    let sentence = format!(
        "There is no item {id}: it was acked, cancelled, purged, expired or deleted, or was never stored."
    );
    FoundBlocker { shard: Some(id.shard), ..FoundBlocker::new(BlockerCode::Gone, sentence) }
}

/// Finding from the item itself. `None`: it is ready.
fn of_item(item: &v1::Item, shard: ShardId, now: Timestamp) -> Option<FoundBlocker> {
    let expires_at = item.expires_at.map(from_timestamp);
    let found = match (item.state(), &item.lease, &item.death) {
        (ItemState::Dead, _, Some(death)) => {
            let (since, until) = (death.died_at.map(from_timestamp), death.kept_until.map(from_timestamp));
            let when = since.map(|at| at.to_string()).unwrap_or_default();
            let mut sentence = format!("It is a dead letter since {when}: {}.", death.cause);
            if !death.reason.is_empty() {
                sentence += &format!(" The last nack said: {}.", death.reason);
            }
            FoundBlocker { since, until, ..FoundBlocker::new(BlockerCode::Dead, sentence) }
        }
        (ItemState::Leased, Some(lease), _) => {
            let (since, until) = (lease.leased_at.map(from_timestamp), lease.ends_at.map(from_timestamp));
            let who = topic::capital(&consumer(&lease.consumer));
            let when = until.map(|at| at.to_string()).unwrap_or_default();
            let sentence = format!("{who} has it. The lease ends at {when}, unless it is extended.");
            let by = lease.consumer.clone();
            FoundBlocker { since, until, by, ..FoundBlocker::new(BlockerCode::Leased, sentence) }
        }
        _ if expires_at.is_some_and(|at| at <= now) => {
            let when = expires_at.map(|at| at.to_string()).unwrap_or_default();
            let sentence = format!("It expired at {when}, and is about to be removed.");
            FoundBlocker { since: expires_at, ..FoundBlocker::new(BlockerCode::Expired, sentence) }
        }
        (ItemState::Scheduled, ..) => {
            let until = item.ready_at.map(from_timestamp);
            let sentence = format!("It is due at {}.", until.map(|at| at.to_string()).unwrap_or_default());
            FoundBlocker { until, ..FoundBlocker::new(BlockerCode::Scheduled, sentence) }
        }
        _ => return None,
    };
    Some(FoundBlocker { shard: Some(shard), ..found })
}

/// Causes that keep a ready item: its shard, its node, and the items before it.
fn of_ready(at: &NodeStanding, no_consumer: Option<FoundBlocker>, before: Option<u64>) -> Vec<FoundBlocker> {
    let mut found = topic::blockers(std::slice::from_ref(at), &[]);
    let is_of_others = |code| {
        matches!(
            code,
            BlockerCode::Deliverable
                | BlockerCode::NoConsumer
                | BlockerCode::NothingReady
                | BlockerCode::Dead
                | BlockerCode::Leased
                | BlockerCode::Scheduled
        )
    };
    found.retain(|one| !is_of_others(one.code));
    found.extend(no_consumer);
    if let Some(count) = before.filter(|count| *count > 0) {
        let more = if count >= BEHIND_MAX { " or more" } else { "" };
        let sentence = format!("{}{more} of its topic come before it at {}.", items(count), node(&at.node));
        let behind = FoundBlocker::new(BlockerCode::Behind, sentence);
        found.push(FoundBlocker { by: at.node.clone(), count: Some(count), ..behind });
    }
    found
}

/// Nothing keeps it, if nothing was found.
fn or_next(mut found: Vec<FoundBlocker>, at: &NodeStanding) -> Vec<FoundBlocker> {
    if found.is_empty() {
        let sentence = format!("It is the next item of its topic at {}.", node(&at.node));
        found.push(FoundBlocker {
            by: at.node.clone(),
            ..FoundBlocker::new(BlockerCode::Deliverable, sentence)
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_engine::Standing;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds: 1_700_000_000 + seconds, nanos: 0 })
    }

    fn item(state: ItemState) -> v1::Item {
        v1::Item { state: state.into(), ready_at: at(-5), ..v1::Item::default() }
    }

    fn code(item: &v1::Item) -> Option<BlockerCode> {
        of_item(item, ShardId(1), NOW).map(|found| found.code)
    }

    #[test]
    fn an_item_that_has_expired_says_so_unless_somebody_has_it() {
        let expired = v1::Item { expires_at: at(0), ..item(ItemState::Ready) };
        assert_eq!(code(&expired), Some(BlockerCode::Expired));
        let later = v1::Item { expires_at: at(1), ..expired.clone() };
        assert_eq!(code(&later), None);
        let lease = Some(v1::ItemLease { consumer: "w7".into(), ends_at: at(9), leased_at: at(-1) });
        let leased = v1::Item { state: ItemState::Leased.into(), lease, ..expired };
        let found = of_item(&leased, ShardId(1), NOW).unwrap();
        assert_eq!((found.code, &*found.by), (BlockerCode::Leased, "w7"));
        assert_eq!(
            found.sentence,
            "Consumer w7 has it. The lease ends at 2023-11-14T22:13:29Z, unless it is extended."
        );
    }

    #[test]
    fn a_ready_item_is_kept_by_its_shard_first_and_then_by_those_before_it() {
        let standing = Standing {
            shard: ShardId(1),
            ready: 9,
            leased: 0,
            scheduled: 3,
            dead: 2,
            head_ready_at: None,
            head_unknown: false,
            breaker: Some(NOW),
            handed_over: false,
            lease_refusal: None,
            waiting: 1,
            next_lease: None,
            next_due_at: None,
        };
        let node = |shard: Standing| NodeStanding {
            node: "a".to_owned(),
            shards: vec![shard],
            polls: 1,
            missing_sources: BTreeMap::new(),
        };
        let codes = |shard: &Standing, before| -> Vec<BlockerCode> {
            or_next(of_ready(&node(shard.clone()), None, before), &node(shard.clone()))
                .into_iter()
                .map(|found| found.code)
                .collect()
        };
        assert_eq!(codes(&standing, Some(4)), [BlockerCode::BreakerOpen, BlockerCode::Behind]);
        let served = Standing { breaker: None, ..standing };
        assert_eq!(codes(&served, Some(0)), [BlockerCode::Deliverable]);
        let many = of_ready(&node(served), None, Some(BEHIND_MAX)).remove(0);
        assert_eq!(many.sentence, "10000 items or more of its topic come before it at node a.");
    }
}
