//! The queued items of a producer, and how batches are taken from them.

use std::collections::VecDeque;

use forebay_proto::v1;
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::config::ProducerConfig;
use crate::{calls::enqueue::EnqueuedItem, error::Error};

/// Bytes that the protobuf encoding adds to a member: tag and length.
const MEMBER_OVERHEAD_BYTES: usize = 8;

/// An item that waits for its batch.
#[derive(Debug)]
pub(super) struct QueuedItem {
    /// The item, encoded.
    pub(super) item: v1::EnqueueItem,
    /// Its encoded size in a request.
    pub(super) bytes: usize,
    /// Receives the answer.
    pub(super) answer: oneshot::Sender<Result<EnqueuedItem, Error>>,
    /// Its share of the buffer, released after the answer.
    _permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl QueuedItem {
    /// An item, and where its answer arrives.
    pub(super) fn new(item: v1::EnqueueItem) -> (Self, oneshot::Receiver<Result<EnqueuedItem, Error>>) {
        let (answer, pending) = oneshot::channel();
        let bytes = item.encoded_len() + MEMBER_OVERHEAD_BYTES;
        (Self { item, bytes, answer, _permits: None }, pending)
    }

    /// The same with its share of the buffer.
    pub(super) fn with_permits(self, permits: (OwnedSemaphorePermit, OwnedSemaphorePermit)) -> Self {
        Self { _permits: Some(permits), ..self }
    }
}

/// Queued items, separated by what makes their call safe to retry. A request id covers a whole call, so it
/// cannot be combined with dedupe keys. An item with neither would prevent the retry of the others.
#[derive(Debug, Default)]
pub(super) struct Batcher {
    /// With a request id, with dedupe keys, and with neither.
    queues: [Queue; 3],
    /// Numbers the items, so that the oldest is sent first.
    arrivals: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Each with its arrival number.
    items: VecDeque<(u64, QueuedItem)>,
    /// Encoded size of the items.
    bytes: usize,
}

impl Batcher {
    /// Adds an item.
    pub(super) fn push(&mut self, queued: QueuedItem) {
        let queue = match (queued.item.dedupe_key.as_str(), queued.item.shard) {
            ("", None) => 0,
            ("", Some(_)) => 2,
            (_, _) => 1,
        };
        self.arrivals += 1;
        self.queues[queue].bytes += queued.bytes;
        self.queues[queue].items.push_back((self.arrivals, queued));
    }

    /// Whether no item is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.items.is_empty())
    }

    /// Whether some batch is full.
    pub(super) fn is_full(&self, config: &ProducerConfig) -> bool {
        self.queues
            .iter()
            .any(|queue| queue.items.len() >= config.batch_items || queue.bytes >= config.batch_bytes)
    }

    /// Takes the next batch from the queue with the oldest item: as many items as fit, at least one.
    pub(super) fn next_batch(&mut self, config: &ProducerConfig) -> Vec<QueuedItem> {
        let first = |queue: &Queue| queue.items.front().map_or(u64::MAX, |(arrival, _)| *arrival);
        let mut batch = Vec::new();
        let mut bytes = 0;
        if let Some(queue) = self.queues.iter_mut().min_by_key(|queue| first(queue)) {
            while let Some((_, next)) = queue.items.front() {
                let full = batch.len() >= config.batch_items || bytes + next.bytes > config.batch_bytes;
                if full && !batch.is_empty() {
                    break;
                }
                if let Some((_, next)) = queue.items.pop_front() {
                    bytes += next.bytes;
                    batch.push(next);
                }
            }
            queue.bytes -= bytes;
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::NewItem;

    fn config(batch_items: usize, batch_bytes: usize) -> ProducerConfig {
        ProducerConfig { batch_items, batch_bytes, ..ProducerConfig::default() }
    }

    fn batcher(items: Vec<NewItem>) -> Batcher {
        let mut batcher = Batcher::default();
        items.into_iter().for_each(|item| batcher.push(QueuedItem::new(item.into_proto()).0));
        batcher
    }

    #[test]
    fn a_batch_respects_both_limits() {
        let items = (0..10).map(|_| NewItem::new("a", vec![0; 1_000])).collect();
        let mut batcher = batcher(items);
        assert_eq!(batcher.next_batch(&config(4, 1 << 20)).len(), 4);
        assert_eq!(batcher.next_batch(&config(100, 3_100)).len(), 3);
        assert_eq!(batcher.next_batch(&config(100, 10)).len(), 1, "an item over the limit goes alone");
        assert_eq!(batcher.next_batch(&config(100, 1 << 20)).len(), 2);
        assert!(batcher.is_empty() && batcher.queues[0].bytes == 0);
    }

    #[test]
    fn a_batch_is_of_one_kind_and_the_oldest_goes_first() {
        let plain = || NewItem::new("a", "");
        let mut batcher = batcher(vec![
            plain().dedupe_key("k"),
            plain(),
            NewItem { shard: Some(1), ..plain() },
            plain().dedupe_key("l"),
            plain(),
        ]);
        let config = config(100, 1 << 20);
        let kinds: Vec<Vec<_>> = std::iter::from_fn(|| {
            let batch = batcher.next_batch(&config);
            (!batch.is_empty()).then(|| {
                batch.iter().map(|one| (!one.item.dedupe_key.is_empty(), one.item.shard.is_some())).collect()
            })
        })
        .collect();
        assert_eq!(kinds, [vec![(true, false); 2], vec![(false, false); 2], vec![(false, true)]]);
    }
}
