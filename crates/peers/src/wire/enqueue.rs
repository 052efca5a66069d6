//! Enqueues between nodes.

use std::time::Duration;

use forebay_engine::{Avoid, EnqueueCall, EnqueueOutcome, NewItem};
use forebay_proto::peer::{self, item::Schedule as WireSchedule};
use forebay_types::{Body, DeliveryPolicy, ItemId, Refusal, Schedule, Seq, ShardId, Timestamp};

use super::{MalformedMessage, micros, refusal};

/// The request for items that are to be stored in a shard of another node.
pub fn enqueue_request(call: EnqueueCall) -> peer::EnqueueRequest {
    let EnqueueCall { namespace, items, request_id, shard, only, avoid: _ } = call;
    peer::EnqueueRequest {
        shard: only.map_or(0, |shard| shard.0),
        namespace: namespace.as_ref().to_owned(),
        request_id,
        items: items.into_iter().map(item).collect(),
        names_shard: shard.is_some(),
    }
}

fn item(item: NewItem) -> peer::Item {
    let NewItem {
        topic,
        priority,
        body,
        schedule,
        lease,
        lease_is_default,
        ttl,
        policy,
        max_attempts,
        attempts_are_default,
        dedupe_key,
        shard: _,
        rank,
    } = item;
    peer::Item {
        topic: topic.as_ref().to_owned(),
        priority,
        payload: body.payload,
        metadata: body.metadata,
        headers: body.headers.into_iter().map(|(name, value)| peer::Header { name, value }).collect(),
        schedule: match schedule {
            Schedule::Now => None,
            Schedule::Delay(delay) => Some(WireSchedule::Delay(micros(delay))),
            Schedule::After(time) => Some(WireSchedule::DeliverAfter(time.as_micros())),
        },
        lease: micros(lease),
        ttl: ttl.map(micros),
        at_most_once: policy == DeliveryPolicy::AtMostOnce,
        max_attempts,
        dedupe_key,
        rank,
        lease_is_default,
        attempts_are_default,
    }
}

/// The call that another node has passed on.
pub fn enqueue_call(request: peer::EnqueueRequest) -> Result<EnqueueCall, MalformedMessage> {
    let peer::EnqueueRequest { shard, namespace, request_id, items, names_shard } = request;
    if shard == 0 {
        return Err(MalformedMessage("shard"));
    }
    Ok(EnqueueCall {
        namespace: namespace.into(),
        items: items.into_iter().map(new_item).collect(),
        request_id,
        shard: names_shard.then_some(ShardId(shard)),
        only: Some(ShardId(shard)),
        avoid: Avoid::default(),
    })
}

fn new_item(item: peer::Item) -> NewItem {
    let headers = item.headers.into_iter().map(|header| (header.name, header.value)).collect();
    NewItem {
        topic: item.topic.into(),
        priority: item.priority,
        body: Body { payload: item.payload, metadata: item.metadata, headers },
        schedule: match item.schedule {
            None => Schedule::Now,
            Some(WireSchedule::Delay(delay)) => Schedule::Delay(Duration::from_micros(delay)),
            Some(WireSchedule::DeliverAfter(time)) => Schedule::After(Timestamp::from_micros(time)),
        },
        lease: Duration::from_micros(item.lease),
        lease_is_default: item.lease_is_default,
        ttl: item.ttl.map(Duration::from_micros),
        policy: if item.at_most_once { DeliveryPolicy::AtMostOnce } else { DeliveryPolicy::AtLeastOnce },
        max_attempts: item.max_attempts,
        attempts_are_default: item.attempts_are_default,
        dedupe_key: item.dedupe_key,
        shard: None,
        rank: item.rank,
    }
}

/// The answer to another node.
pub fn enqueue_response(answers: Vec<Result<EnqueueOutcome, Refusal>>) -> peer::EnqueueResponse {
    let result = |answer| match answer {
        Ok(EnqueueOutcome { id, duplicate, first_at }) => peer::EnqueueResult {
            shard: id.shard.0,
            seq: id.seq.0,
            duplicate,
            refusal: None,
            first_at: first_at.map(Timestamp::as_micros),
        },
        Err(refused) => {
            peer::EnqueueResult { refusal: Some(refusal::message(refused)), ..Default::default() }
        }
    };
    peer::EnqueueResponse { results: answers.into_iter().map(result).collect() }
}

/// The answers of another node.
pub fn enqueued(response: peer::EnqueueResponse) -> Vec<Result<EnqueueOutcome, Refusal>> {
    let answer = |result| match result {
        peer::EnqueueResult { refusal: Some(refused), .. } => Err(refusal::refusal(refused)),
        peer::EnqueueResult { shard, seq, duplicate, refusal: None, first_at } => {
            let id = ItemId { shard: ShardId(shard), seq: Seq(seq) };
            Ok(EnqueueOutcome { id, duplicate, first_at: first_at.map(Timestamp::from_micros) })
        }
    };
    response.results.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests {
    use forebay_types::Reason;

    use super::*;

    fn item() -> NewItem {
        NewItem {
            topic: "t".into(),
            priority: i32::MIN,
            body: Body {
                payload: "p".into(),
                metadata: "m".into(),
                headers: vec![("a".to_owned(), "1".to_owned())],
            },
            schedule: Schedule::Now,
            lease: Duration::from_secs(30),
            lease_is_default: true,
            ttl: Some(Duration::from_micros(1)),
            policy: DeliveryPolicy::AtMostOnce,
            max_attempts: 16,
            attempts_are_default: true,
            dedupe_key: Some("k".to_owned()),
            shard: None,
            rank: Some(i64::MIN),
        }
    }

    #[test]
    fn a_call_arrives_as_it_was() {
        let schedules = [
            Schedule::Now,
            Schedule::Delay(Duration::from_secs(5)),
            Schedule::After(Timestamp::from_micros(-7)),
        ];
        let bare = NewItem {
            lease_is_default: false,
            attempts_are_default: false,
            ttl: None,
            dedupe_key: None,
            rank: None,
            policy: DeliveryPolicy::AtLeastOnce,
            ..item()
        };
        let items = schedules.map(|schedule| NewItem { schedule, ..item() }).into_iter().chain([bare]);
        let call = EnqueueCall {
            namespace: "ns".into(),
            items: items.collect(),
            request_id: Some("r".to_owned()),
            shard: Some(ShardId(3)),
            only: Some(ShardId(3)),
            avoid: Avoid::default(),
        };
        let arrived = enqueue_call(enqueue_request(call.clone())).unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{call:?}"));
    }

    #[test]
    fn a_call_without_a_shard_is_refused() {
        let request = peer::EnqueueRequest { namespace: "ns".to_owned(), ..Default::default() };
        assert_eq!(enqueue_call(request).unwrap_err(), MalformedMessage("shard"));
    }

    #[test]
    fn answers_arrive_as_they_were() {
        let id = ItemId { shard: ShardId(2), seq: Seq(1 << 40) };
        let again = EnqueueOutcome { id, duplicate: true, first_at: Some(Timestamp::from_micros(7)) };
        let answers =
            vec![Ok(again), Ok(EnqueueOutcome::new(id)), Err(Refusal::new(Reason::DiskFull, "full"))];
        assert_eq!(enqueued(enqueue_response(answers.clone())), answers);
    }
}
