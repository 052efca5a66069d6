//! `Enqueue`: checks the items, has the engine store them, answers each.

use std::iter;

use forebay_edge::{
    admission::Call,
    rpc::{
        fields::{self, Path},
        members::Members,
        slices::make_each,
        status::{self, RefusalFields},
    },
    traces::{Origin, name_origin, note_items},
};
use forebay_engine::{EnqueueCall, EnqueueOutcome, NewItem};
use forebay_front::EnqueueAnswer;
use forebay_proto::{
    NEXT_SHARD_HEADER,
    time::to_timestamp,
    v1::{
        DeliveryPolicy as WirePolicy, EnqueueItem, EnqueueRequest, EnqueueResponse, EnqueueResult,
        enqueue_item::Schedule as WireSchedule,
    },
};
use forebay_types::{Body, DeliveryPolicy, Limits, Refusal, Schedule, ShardId, Timestamp};
use prost::Message as _;
use tonic::Response;

use super::{owner, queue::Queue};

/// Serves the call. `origin`: the trace of items that name none.
pub async fn enqueue(
    queue: &Queue,
    call: &Call,
    origin: Option<Origin>,
    request: EnqueueRequest,
) -> Result<Response<EnqueueResponse>, Refusal> {
    let limits = &queue.rules.limits;
    let namespace = queue.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    fields::members("items", request.items.len(), limits.members)?;
    fields::bytes("items", request.encoded_len(), limits.request_bytes)?;
    call.reserve_answers(request.items.len())?;
    let request_id = fields::key(limits, "request_id", request.request_id)?;
    let shard = request.shard.map(ShardId);
    if request_id.is_some() || shard.is_some() {
        let with = if request_id.is_some() { "a request_id" } else { "a shard" };
        check_standalone(&request.items, with)?;
    }

    let now = queue.clock.wall();
    let checked = make_each(request.items.into_iter().enumerate(), |(index, mut item)| {
        name_origin(&mut item.headers, origin.as_ref(), limits);
        check(limits, now, index, item)
    });
    let (items, results) = checked.await.into_iter().collect::<Members<_>>().split();
    let EnqueueAnswer { results: answers, next_shard } = match items.is_empty() {
        true => EnqueueAnswer::default(),
        false => {
            let asked = EnqueueCall { namespace, items, request_id, shard, ..EnqueueCall::default() };
            call.in_time(queue.front.enqueue(asked)).await?
        }
    };
    note_items(answers.iter().flatten().map(|stored| stored.id.shard));
    // A request id that another call used refuses this call as a whole. The engine reports it on each item.
    if let Some(Err(refusal)) = answers.first()
        && refusal.field.as_deref() == Some("request_id")
    {
        return Err(refusal.clone());
    }
    let answers = results.merge("items", answers)?;
    let mut response = Response::new(EnqueueResponse { results: make_each(answers, result).await });
    if let Some(shard) = next_shard {
        response.metadata_mut().insert(NEXT_SHARD_HEADER, shard.0.into());
        owner::name(&mut response, owner::of_most(&queue.cluster.borrow(), iter::once(shard)));
    }
    Ok(response)
}

/// A call with a request id or a shard is stored in one shard, so no item may choose its own.
fn check_standalone(items: &[EnqueueItem], with: &str) -> Result<(), Refusal> {
    for (index, item) in items.iter().enumerate() {
        let wrong = match (item.dedupe_key.is_empty(), item.shard) {
            (false, _) => "dedupe_key",
            (_, Some(_)) => "shard",
            _ => continue,
        };
        return Err(Refusal::field(
            format!("items[{index}].{wrong}"),
            format!("must not be set in a call with {with}"),
        ));
    }
    Ok(())
}

fn check(limits: &Limits, now: Timestamp, index: usize, item: EnqueueItem) -> Result<NewItem, Refusal> {
    let path = |field: &'static str| Path::of_member("items", index, field);

    let topic = fields::topic(limits, path("topic"), &item.topic)?;
    fields::bytes(path("payload"), item.payload.len(), limits.payload_bytes)?;
    fields::bytes(path("metadata"), item.metadata.len(), limits.metadata_bytes)?;
    fields::bytes(path("dedupe_key"), item.dedupe_key.len(), limits.key_bytes)?;
    if item.headers.len() > limits.headers {
        let message = format!("has {} entries; at most {} are allowed", item.headers.len(), limits.headers);
        return Err(Refusal::too_large(path("headers"), message));
    }
    let header_bytes = item.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    fields::bytes(path("headers"), header_bytes, limits.header_bytes)?;

    let ttl = item.ttl.as_ref().map(|ttl| fields::ttl(limits, path("ttl"), ttl)).transpose()?;
    let schedule = match &item.schedule {
        None => Schedule::Now,
        Some(WireSchedule::Delay(delay)) => {
            let delay = fields::delay(limits, path("delay"), delay)?;
            if ttl.is_some_and(|ttl| delay >= ttl) {
                return Err(Refusal::field(path("delay"), "must be shorter than the ttl"));
            }
            if delay.is_zero() { Schedule::Now } else { Schedule::Delay(delay) }
        }
        Some(WireSchedule::DeliverAfter(time)) => {
            let time = fields::timestamp(path("deliver_after"), time)?;
            if ttl.is_some_and(|ttl| time >= now.plus(ttl)) {
                return Err(Refusal::field(path("deliver_after"), "must be before the item expires"));
            }
            Schedule::After(time)
        }
    };
    let lease = fields::lease(limits, path("lease_duration"), item.lease_duration.as_ref())?;
    let policy = match WirePolicy::try_from(item.delivery_policy) {
        Ok(WirePolicy::Unspecified | WirePolicy::AtLeastOnce) => DeliveryPolicy::AtLeastOnce,
        Ok(WirePolicy::AtMostOnce) => DeliveryPolicy::AtMostOnce,
        Err(_) => return Err(Refusal::field(path("delivery_policy"), "is not a known delivery policy")),
    };
    let max_attempts = match item.max_attempts {
        0 => limits.attempts_default,
        number if number <= limits.attempts_max => number,
        number => {
            let message = format!("is {number}; it must be at most {}", limits.attempts_max);
            return Err(Refusal::field(path("max_attempts"), message));
        }
    };
    if item.shard.is_some() && !item.dedupe_key.is_empty() {
        return Err(Refusal::field(path("dedupe_key"), "must not be set together with shard"));
    }

    let mut headers: Vec<_> = item.headers.into_iter().collect();
    headers.sort_unstable();
    Ok(NewItem {
        topic,
        priority: item.priority,
        body: Body { payload: item.payload, metadata: item.metadata, headers },
        schedule,
        lease: lease.unwrap_or(limits.lease_default),
        lease_is_default: lease.is_none(),
        ttl,
        policy,
        max_attempts,
        attempts_are_default: item.max_attempts == 0,
        dedupe_key: (!item.dedupe_key.is_empty()).then_some(item.dedupe_key),
        shard: item.shard.map(ShardId),
        rank: None,
    })
}

fn result(answer: Result<EnqueueOutcome, Refusal>) -> EnqueueResult {
    match answer {
        Ok(EnqueueOutcome { id, duplicate, first_at }) => EnqueueResult {
            item_id: id.to_string(),
            duplicate,
            first_enqueued_at: first_at.map(to_timestamp),
            ..Default::default()
        },
        Err(refusal) => {
            let RefusalFields { error, reason, retry_after } = status::of_result(&refusal);
            EnqueueResult { error, reason, retry_after, ..Default::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::Reason;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn item() -> EnqueueItem {
        EnqueueItem { topic: "t".to_owned(), ..Default::default() }
    }

    fn seconds(seconds: i64) -> prost_types::Duration {
        prost_types::Duration { seconds, nanos: 0 }
    }

    fn checked(item: EnqueueItem) -> Result<NewItem, Refusal> {
        check(&Limits::default(), NOW, 3, item)
    }

    #[track_caller]
    fn refused(item: EnqueueItem, reason: Reason, field: &str) {
        let refusal = checked(item).unwrap_err();
        assert_eq!((refusal.reason, refusal.field.as_deref()), (reason, Some(&*format!("items[3].{field}"))));
    }

    #[test]
    fn an_absent_field_gets_its_default() {
        let item = checked(item()).unwrap();
        assert_eq!(item.lease, Duration::from_secs(30));
        assert_eq!(item.max_attempts, 16);
        assert!(item.lease_is_default && item.attempts_are_default, "what is set for the topic goes first");
        assert_eq!(item.schedule, Schedule::Now);
        assert_eq!(item.policy, DeliveryPolicy::AtLeastOnce);
        assert_eq!((item.ttl, item.dedupe_key, item.shard), (None, None, None));
    }

    #[test]
    fn every_value_arrives() {
        let item = checked(EnqueueItem {
            priority: i32::MIN,
            payload: "p".into(),
            metadata: "m".into(),
            schedule: Some(WireSchedule::Delay(seconds(5))),
            lease_duration: Some(seconds(60)),
            ttl: Some(seconds(6)),
            delivery_policy: WirePolicy::AtMostOnce.into(),
            max_attempts: 1_000,
            headers: [("b", "2"), ("a", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            shard: Some(7),
            ..item()
        })
        .unwrap();
        assert_eq!(item.priority, i32::MIN);
        assert_eq!((&item.body.payload[..], &item.body.metadata[..]), (&b"p"[..], &b"m"[..]));
        assert_eq!(item.body.headers[0].0, "a");
        assert_eq!(item.schedule, Schedule::Delay(Duration::from_secs(5)));
        assert_eq!((item.lease, item.ttl), (Duration::from_secs(60), Some(Duration::from_secs(6))));
        assert_eq!((item.policy, item.max_attempts), (DeliveryPolicy::AtMostOnce, 1_000));
        assert!(!item.lease_is_default && !item.attempts_are_default);
        assert_eq!(item.shard, Some(ShardId(7)));
    }

    #[test]
    fn each_size_has_its_limit() {
        let limits = Limits::default();
        let headers = |count: usize, size: usize| {
            (0..count).map(|n| (format!("{n:02}"), "v".repeat(size - 2))).collect()
        };
        checked(EnqueueItem {
            payload: vec![0; limits.payload_bytes].into(),
            metadata: vec![0; limits.metadata_bytes].into(),
            dedupe_key: "k".repeat(200),
            headers: headers(16, 256),
            ..item()
        })
        .unwrap();
        let payload = vec![0; limits.payload_bytes + 1].into();
        refused(EnqueueItem { payload, ..item() }, Reason::TooLarge, "payload");
        let metadata = vec![0; limits.metadata_bytes + 1].into();
        refused(EnqueueItem { metadata, ..item() }, Reason::TooLarge, "metadata");
        refused(EnqueueItem { dedupe_key: "k".repeat(201), ..item() }, Reason::TooLarge, "dedupe_key");
        refused(EnqueueItem { headers: headers(17, 10), ..item() }, Reason::TooLarge, "headers");
        refused(EnqueueItem { headers: headers(16, 257), ..item() }, Reason::TooLarge, "headers");
        refused(EnqueueItem { topic: "t".repeat(201), ..item() }, Reason::TooLarge, "topic");
    }

    #[test]
    fn each_wrong_value_is_named() {
        let invalid = Reason::InvalidField;
        refused(EnqueueItem { topic: String::new(), ..item() }, invalid, "topic");
        refused(EnqueueItem { topic: "a b".to_owned(), ..item() }, invalid, "topic");
        let delay = |span| Some(WireSchedule::Delay(span));
        refused(EnqueueItem { schedule: delay(seconds(-1)), ..item() }, invalid, "delay");
        refused(EnqueueItem { schedule: delay(seconds(367 * 86_400)), ..item() }, invalid, "delay");
        for lease in [seconds(0), seconds(-5), seconds(43_201)] {
            refused(EnqueueItem { lease_duration: Some(lease), ..item() }, invalid, "lease_duration");
        }
        for ttl in [seconds(0), seconds(-5), seconds(367 * 86_400)] {
            refused(EnqueueItem { ttl: Some(ttl), ..item() }, invalid, "ttl");
        }
        refused(EnqueueItem { delivery_policy: 9, ..item() }, invalid, "delivery_policy");
        refused(EnqueueItem { max_attempts: 1_001, ..item() }, invalid, "max_attempts");
        let both = EnqueueItem { dedupe_key: "k".to_owned(), shard: Some(1), ..item() };
        refused(both, invalid, "dedupe_key");
    }

    #[test]
    fn an_item_must_be_deliverable_before_it_expires() {
        let after = |micros: i64| {
            let time = Timestamp::from_micros(NOW.as_micros() + micros);
            let schedule = Some(WireSchedule::DeliverAfter(to_timestamp(time)));
            EnqueueItem { schedule, ttl: Some(seconds(10)), ..item() }
        };
        assert!(checked(after(9_999_999)).is_ok());
        assert!(checked(after(-5_000_000)).is_ok());
        refused(after(10_000_000), Reason::InvalidField, "deliver_after");
        let delayed = |span| EnqueueItem {
            schedule: Some(WireSchedule::Delay(seconds(span))),
            ttl: Some(seconds(10)),
            ..item()
        };
        assert!(checked(delayed(9)).is_ok());
        refused(delayed(10), Reason::InvalidField, "delay");
    }

    #[test]
    fn a_request_id_excludes_dedupe_keys_and_shards() {
        let keyed = EnqueueItem { dedupe_key: "k".to_owned(), ..item() };
        let with_shard = EnqueueItem { shard: Some(1), ..item() };
        let check = |items: &[EnqueueItem]| check_standalone(items, "a request_id");
        assert!(check(&[item(), item()]).is_ok());
        assert_eq!(check(&[item(), keyed]).unwrap_err().field.as_deref(), Some("items[1].dedupe_key"));
        assert_eq!(check(&[with_shard]).unwrap_err().field.as_deref(), Some("items[0].shard"));
    }
}
