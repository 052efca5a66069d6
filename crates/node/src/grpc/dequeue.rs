//! `Dequeue`: checks the demands and has the engine lease items. A long poll does not count as a call in
//! progress while it waits.

use std::{collections::HashSet, sync::Arc, time::Duration};

use forebay_edge::{
    admission::Call,
    rpc::fields::{self, Path},
    traces::{note_items, note_origins},
};
use forebay_engine::{CallerFrom, DeliveredItem, Demand, DequeueCall, PendingDequeue};
use forebay_membership::ClusterState;
use forebay_proto::{
    time::to_timestamp,
    v1::{
        DeliveryPolicy as WirePolicy, DequeueRequest, DequeueResponse, DequeuedItem, TopicDemand,
        topic_demand::Selector,
    },
};
use forebay_types::{
    DeliveryPolicy, Limits, Namespace, Refusal, cut_text, is_prefix, topic_covers, topics_with_prefix,
};
use tokio::sync::watch;
use tonic::Response;

use super::{owner, queue::Queue};

/// How long before the call's deadline a long poll ends, so that its answer still arrives.
const WAIT_MARGIN: Duration = Duration::from_millis(200);

/// Prefixes of one call.
const PREFIXES_MAX: usize = 16;

/// Bytes of an item in the answer beside its body and its names: id, receipt, numbers, times.
const ITEM_BYTES: usize = 256;

/// A call that waits for its items. Many do, for long: nothing else of the call is kept meanwhile.
pub struct WaitingCall {
    /// The call.
    call: Call,
    /// Names the owners of shards.
    cluster: watch::Receiver<Arc<ClusterState>>,
    /// The tenant.
    namespace: Namespace,
    /// It may have waited for long when its items come.
    may_wait: bool,
    /// Receives the items.
    pending: PendingDequeue,
}

/// Begins a call.
pub fn begin(
    queue: &Queue,
    call: Call,
    from: CallerFrom,
    request: DequeueRequest,
) -> Result<WaitingCall, Refusal> {
    let asked = check(queue, request)?;
    let namespace = asked.namespace.clone();
    call.request().count_for(&namespace)?;
    let wait = asked.wait.min(call.left().saturating_sub(WAIT_MARGIN));
    // Too many parked calls on one connection: this one is answered at once with what is ready.
    let wait = if wait.is_zero() || call.park() { wait } else { Duration::ZERO };
    let pending = queue.engine.begin_dequeue(DequeueCall { wait, from, ..asked })?;
    let cluster = queue.cluster.clone();
    Ok(WaitingCall { call, cluster, namespace, may_wait: !wait.is_zero(), pending })
}

impl WaitingCall {
    /// Whether its items may come after a while.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Its answer.
    pub async fn answer(mut self) -> Result<Response<DequeueResponse>, Refusal> {
        let Self { call, cluster, namespace, may_wait, pending } = &mut self;
        // Only the answer's size tells whether there is room for it. Without room its items are given back,
        // and so they are if the caller's rights have ended while it waited.
        let fits = |items: &[DeliveredItem]| {
            if *may_wait {
                call.may_still()?;
            }
            let bytes = |item: &DeliveredItem| item.body.bytes() + item.topic.len() + namespace.len();
            call.reserve_answer(items.iter().map(|item| ITEM_BYTES + bytes(item)).sum())
        };
        let items = pending.items(fits).await?;
        Ok(response(&cluster.borrow(), namespace, items))
    }
}

fn response(
    cluster: &ClusterState,
    namespace: &Namespace,
    items: Vec<DeliveredItem>,
) -> Response<DequeueResponse> {
    note_items(items.iter().map(|item| item.id.shard));
    note_origins(items.iter().map(|item| (item.id, &item.body.headers[..], item.attempt)));
    let node = owner::of_most(cluster, items.iter().map(|item| item.id.shard));
    let items = items.into_iter().map(|item| to_wire(namespace, item)).collect();
    let mut response = Response::new(DequeueResponse { items });
    owner::name(&mut response, node);
    response
}

fn check(queue: &Queue, mut request: DequeueRequest) -> Result<DequeueCall, Refusal> {
    let limits = &queue.rules.limits;
    let namespace = queue.rules.namespace(&request.namespace)?;
    let demands = demands(limits, request.demands)?;
    let wait = match &request.wait {
        Some(wait) => fields::duration("wait", wait)?.min(limits.wait_max),
        None => Duration::ZERO,
    };
    let lease = fields::lease(limits, "lease_duration", request.lease_duration.as_ref())?;
    cut_text(&mut request.consumer, limits.key_bytes);
    let max_bytes = match request.max_bytes as usize {
        0 => limits.answer_bytes,
        number => fields::within("max_bytes", number, 1, limits.answer_bytes_max)?,
    };
    let (consumer, from) = (request.consumer, CallerFrom::default());
    Ok(DequeueCall { namespace, demands, wait, lease, consumer, from, max_bytes, fetch: None })
}

fn demands(limits: &Limits, asked: Vec<TopicDemand>) -> Result<Vec<Demand>, Refusal> {
    fields::members("demands", asked.len(), limits.demands)?;
    let mut topics = HashSet::with_capacity(asked.len());
    let mut demands: Vec<Demand> = Vec::with_capacity(asked.len());
    let mut prefixes = Vec::new();
    let mut sum = 0;
    for (index, demand) in asked.into_iter().enumerate() {
        let path = |field: &'static str| Path::of_member("demands", index, field);
        let (topic, field) = match demand.selector {
            Some(Selector::Topic(topic)) => (fields::topic(limits, path("topic"), &topic)?, "topic"),
            Some(Selector::TopicPrefix(prefix)) => {
                fields::prefix(limits, path("topic_prefix"), &prefix)?;
                prefixes.push(index);
                (topics_with_prefix(&prefix), "topic_prefix")
            }
            None => return Err(Refusal::field(path("topic"), "must not be empty")),
        };
        if !topics.insert(topic.clone()) {
            return Err(Refusal::field(path(field), "is listed twice"));
        }
        let max_items = fields::within(path("max_items"), demand.max_items as usize, 1, limits.members)?;
        sum += max_items;
        demands.push(Demand { topic, max_items });
    }
    if sum > limits.members {
        let message = format!("ask for {sum} items in total; at most {} are allowed", limits.members);
        return Err(Refusal::too_large("demands", message));
    }
    if prefixes.len() > PREFIXES_MAX {
        let message = format!("name {} prefixes; at most {PREFIXES_MAX} are allowed", prefixes.len());
        return Err(Refusal::field("demands", message));
    }
    for prefix in prefixes {
        check_covered(&demands, prefix)?;
    }
    Ok(demands)
}

/// An item that two demands would be due is refused: which of them it counts for, nobody could tell.
fn check_covered(demands: &[Demand], prefix: usize) -> Result<(), Refusal> {
    let all = &demands[prefix].topic;
    let mut demands = demands.iter().enumerate();
    let covered = demands.find(|(index, demand)| *index != prefix && topic_covers(all, &demand.topic));
    let Some((index, covered)) = covered else { return Ok(()) };
    let field = if is_prefix(&covered.topic) { "topic_prefix" } else { "topic" };
    let message = format!("is covered by demands[{prefix}].topic_prefix");
    Err(Refusal::field(Path::of_member("demands", index, field), message))
}

fn to_wire(namespace: &str, item: DeliveredItem) -> DequeuedItem {
    let policy = match item.policy {
        DeliveryPolicy::AtLeastOnce => WirePolicy::AtLeastOnce,
        DeliveryPolicy::AtMostOnce => WirePolicy::AtMostOnce,
    };
    DequeuedItem {
        item_id: item.id.to_string(),
        receipt: item.receipt.map(|receipt| receipt.encode(namespace)).unwrap_or_default(),
        topic: item.topic.to_string(),
        priority: item.priority,
        payload: item.body.payload,
        metadata: item.body.metadata,
        headers: item.body.headers.into_iter().collect(),
        attempt: item.attempt,
        enqueued_at: Some(to_timestamp(item.enqueued_at)),
        lease_expires_at: item.lease_expires_at.map(to_timestamp),
        expires_at: item.expires_at.map(to_timestamp),
        delivery_policy: policy.into(),
        failures: item.failures,
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Reason;

    use super::*;

    fn demand(topic: &str, max_items: u32) -> TopicDemand {
        TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items }
    }

    #[track_caller]
    fn refused(asked: Vec<TopicDemand>, reason: Reason, field: &str) {
        let refusal = demands(&Limits::default(), asked).unwrap_err();
        assert_eq!((refusal.reason, refusal.field.as_deref()), (reason, Some(field)));
    }

    #[test]
    fn demands_keep_their_order() {
        let found = demands(&Limits::default(), vec![demand("b", 999), demand("a", 1)]).unwrap();
        let found: Vec<_> = found.iter().map(|demand| (&*demand.topic, demand.max_items)).collect();
        assert_eq!(found, [("b", 999), ("a", 1)]);
    }

    #[test]
    fn each_wrong_demand_is_named() {
        refused(vec![], Reason::InvalidField, "demands");
        let many = (0..101).map(|n| demand(&format!("t{n}"), 1)).collect();
        refused(many, Reason::TooLarge, "demands");
        refused(vec![demand("", 1)], Reason::InvalidField, "demands[0].topic");
        refused(vec![demand("a", 1), demand("a", 1)], Reason::InvalidField, "demands[1].topic");
        refused(vec![demand("a", 0)], Reason::InvalidField, "demands[0].max_items");
        refused(vec![demand("a", 1_001)], Reason::InvalidField, "demands[0].max_items");
        refused(vec![demand("a", 1_000), demand("b", 1)], Reason::TooLarge, "demands");
        refused(vec![TopicDemand { selector: None, max_items: 1 }], Reason::InvalidField, "demands[0].topic");
    }

    fn prefix(prefix: &str) -> TopicDemand {
        TopicDemand { selector: Some(Selector::TopicPrefix(prefix.to_owned())), max_items: 1 }
    }

    #[test]
    fn a_prefix_stands_beside_topics_and_prefixes_that_it_does_not_cover() {
        let asked = vec![prefix("a/"), demand("a", 1), prefix("b"), prefix("A")];
        let found = demands(&Limits::default(), asked).unwrap();
        let found: Vec<_> = found.iter().map(|demand| &*demand.topic).collect();
        assert_eq!(found, ["a/*", "a", "b*", "A*"]);
        assert_eq!(&*demands(&Limits::default(), vec![prefix("")]).unwrap()[0].topic, "*");
    }

    #[test]
    fn each_wrong_prefix_is_named() {
        let wrong = |asked, field| refused(asked, Reason::InvalidField, field);
        wrong(vec![demand("b", 1), prefix("a b")], "demands[1].topic_prefix");
        wrong(vec![prefix("a*")], "demands[0].topic_prefix");
        wrong(vec![prefix("a"), prefix("a")], "demands[1].topic_prefix");
        wrong(vec![demand("ab", 1), prefix("a")], "demands[0].topic");
        wrong(vec![prefix("ab"), demand("b", 1), prefix("a")], "demands[0].topic_prefix");
        wrong(vec![prefix("a"), demand("a", 1)], "demands[1].topic");
        wrong(vec![demand("b", 1), prefix("")], "demands[0].topic");
        wrong((0..17).map(|n| prefix(&format!("{n}/"))).collect(), "demands");
        refused(vec![prefix(&"a".repeat(201))], Reason::TooLarge, "demands[0].topic_prefix");
        assert!(demands(&Limits::default(), (0..16).map(|n| prefix(&format!("{n}/"))).collect()).is_ok());
    }
}
