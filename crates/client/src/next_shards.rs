//! The shards that the next enqueues of topics name, as servers propose.
//!
//! A call with a request id is remembered by one shard, and the servers look there when it is repeated. A
//! call that names no shard has one by chance. One that names a shard of its topic's goes where the topic's
//! other items are.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The most topics of which a proposal is kept.
const TOPICS_MAX: usize = 10_000;
/// A proposal counts for so long. A server that does not know of calls that name a shard takes longer to join
/// the others, which propose none from then on.
const COUNTS_FOR: Duration = Duration::from_secs(5);

/// The last proposal for each topic, and when it was made.
#[derive(Debug, Default)]
pub(crate) struct NextShards(Mutex<HashMap<String, (u32, Instant)>>);

impl NextShards {
    /// The shard that a call names whose first item is of this topic.
    pub(crate) fn of(&self, topic: &str) -> Option<u32> {
        let shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (shard, since) = shards.get(topic)?;
        (since.elapsed() < COUNTS_FOR).then_some(*shard)
    }

    /// A server proposes a shard, or none: then some server does not know of calls that name one, and no call
    /// does any more.
    pub(crate) fn learn(&self, topic: &str, shard: Option<u32>) {
        let mut shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shard) = shard else { return shards.clear() };
        let proposal = (shard, Instant::now());
        if let Some(known) = shards.get_mut(topic) {
            *known = proposal;
            return;
        }
        if shards.len() == TOPICS_MAX {
            shards.retain(|_, (_, since)| since.elapsed() < COUNTS_FOR);
        }
        if shards.len() < TOPICS_MAX {
            shards.insert(topic.to_owned(), proposal);
        }
    }

    /// A shard takes no items any more: its proposal is forgotten.
    pub(crate) fn forget(&self, topic: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1;
    use tonic::Code;

    use super::*;
    use crate::{
        item::NewItem,
        testing::{Fake, refusal},
    };

    #[tokio::test(start_paused = true)]
    async fn the_last_proposal_counts_for_a_while_and_one_answer_without_ends_all() {
        let shards = NextShards::default();
        assert_eq!(shards.of("a"), None);
        shards.learn("a", Some(3));
        shards.learn("b", Some(4));
        shards.learn("a", Some(5));
        assert_eq!((shards.of("a"), shards.of("b")), (Some(5), Some(4)));
        shards.forget("a");
        assert_eq!((shards.of("a"), shards.of("b")), (None, Some(4)));
        tokio::time::advance(COUNTS_FOR).await;
        assert_eq!(shards.of("b"), None);
        shards.learn("b", Some(4));
        shards.learn("a", None);
        assert_eq!(shards.of("b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_topics_are_remembered() {
        let shards = NextShards::default();
        (0..=TOPICS_MAX).for_each(|topic| shards.learn(&topic.to_string(), Some(1)));
        let last = TOPICS_MAX.to_string();
        assert_eq!((shards.of("0"), shards.of(&last)), (Some(1), None));
        tokio::time::advance(COUNTS_FOR).await;
        shards.learn(&last, Some(1));
        assert_eq!((shards.of("0"), shards.of(&last)), (None, Some(1)));
    }

    fn items() -> Vec<NewItem> {
        vec![NewItem::new("a", "1"), NewItem::new("b", "2")]
    }

    fn refused(code: Code, reason: &str) -> v1::EnqueueResponse {
        let result = v1::EnqueueResult { error: Some(refusal(code, reason, Some(1))), ..Default::default() };
        v1::EnqueueResponse { results: vec![result; 2] }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_call_names_the_shard_and_so_does_each_retry() {
        let (fake, client) = Fake::start().await;
        *fake.next_shard.lock().unwrap() = Some(7);
        client.enqueue(items()).await.unwrap();
        fake.enqueue.fail(Code::Unavailable, None, 1);
        client.enqueue(items()).await.unwrap();
        client.enqueue(vec![NewItem::new("b", "3")]).await.unwrap();
        client.enqueue_once("own", items()).await.unwrap();
        let keyed = NewItem { dedupe_key: Some("k".to_owned()), ..NewItem::new("a", "4") };
        client.enqueue(vec![keyed]).await.unwrap();
        *fake.next_shard.lock().unwrap() = None;
        client.enqueue(items()).await.unwrap();
        client.enqueue(items()).await.unwrap();
        let calls = fake.enqueue.calls();
        let named: Vec<Option<u32>> = calls.iter().map(|call| call.shard).collect();
        assert_eq!(named, [None, Some(7), Some(7), None, None, None, Some(7), None]);
        assert_eq!(calls[1], calls[2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_that_takes_no_items_is_named_no_more() {
        let (fake, client) = Fake::start().await;
        *fake.next_shard.lock().unwrap() = Some(7);
        client.enqueue(items()).await.unwrap();
        fake.enqueue.answer(refused(Code::FailedPrecondition, "SHARD_DRAINING"));
        let results = client.enqueue(items()).await.unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let calls = fake.enqueue.calls();
        assert_eq!([calls[1].shard, calls[2].shard], [Some(7), None]);
        assert_ne!(calls[1].request_id, calls[2].request_id);

        // The first try may have stored the call: it is not made under another id.
        fake.enqueue.fail(Code::DeadlineExceeded, None, 1);
        fake.enqueue.answer(refused(Code::FailedPrecondition, "SHARD_DRAINING"));
        let results = client.enqueue(items()).await.unwrap();
        assert!(results.iter().all(Result::is_err));
        let ids: std::collections::BTreeSet<String> =
            fake.enqueue.calls().split_off(3).into_iter().map(|call| call.request_id).collect();
        assert_eq!(ids.len(), 1);
    }
}
