//! The shards that the next enqueues of topics name, as servers propose.
//!
//! A call with a request id is remembered by one shard, and the servers look there when it is repeated. A
//! call that names no shard has one by chance. One that names a shard of its topic's goes where the topic's
//! other items are, and is sent to the shard's owner.

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

/// A server's proposal for the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextShard {
    /// The shard.
    pub(crate) shard: u32,
    /// Its owner's endpoint, if that node can be called.
    pub(crate) owner: Option<u32>,
}

/// The last proposal for each topic, and when it was made.
#[derive(Debug, Default)]
pub(crate) struct NextShards(Mutex<HashMap<String, (NextShard, Instant)>>);

impl NextShards {
    /// The proposal for a call whose first item is of this topic.
    pub(crate) fn of(&self, topic: &str) -> Option<NextShard> {
        let shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (shard, since) = shards.get(topic)?;
        (since.elapsed() < COUNTS_FOR).then_some(*shard)
    }

    /// A server proposes a shard, or none: then some server does not know of calls that name one, and no call
    /// does any more.
    pub(crate) fn learn(&self, topic: &str, next: Option<NextShard>) {
        let mut shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = next else { return shards.clear() };
        let proposal = (next, Instant::now());
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
        testing::{Fake, Network, refusal},
    };

    fn next(shard: u32) -> Option<NextShard> {
        Some(NextShard { shard, owner: None })
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_proposal_counts_for_a_while_and_one_answer_without_ends_all() {
        let shards = NextShards::default();
        assert_eq!(shards.of("a"), None);
        shards.learn("a", next(3));
        shards.learn("b", next(4));
        shards.learn("a", next(5));
        assert_eq!((shards.of("a"), shards.of("b")), (next(5), next(4)));
        shards.forget("a");
        assert_eq!((shards.of("a"), shards.of("b")), (None, next(4)));
        tokio::time::advance(COUNTS_FOR).await;
        assert_eq!(shards.of("b"), None);
        shards.learn("b", next(4));
        shards.learn("a", None);
        assert_eq!(shards.of("b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_topics_are_remembered() {
        let shards = NextShards::default();
        (0..=TOPICS_MAX).for_each(|topic| shards.learn(&topic.to_string(), next(1)));
        let last = TOPICS_MAX.to_string();
        assert_eq!((shards.of("0"), shards.of(&last)), (next(1), None));
        tokio::time::advance(COUNTS_FOR).await;
        shards.learn(&last, next(1));
        assert_eq!((shards.of("0"), shards.of(&last)), (None, next(1)));
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
    async fn the_next_call_goes_to_the_owner_while_that_works() {
        let network = Network::default();
        let (a, b) = (network.fake("a:1"), network.fake("b:1"));
        network.cluster(&[("a:1", &a), ("b:1", &b)]);
        let client = network.client(&["a:1"]);
        while client.servers() != ["a:1", "b:1"] {
            client.enqueue(items()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for fake in [&a, &b] {
            *fake.next_shard.lock().unwrap() = Some(7);
            *fake.source.lock().unwrap() = Some("b:1");
        }
        // The first one learns of the owner, wherever it goes.
        client.enqueue(items()).await.unwrap();
        let before = (a.enqueue.calls().len(), b.enqueue.calls().len());
        for _ in 0..4 {
            client.enqueue(items()).await.unwrap();
        }
        assert_eq!((a.enqueue.calls().len(), b.enqueue.calls().len()), (before.0, before.1 + 4));
        // Calls whose ids the caller made go to all in turn, and those in order stay where they are.
        for number in 0..2 {
            client.enqueue_once(format!("own-{number}"), items()).await.unwrap();
        }
        assert_eq!((a.enqueue.calls().len(), b.enqueue.calls().len()), (before.0 + 1, before.1 + 5));
        let (in_order, other) = (client.in_order(), client.in_order());
        for _ in 0..2 {
            in_order.enqueue(items()).await.unwrap();
            other.enqueue(items()).await.unwrap();
        }
        assert_eq!((a.enqueue.calls().len(), b.enqueue.calls().len()), (before.0 + 3, before.1 + 7));
        network.cut("b:1", true);
        client.enqueue(items()).await.unwrap();
        assert_eq!(a.enqueue.calls().len(), before.0 + 4, "the owner does not answer");
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
