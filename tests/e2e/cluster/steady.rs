//! Work in shards that a fault does not concern, at the same pace before and beside it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, TopicDemand,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};
use tonic::{Status, transport::Channel};

use super::anywhere::item;
use crate::rpc::span;

const NAMESPACE: &str = "steady";
const TOPIC: &str = "t";
/// An item is stored so often.
const EVERY: Duration = Duration::from_millis(20);
/// How long it is worked at a time.
pub const WORKED: Duration = Duration::from_secs(3);
/// Of so many items more than nine in ten come while the others' node is disturbed.
const RATIO_MIN: f64 = 0.9;

/// A topic whose items are stored at one node, and taken and acked at another.
pub struct SteadyWork {
    /// The node that stores items.
    producer: Channel,
    /// The node that hands them out.
    consumer: Channel,
    /// The shards of the items.
    shards: Vec<u32>,
    /// Items that are acked in [`WORKED`] without a fault.
    before: usize,
}

impl SteadyWork {
    /// Works with these shards without a fault.
    pub async fn begin(producer: Channel, consumer: Channel, shards: &BTreeSet<u64>) -> Self {
        let shards = shards.iter().map(|shard| u32::try_from(*shard).unwrap()).collect();
        let mut work = Self { producer, consumer, shards, before: 0 };
        // The first calls have other nodes tell of the topic.
        work.acked().await;
        work.before = work.acked().await;
        work
    }

    /// Works beside a fault, for [`WORKED`].
    pub async fn beside(&self, fault: &str) {
        let (beside, before) = (self.acked().await, self.before);
        println!("{fault}: {beside} items of a topic of other shards came beside it, {before} before");
        assert!(beside as f64 >= RATIO_MIN * before as f64, "{fault}: {beside} beside it, {before} before");
    }

    /// Works for [`WORKED`]. Returns how many items are acked by then.
    async fn acked(&self) -> usize {
        let (acked, mut items, mut ticks) = (Arc::new(AtomicUsize::new(0)), JoinSet::new(), interval(EVERY));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let work = async {
            for shard in self.shards.iter().cycle() {
                ticks.tick().await;
                let channels = [&self.producer, &self.consumer].map(Clone::clone);
                let (shard, acked) = (*shard, acked.clone());
                items.spawn(async move {
                    if let Ok(count) = lifecycle(channels, shard).await {
                        acked.fetch_add(count, Ordering::Relaxed);
                    }
                });
            }
        };
        tokio::select! {
            () = work => unreachable!("it works without end"),
            () = sleep(WORKED) => acked.load(Ordering::Relaxed),
        }
    }
}

/// Stores an item, and takes and acks one. Returns how many were acked.
async fn lifecycle([producer, consumer]: [Channel; 2], shard: u32) -> Result<usize, Status> {
    let items = vec![EnqueueItem { shard: Some(shard), ..item(TOPIC, 0, "p") }];
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..EnqueueRequest::default() };
    QueueServiceClient::new(producer).enqueue(request).await?;
    let mut consumer = QueueServiceClient::new(consumer);
    let demand = TopicDemand { selector: Some(Selector::Topic(TOPIC.into())), max_items: 1 };
    let request = DequeueRequest {
        namespace: NAMESPACE.into(),
        demands: vec![demand],
        wait: Some(span(WORKED)),
        ..DequeueRequest::default()
    };
    let items = consumer.dequeue(request).await?.into_inner().items;
    let acks = items.into_iter().map(|item| Ack { receipt: item.receipt }).collect();
    let request = AckRequest { namespace: NAMESPACE.into(), acks };
    let results = consumer.ack(request).await?.into_inner().results;
    Ok(results.iter().filter(|result| result.error.is_none()).count())
}
