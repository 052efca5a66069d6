//! What waits in a producer, and how the next batch is cut from it.

use std::collections::VecDeque;

use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{Enqueued, Error, NewItem, ProducerConfig};

/// Bytes that the protobuf encoding adds to a member: tag and length.
const MEMBER_BYTES: usize = 8;

/// One item with what it needs to come to its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    /// What to store.
    pub(super) item: NewItem,
    /// Its share of a request.
    pub(super) bytes: usize,
    /// Where the answer goes.
    pub(super) answer: oneshot::Sender<Result<Enqueued, Error>>,
    /// Its place in the buffer, given back when the answer is there.
    _room: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Waiting {
    pub(super) fn new(item: NewItem) -> (Self, oneshot::Receiver<Result<Enqueued, Error>>) {
        let (answer, pending) = oneshot::channel();
        // The payload is shared, so this clone is cheap.
        let bytes = item.clone().into_proto().encoded_len() + MEMBER_BYTES;
        (Self { item, bytes, answer, _room: None }, pending)
    }

    pub(super) fn with_room(self, room: (OwnedSemaphorePermit, OwnedSemaphorePermit)) -> Self {
        Self { _room: Some(room), ..self }
    }
}

/// Items that wait, apart by what makes their call safe to repeat: a request id holds for a whole call, so it
/// can't be mixed with dedupe keys; an item with neither must not cost the others their repetition.
#[derive(Debug, Default)]
pub(super) struct Gather {
    queues: [Queue; 3],
    arrivals: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// With the number of its arrival.
    items: VecDeque<(u64, Waiting)>,
    bytes: usize,
}

impl Gather {
    pub(super) fn push(&mut self, waiting: Waiting) {
        let queue = match (&waiting.item.dedupe_key, &waiting.item.shard) {
            (None, None) => 0,
            (Some(_), _) => 1,
            (None, Some(_)) => 2,
        };
        self.arrivals += 1;
        self.queues[queue].bytes += waiting.bytes;
        self.queues[queue].items.push_back((self.arrivals, waiting));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.items.is_empty())
    }

    /// Whether a batch can't grow any more.
    pub(super) fn is_full(&self, config: &ProducerConfig) -> bool {
        self.queues
            .iter()
            .any(|queue| queue.items.len() >= config.batch_items || queue.bytes >= config.batch_bytes)
    }

    /// The next batch: of the queue whose first item came first, as many as fit, at least one.
    pub(super) fn cut(&mut self, config: &ProducerConfig) -> Vec<Waiting> {
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

    fn config(batch_items: usize, batch_bytes: usize) -> ProducerConfig {
        ProducerConfig { batch_items, batch_bytes, ..ProducerConfig::default() }
    }

    fn gather(items: Vec<NewItem>) -> Gather {
        let mut gather = Gather::default();
        items.into_iter().for_each(|item| gather.push(Waiting::new(item).0));
        gather
    }

    #[test]
    fn a_batch_keeps_both_limits() {
        let items = (0..10).map(|_| NewItem::new("a", vec![0; 1_000])).collect();
        let mut gather = gather(items);
        assert_eq!(gather.cut(&config(4, 1 << 20)).len(), 4);
        assert_eq!(gather.cut(&config(100, 3_100)).len(), 3);
        assert_eq!(gather.cut(&config(100, 10)).len(), 1, "an item over the limit goes alone");
        assert_eq!(gather.cut(&config(100, 1 << 20)).len(), 2);
        assert!(gather.is_empty() && gather.queues[0].bytes == 0);
    }

    #[test]
    fn a_batch_is_of_one_kind_and_the_oldest_goes_first() {
        let plain = || NewItem::new("a", "");
        let mut gather = gather(vec![
            plain().dedupe_key("k"),
            plain(),
            NewItem { shard: Some(1), ..plain() },
            plain().dedupe_key("l"),
            plain(),
        ]);
        let config = config(100, 1 << 20);
        let kinds: Vec<Vec<_>> = std::iter::from_fn(|| {
            let batch = gather.cut(&config);
            (!batch.is_empty()).then(|| {
                batch.iter().map(|one| (one.item.dedupe_key.is_some(), one.item.shard.is_some())).collect()
            })
        })
        .collect();
        assert_eq!(kinds, [vec![(true, false); 2], vec![(false, false); 2], vec![(false, true)]]);
    }
}
