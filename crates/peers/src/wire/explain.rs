//! How a topic stands at a node, between nodes.

use forebay_engine::{BehindCall, MissingSource, Standing, TopicStanding};
use forebay_proto::peer;
use forebay_types::{ItemId, Key, Seq, ShardId, Timestamp, TopicName};

use crate::looks::topics::topic_name;

/// How a topic stands at this node, as another one is told.
pub(crate) fn topic_standing_message(standing: TopicStanding) -> peer::GetStandingResponse {
    let TopicStanding { shards, polls, missing_sources } = standing;
    let missing = missing_sources.into_iter();
    peer::GetStandingResponse {
        standings: shards.into_iter().map(standing_message).collect(),
        polls,
        missing_sources: missing
            .map(|MissingSource { address, why }| peer::MissingSource { address, why: why.into_owned() })
            .collect(),
    }
}

/// How a topic stands at another node, as that has told.
pub(crate) fn topic_standing(answer: peer::GetStandingResponse) -> TopicStanding {
    let peer::GetStandingResponse { standings, polls, missing_sources } = answer;
    let missing = missing_sources.into_iter();
    TopicStanding {
        shards: standings.into_iter().map(standing).collect(),
        polls,
        missing_sources: missing
            .map(|peer::MissingSource { address, why }| MissingSource { address, why: why.into() })
            .collect(),
    }
}

/// Standing, as another node is told.
fn standing_message(standing: Standing) -> peer::Standing {
    let Standing { shard, ready, leased, scheduled, dead, head_unknown, handed_over, waiting, .. } = standing;
    let (lease_consumer, lease_ends_at) = standing.next_lease.unzip();
    peer::Standing {
        shard: shard.0,
        ready,
        leased,
        scheduled,
        dead,
        head_ready_at: standing.head_ready_at.map(Timestamp::as_micros),
        head_unknown,
        breaker_since: standing.breaker.map(Timestamp::as_micros),
        handed_over,
        lease_refusal: standing.lease_refusal,
        waiting,
        lease_ends_at: lease_ends_at.map(Timestamp::as_micros),
        lease_consumer: lease_consumer.unwrap_or_default(),
        next_due_at: standing.next_due_at.map(Timestamp::as_micros),
    }
}

/// Standing, as another node has told.
fn standing(message: peer::Standing) -> Standing {
    let at = |micros: Option<i64>| micros.map(Timestamp::from_micros);
    Standing {
        shard: ShardId(message.shard),
        ready: message.ready,
        leased: message.leased,
        scheduled: message.scheduled,
        dead: message.dead,
        head_ready_at: at(message.head_ready_at),
        head_unknown: message.head_unknown,
        breaker: at(message.breaker_since),
        handed_over: message.handed_over,
        lease_refusal: message.lease_refusal,
        waiting: message.waiting,
        next_lease: at(message.lease_ends_at).map(|ends| (message.lease_consumer, ends)),
        next_due_at: at(message.next_due_at),
    }
}

/// A request to another node.
pub(crate) fn behind_request(call: &BehindCall) -> peer::CountBeforeRequest {
    let BehindCall { name, id, key } = call;
    peer::CountBeforeRequest {
        name: Some(topic_name(name)),
        item: Some(peer::ItemId { shard: id.shard.0, seq: id.seq.0 }),
        priority: key.priority,
        rank: key.rank,
    }
}

/// A request of another node. `None`: it is not one.
pub(crate) fn behind_call(request: peer::CountBeforeRequest) -> Option<BehindCall> {
    let peer::CountBeforeRequest { name, item, priority, rank } = request;
    let (name, peer::ItemId { shard, seq }) = (name?, item?);
    let id = ItemId { shard: ShardId(shard), seq: Seq(seq) };
    let name = TopicName::new(name.namespace, name.topic);
    Some(BehindCall { name, id, key: Key { priority, rank, seq: id.seq } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_read_back() {
        let at = Timestamp::from_micros;
        let full = Standing {
            shard: ShardId(3),
            ready: 1,
            leased: 2,
            scheduled: 3,
            dead: 4,
            head_ready_at: Some(at(-5)),
            head_unknown: true,
            breaker: Some(at(6)),
            handed_over: true,
            lease_refusal: Some("full".to_owned()),
            waiting: 7,
            next_lease: Some(("me".to_owned(), at(8))),
            next_due_at: Some(at(9)),
        };
        let bare = Standing { breaker: None, next_lease: None, next_due_at: None, ..full.clone() };
        let bare = Standing { head_ready_at: None, lease_refusal: None, ..bare };
        let missing = MissingSource { address: "a:1".to_owned(), why: "it is late".into() };
        let all = TopicStanding { shards: vec![full, bare], polls: 3, missing_sources: vec![missing] };
        assert_eq!(topic_standing(topic_standing_message(all.clone())), all);
    }
}
