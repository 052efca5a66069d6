//! Enqueue: safe to repeat through a request id or through the items' dedupe keys.

use forebay_proto::v1;

use super::tally::{Member, Tally, latest};
use crate::{Client, Error, NewItem, client::miscounted};

/// An item that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id, or that of the item that was there before.
    pub item_id: String,
    /// It was there before.
    pub duplicate: bool,
}

impl Client {
    /// Stores up to 1,000 items, 4 MiB together; one result per item, in their order.
    ///
    /// Without dedupe keys and shards the call gets a random request id, which makes repeating it safe at
    /// the price of one row, and is stored whole in one shard. With them each item stands for itself: those
    /// with a key are repeated, those without only if they were certainly not stored. After such a repetition
    /// `duplicate` may mean this very call.
    pub async fn enqueue(&self, items: Vec<NewItem>) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        let plain = items.iter().all(|item| item.dedupe_key.is_none() && item.shard.is_none());
        let identity = if plain { Identity::Random(self.dice.request_id()) } else { Identity::PerItem };
        self.enqueue_as(identity, items).await
    }

    /// The same under a request id of the caller's, who may repeat it after a restart: inside the dedupe
    /// window that stores nothing and answers the first call's results. Not with items that name a key or a shard.
    pub async fn enqueue_with_id(
        &self,
        request_id: impl Into<String>,
        items: Vec<NewItem>,
    ) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        self.enqueue_as(Identity::Given(request_id.into()), items).await
    }

    async fn enqueue_as(
        &self,
        mut identity: Identity,
        items: Vec<NewItem>,
    ) -> Result<Vec<Member<Enqueued>>, Error> {
        let items: Vec<_> = items.into_iter().map(NewItem::into_proto).collect();
        let mut attempts = self.attempts(std::time::Duration::ZERO);
        let mut tally = Tally::new(items.len());
        let mut left: Vec<usize> = (0..items.len()).collect();
        loop {
            let request = v1::EnqueueRequest {
                namespace: self.config.namespace.clone(),
                items: left.iter().map(|&at| items[at].clone()).collect(),
                request_id: identity.request_id(),
            };
            let answer = self
                .attempt(
                    std::time::Duration::ZERO,
                    attempts.until(),
                    request,
                    |mut grpc, request| async move { grpc.enqueue(request).await },
                )
                .await;
            let results = match answer {
                Ok(answer) if answer.results.len() == left.len() => answer.results,
                Ok(answer) => return Err(miscounted(left.len(), answer.results.len())),
                Err(error) => {
                    left.iter().for_each(|&at| tally.leave_open(at, &error));
                    let safe = |&at: &usize| identity.may_repeat(&items[at], &error);
                    if left.iter().all(safe) && attempts.again(&error, &self.dice).await {
                        continue;
                    }
                    return tally.fail_rest(&error);
                }
            };

            let results: Vec<_> = left.iter().copied().zip(results.into_iter().map(member)).collect();
            let open = results.iter().any(|(_, result)| matches!(result, Err(error) if error.maybe_done()));
            let mut failed = Vec::new();
            for (at, result) in results {
                match result {
                    // While one member of a call with an id is open the whole call is repeated as it was.
                    answer @ Ok(_) if open && identity.is_whole() => failed.push((at, answer)),
                    Ok(done) => tally.settle(at, Ok(done)),
                    Err(error) if error.is_transient() && identity.may_repeat(&items[at], &error) => {
                        tally.leave_open(at, &error);
                        failed.push((at, Err(error)));
                    }
                    Err(error) if open && identity.is_whole() => failed.push((at, Err(error))),
                    Err(error) => tally.fail(at, error),
                }
            }
            let Some(longest) =
                latest(failed.iter().filter_map(|(_, answer)| answer.as_ref().err())).cloned()
            else {
                return tally.finish();
            };
            let repeat = open || !matches!(identity, Identity::Given(_));
            if !repeat || !attempts.again(&longest, &self.dice).await {
                for (at, answer) in failed {
                    match answer {
                        Ok(done) => tally.settle(at, Ok(done)),
                        Err(error) => tally.fail(at, error),
                    }
                }
                return tally.finish();
            }
            left = failed.into_iter().map(|(at, _)| at).collect();
            if let (Identity::Random(id), false) = (&mut identity, open) {
                // These certainly did not happen: they are a new call.
                *id = self.dice.request_id();
            }
        }
    }
}

/// What tells a repeated enqueue from a new one.
enum Identity {
    /// A request id of this client's making.
    Random(String),
    /// The caller's request id.
    Given(String),
    /// Nothing, or the items' dedupe keys.
    PerItem,
}

impl Identity {
    fn request_id(&self) -> String {
        match self {
            Self::Random(id) | Self::Given(id) => id.clone(),
            Self::PerItem => String::new(),
        }
    }

    /// The call is stored, and repeated, as a whole.
    fn is_whole(&self) -> bool {
        !matches!(self, Self::PerItem)
    }

    fn may_repeat(&self, item: &v1::EnqueueItem, after: &Error) -> bool {
        self.is_whole() || !item.dedupe_key.is_empty() || !after.maybe_done()
    }
}

fn member(result: v1::EnqueueResult) -> Member<Enqueued> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(Enqueued { item_id: result.item_id, duplicate: result.duplicate }),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::testing::{Fake, refusal, stored};

    #[tokio::test(start_paused = true)]
    async fn an_unavailable_call_is_repeated_with_the_same_id() {
        let (fake, client) = Fake::start().await;
        fake.enqueue.fail(Code::Unavailable, None, 2);
        let results = client.enqueue(vec![NewItem::new("a", "1"), NewItem::new("a", "2")]).await.unwrap();
        assert!(results.iter().all(Result::is_ok));
        let calls = fake.enqueue.calls();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[0].request_id.len(), 32);
        assert!(calls.iter().all(|call| *call == calls[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_identity_is_not_repeated_when_it_may_have_happened() {
        let (fake, client) = Fake::start().await;
        let item = NewItem { shard: Some(1), ..NewItem::new("a", "1") };
        fake.enqueue.fail(Code::Unavailable, None, 1);
        let error = client.enqueue(vec![item.clone()]).await.unwrap_err();
        assert!(error.maybe_done());
        assert_eq!(fake.enqueue.calls().len(), 1);

        fake.enqueue.fail(Code::Unavailable, Some("SHARD_UNAVAILABLE"), 1);
        assert!(client.enqueue(vec![item]).await.unwrap()[0].is_ok());
        let calls = fake.enqueue.calls();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[2].request_id, "");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_member_repeats_the_whole_call_and_a_refused_one_is_a_new_call() {
        let (fake, client) = Fake::start().await;
        let unknown = v1::EnqueueResult {
            error: Some(refusal(Code::Unavailable, "OUTCOME_UNKNOWN", Some(1))),
            ..Default::default()
        };
        let refused = v1::EnqueueResult {
            error: Some(refusal(Code::ResourceExhausted, "OVERLOADED", Some(1))),
            ..Default::default()
        };
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("x"), unknown] });
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), refused] });
        let results = client.enqueue(vec![NewItem::new("a", "1"), NewItem::new("a", "2")]).await.unwrap();
        assert_eq!(results[0].as_ref().unwrap().item_id, "1-1");
        assert!(results[1].is_ok());
        let calls = fake.enqueue.calls();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[0], calls[1]);
        assert_eq!(calls[2].items.len(), 1);
        assert_ne!(calls[2].request_id, calls[1].request_id);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_member_is_an_answer() {
        let (fake, client) = Fake::start().await;
        let wrong = v1::EnqueueResult {
            error: Some(refusal(Code::InvalidArgument, "INVALID_FIELD", None)),
            ..Default::default()
        };
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), wrong] });
        let results = client.enqueue(vec![NewItem::new("a", "1"), NewItem::new("?", "2")]).await.unwrap();
        assert!(results[0].is_ok());
        assert!(!results[1].as_ref().unwrap_err().maybe_done());
        assert_eq!(fake.enqueue.calls().len(), 1);
    }
}
