//! The memory of a node under a hostile mix of sizes.

use std::time::Duration;

use forebay_proto::v1::{Ack, AckRequest, DequeueRequest, EnqueueItem};
use tokio::{task::JoinSet, time::sleep};
use tonic::Code;

use super::{NAMESPACE, Wire, asked, item, seconds};

/// Bytes that the node may hold by its configuration: index, waiting enqueues, requests, unread answers.
const BUDGETS: u64 = (16 + 16 + 16 + 16) << 20;
/// Bytes that it may need beside that.
const OVERHEAD: u64 = 90 << 20;

/// Bytes that may be on their way to all consumers at once.
const ON_ITS_WAY: u64 = (CONSUMERS as u64) << 20;

const CONSUMERS: usize = 8;
const TOPICS: usize = 16;
/// The largest payload but for a little.
const LARGE: usize = 255 << 10;
const LARGE_ITEMS: usize = 48;
const SMALL_ITEMS: usize = 500;

/// Large items first and small ones behind them, in the same topics: whoever guesses the size of the next
/// items by those that came last is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_within_the_budgets_whatever_the_sizes() {
    let wire = Wire::with(
        "[memory]\nindex_bytes = 16777216\nadmit_bytes = 16777216\nadmit_shard_bytes = 8388608\n\
         admit_tenant_bytes = 4194304\nrequest_bytes = 16777216\nunsent_bytes = 16777216\n\
         unsent_bytes_per_connection = 8388608\n",
    )
    .await;
    for topic in 0..TOPICS {
        let name = topic.to_string();
        let large = EnqueueItem { payload: vec![1; LARGE].into(), ..item(&name) };
        for _ in 0..LARGE_ITEMS / 12 {
            wire.stored(vec![large.clone(); 12]).await;
        }
        wire.stored(vec![item(&name); SMALL_ITEMS]).await;
    }
    let mut consumers = JoinSet::new();
    for consumer in 0..CONSUMERS {
        let mut client = wire.client();
        consumers.spawn(async move {
            for topic in (consumer..TOPICS).step_by(CONSUMERS) {
                let mut left = LARGE_ITEMS + SMALL_ITEMS;
                while left > 0 {
                    let wait = Some(seconds(20));
                    let asked = asked(&topic.to_string(), 100);
                    let request = DequeueRequest { wait, max_bytes: 1 << 20, ..asked };
                    let items = match client.dequeue(request).await {
                        Ok(answer) => answer.into_inner().items,
                        // On a machine that does much else answers are read late. Nothing is leased then.
                        Err(status) if status.code() == Code::ResourceExhausted => {
                            sleep(Duration::from_millis(20)).await;
                            continue;
                        }
                        Err(status) => panic!("{status:?}"),
                    };
                    left -= items.len();
                    let acks = items.into_iter().map(|item| Ack { receipt: item.receipt }).collect();
                    client.ack(AckRequest { namespace: NAMESPACE.into(), acks }).await.expect("acks");
                }
            }
        });
    }
    while let Some(done) = consumers.join_next().await {
        done.unwrap();
    }
    let peak = wire.node.peak_bytes();
    assert!(peak <= BUDGETS + ON_ITS_WAY + OVERHEAD, "{} MiB of data at the peak", peak >> 20);
}
