//! Enqueue. It is retried safely through a request id or through the items' dedupe keys.

use std::time::Duration;

use forebay_proto::{NEXT_SHARD_HEADER, NODE_HEADER, time::from_timestamp, v1};
use forebay_types::{Reason, Timestamp};
use tonic::Response;

use super::member_results::{Member, MemberResults};
use crate::{
    client::{Client, miscounted},
    error::Error,
    item::NewItem,
    next_shards::NextShard,
    retry::Target,
    rng::SharedRng,
    traces,
};

/// A stored item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueuedItem {
    /// Its id, or the id of the item that was stored before.
    pub item_id: String,
    /// An item of the topic with this dedupe key was stored before.
    pub duplicate: bool,
    /// When that one was stored.
    pub first_enqueued_at: Option<Timestamp>,
}

impl Client {
    /// Stores up to 1,000 items, 4 MiB together. One result per item, in their order.
    ///
    /// Without dedupe keys and shards the call gets a random request id. That makes retries safe at the price
    /// of one row, and stores the call in one shard. Otherwise each item is retried by itself: one with a
    /// dedupe key always, one without only if it was certainly not stored. After such a retry `duplicate` may
    /// refer to this very call.
    pub async fn enqueue(&self, items: Vec<NewItem>) -> Result<Vec<Result<EnqueuedItem, Error>>, Error> {
        self.enqueue_encoded(items.into_iter().map(NewItem::into_proto).collect()).await
    }

    /// The same with items that are encoded.
    pub(crate) async fn enqueue_encoded(
        &self,
        items: Vec<v1::EnqueueItem>,
    ) -> Result<Vec<Result<EnqueuedItem, Error>>, Error> {
        if items.iter().any(|item| !item.dedupe_key.is_empty() || item.shard.is_some()) {
            return self.enqueue_with(Identity::PerItem, None, items).await;
        }
        let next = items.first().and_then(|item| self.next_shards.of(&item.topic));
        let identity = Identity::random(&self.rng, next.map(|next| next.shard));
        self.enqueue_with(identity, next.and_then(|next| next.owner), items).await
    }

    /// The same with a request id of the caller's, so that the whole call may be repeated later, also by
    /// another process: within the dedupe window the server answers the first call's results. The items must
    /// be the same, and have neither dedupe keys nor shards.
    pub async fn enqueue_once(
        &self,
        request_id: impl Into<String>,
        items: Vec<NewItem>,
    ) -> Result<Vec<Result<EnqueuedItem, Error>>, Error> {
        let items = items.into_iter().map(NewItem::into_proto).collect();
        self.enqueue_with(Identity::Given(request_id.into()), None, items).await
    }

    /// The same for an identity. `owner`: the endpoint that owns the shard which the call names.
    async fn enqueue_with(
        &self,
        identity: Identity,
        owner: Option<u32>,
        mut items: Vec<v1::EnqueueItem>,
    ) -> Result<Vec<Result<EnqueuedItem, Error>>, Error> {
        let span = traces::enqueue(&mut items, self.config.traces, || self.only_server());
        span.around_members(self.store(identity, owner, items), |stored| Some(&stored.item_id)).await
    }

    /// Makes the call, with as many attempts as it takes.
    async fn store(
        &self,
        mut identity: Identity,
        owner: Option<u32>,
        items: Vec<v1::EnqueueItem>,
    ) -> Result<Vec<Result<EnqueuedItem, Error>>, Error> {
        let mut attempts = self.attempts_near(owner);
        let mut results = MemberResults::new(items.len());
        let mut left: Vec<usize> = (0..items.len()).collect();
        loop {
            let target = attempts.target()?;
            let answers = match self.attempt_enqueue(&target, &identity, &items, &left).await {
                Ok(answers) if answers.len() == left.len() => answers,
                Ok(answers) => return Err(miscounted(left.len(), answers.len())),
                Err(error) if identity.is_unfit(&error) => vec![Err(error); left.len()],
                Err(error) => {
                    left.iter().for_each(|&at| results.attempt_failed(at, &error));
                    let safe = |&at: &usize| identity.may_retry(&items[at], &error);
                    if left.iter().all(safe) && attempts.wait_for_retry(&[&error]).await {
                        continue;
                    }
                    return results.fail_rest(&attempts.final_error(error));
                }
            };
            // An earlier attempt may have stored the call. Whatever later ones say, it would be stored twice
            // under a new id.
            let was_unknown = left.iter().any(|&at| results.is_unknown(at));
            let is_unfit = |answer: &Member<_>| matches!(answer, Err(error) if identity.is_unfit(error));
            if !was_unknown && answers.iter().any(is_unfit) {
                // Nothing of the call was stored. Without a name it is not refused so again.
                self.next_shards.forget(&items[left[0]].topic);
                identity = Identity::random(&self.rng, None);
                continue;
            }
            let answers: Vec<_> = left.into_iter().zip(answers).collect();
            // A caller's own id can't be given up. What the owner of its shard says of a member is final.
            let is_open =
                |error: &Error| error.is_transient() && (!identity.is_given() || !asked_the_shard(error));
            let again = |error: &Error| error.maybe_done() || was_unknown && is_open(error);
            let unknown = answers.iter().any(|(_, answer)| matches!(answer, Err(error) if again(error)));
            // A request id belongs to one shard. If this node does not own that, another one may.
            let elsewhere = attempts.can_move_on()
                && answers.iter().all(
                    |(_, answer)| matches!(answer, Err(error) if error.reason() == Some(Reason::NotOwner)),
                );
            let retried = identity.retried(&items, answers, unknown || elsewhere, &mut results);
            // A refused member of a call that is repeated as a whole does not prevent the retry.
            let errors = retried.iter().filter_map(|(_, answer)| answer.as_ref().err());
            let errors: Vec<_> = errors.filter(|error| error.is_transient()).collect();
            if errors.is_empty() {
                return results.finish();
            }
            // Under a new id the call most likely belongs to another shard.
            let is_new = matches!(identity, Identity::RequestId { .. }) && !unknown && !elsewhere;
            let sick_home = |error: &&Error| error.reason() == Some(Reason::ShardUnavailable);
            let at_once = is_new && errors.iter().all(sick_home) && attempts.retry_at_once(&errors);
            if !at_once && !attempts.wait_for_retry(&errors).await {
                results.settle(retried);
                return results.finish();
            }
            left = retried.into_iter().map(|(at, _)| at).collect();
            if identity.is_whole() && !unknown && !elsewhere {
                // These were certainly not stored, so they are a new call.
                identity = self.another(&identity, &items, &left);
            }
        }
    }

    /// The identity of a new call for items that were certainly not stored. It does not name the shard again
    /// that refused them.
    fn another(&self, refused: &Identity, items: &[v1::EnqueueItem], left: &[usize]) -> Identity {
        let topic = left.first().map_or("", |&at| &items[at].topic);
        let shard = self.next_shards.of(topic).map(|next| next.shard);
        if shard.is_some() && shard == refused.shard() {
            self.next_shards.forget(topic);
            return Identity::random(&self.rng, None);
        }
        Identity::random(&self.rng, shard)
    }

    async fn attempt_enqueue(
        &self,
        target: &Target,
        identity: &Identity,
        items: &[v1::EnqueueItem],
        left: &[usize],
    ) -> Result<Vec<Member<EnqueuedItem>>, Error> {
        let request = v1::EnqueueRequest {
            namespace: self.config.namespace.clone(),
            items: left.iter().map(|&at| items[at].clone()).collect(),
            request_id: identity.request_id(),
            shard: identity.shard(),
        };
        let answer = self.attempt(target, Duration::ZERO, request, |mut grpc, request| async move {
            grpc.enqueue(request).await.map(with_proposal)
        });
        let (answer, proposal) = answer.await?;
        if let (Identity::RequestId { .. }, Some(&first)) = (identity, left.first()) {
            let owner = |node: String| self.learner.as_ref()?.endpoint_of(&node).map(|at| at.id());
            let next = proposal.map(|(shard, node)| NextShard { shard, owner: node.and_then(owner) });
            self.next_shards.learn(&items[first].topic, next);
        }
        Ok(answer.results.into_iter().map(member).collect())
    }
}

/// Identity of an enqueue: it tells a retried one from a new one.
enum Identity {
    /// A random request id. It identifies the call as a whole, in the shard that it names, if any.
    RequestId {
        /// The id.
        id: String,
        /// The shard that the call names. Each repeat names it again.
        shard: Option<u32>,
    },
    /// The caller's own request id. What it answers for a member is final: a new call would need another id.
    Given(String),
    /// The items' dedupe keys. An item without one has no identity.
    PerItem,
}

impl Identity {
    fn random(rng: &SharedRng, shard: Option<u32>) -> Self {
        Self::RequestId { id: rng.request_id(), shard }
    }

    /// The shard that the call names.
    const fn shard(&self) -> Option<u32> {
        match self {
            Self::RequestId { shard, .. } => *shard,
            Self::Given(_) | Self::PerItem => None,
        }
    }

    /// The shard that the call names takes no items any more: it is drained, or gone.
    fn is_unfit(&self, error: &Error) -> bool {
        let is_gone = || error.reason() == Some(Reason::InvalidField) && error.field() == Some("shard");
        self.shard().is_some() && (error.reason() == Some(Reason::ShardDraining) || is_gone())
    }

    fn request_id(&self) -> String {
        match self {
            Self::RequestId { id, .. } | Self::Given(id) => id.clone(),
            Self::PerItem => String::new(),
        }
    }

    /// The call is stored and retried as a whole.
    fn is_whole(&self) -> bool {
        matches!(self, Self::RequestId { .. } | Self::Given(_))
    }

    /// It is the caller's own request id.
    fn is_given(&self) -> bool {
        matches!(self, Self::Given(_))
    }

    fn may_retry(&self, item: &v1::EnqueueItem, after: &Error) -> bool {
        self.is_whole() || !item.dedupe_key.is_empty() || !after.maybe_done()
    }

    /// Sets the final answers in `results`, and returns the answers of the members to send again. While any
    /// outcome of a whole call is `open`, since it is unknown or another node has to say it, all of its
    /// members are sent again.
    fn retried(
        &self,
        items: &[v1::EnqueueItem],
        answers: Vec<(usize, Member<EnqueuedItem>)>,
        open: bool,
        results: &mut MemberResults<EnqueuedItem>,
    ) -> Vec<(usize, Member<EnqueuedItem>)> {
        let repeat_all = open && self.is_whole();
        let is_final = matches!(self, Self::Given(_)) && !open;
        let mut retried = Vec::new();
        for (at, answer) in answers {
            match answer {
                Err(error) if is_final => results.fail(at, error),
                Err(error) if error.is_transient() && self.may_retry(&items[at], &error) => {
                    results.attempt_failed(at, &error);
                    retried.push((at, Err(error)));
                }
                answer if repeat_all => retried.push((at, answer)),
                Ok(stored) => results.set(at, Ok(stored)),
                Err(error) => results.fail(at, error),
            }
        }
        retried
    }
}

/// The shard that an answer proposes for the next call, and the name of its owner.
type Proposal = (u32, Option<String>);

/// An answer, and its proposal.
fn with_proposal(answer: Response<v1::EnqueueResponse>) -> Response<(v1::EnqueueResponse, Option<Proposal>)> {
    let named = |header| answer.metadata().get(header).and_then(|value| value.to_str().ok());
    let shard = named(NEXT_SHARD_HEADER).and_then(|shard| shard.parse().ok());
    let proposal = shard.map(|shard| (shard, named(NODE_HEADER).map(str::to_owned)));
    answer.map(|answer| (answer, proposal))
}

/// Whether a refusal comes from the owner of the shard, which knows what was stored there.
fn asked_the_shard(error: &Error) -> bool {
    !matches!(error.reason(), Some(Reason::NotOwner | Reason::ShardUnavailable | Reason::NodeDraining))
}

fn member(result: v1::EnqueueResult) -> Member<EnqueuedItem> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(EnqueuedItem {
            item_id: result.item_id,
            duplicate: result.duplicate,
            first_enqueued_at: result.first_enqueued_at.map(from_timestamp),
        }),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::testing::{Fake, refusal, stored};

    #[tokio::test(start_paused = true)]
    async fn an_unavailable_call_is_retried_with_the_same_id() {
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
    async fn a_call_without_identity_is_not_retried_if_it_may_have_taken_effect() {
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

    fn unknown() -> v1::EnqueueResult {
        failed(refusal(Code::Unavailable, "OUTCOME_UNKNOWN", Some(1)))
    }

    fn failed(error: tonic_types::Status) -> v1::EnqueueResult {
        v1::EnqueueResult { error: Some(error), ..Default::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_member_retries_the_whole_call() {
        let (fake, client) = Fake::start().await;
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("x"), unknown()] });
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), stored("1-2")] });
        let results = client.enqueue(vec![NewItem::new("a", "1"), NewItem::new("a", "2")]).await.unwrap();
        assert_eq!(results[0].as_ref().unwrap().item_id, "1-1");
        assert!(results[1].is_ok());
        let calls = fake.enqueue.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0], calls[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_member_is_a_new_call_if_no_outcome_was_unknown() {
        let (fake, client) = Fake::start().await;
        let refused = failed(refusal(Code::ResourceExhausted, "OVERLOADED", Some(1)));
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), refused] });
        let results = client.enqueue(vec![NewItem::new("a", "1"), NewItem::new("a", "2")]).await.unwrap();
        assert!(results.iter().all(Result::is_ok));
        let calls = fake.enqueue.calls();
        assert_eq!((calls.len(), calls[1].items.len()), (2, 1));
        assert_ne!(calls[1].request_id, calls[0].request_id);
    }

    /// The first try was stored, and nobody knows it. Whatever the next ones are told, they are the same
    /// call: the server that remembers it has one item.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_may_be_stored_keeps_its_id_whatever_later_tries_are_told() {
        let told = [
            ("OVERLOADED", Code::ResourceExhausted),
            ("SHARD_UNAVAILABLE", Code::Unavailable),
            ("NOT_OWNER", Code::Unavailable),
            ("DISK_FULL", Code::ResourceExhausted),
            ("NODE_DRAINING", Code::Unavailable),
        ];
        // An answer for each item, an answer for the whole call, and none.
        for first in 0..3 {
            let (fake, client) = Fake::start().await;
            match first {
                0 => fake.enqueue.answer(v1::EnqueueResponse { results: vec![unknown()] }),
                1 => fake.enqueue.fail(Code::Unavailable, Some("OUTCOME_UNKNOWN"), 1),
                _ => fake.enqueue.fail(Code::DeadlineExceeded, None, 1),
            }
            for (reason, code) in told {
                let results = vec![failed(refusal(code, reason, Some(1)))];
                fake.enqueue.answer(v1::EnqueueResponse { results });
            }
            for (reason, code) in told {
                fake.enqueue.fail(code, Some(reason), 1);
            }
            fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1")] });
            let results = client.enqueue(vec![NewItem::new("a", "1")]).await.unwrap();
            assert_eq!(results[0].as_ref().unwrap().item_id, "1-1");
            let ids: std::collections::BTreeSet<_> =
                fake.enqueue.calls().into_iter().map(|call| call.request_id).collect();
            assert_eq!(ids.len(), 1, "stored once for each of {ids:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_home_does_not_answer_goes_to_another_at_once() {
        let (fake, client) = Fake::start().await;
        for _ in 0..3 {
            let results = vec![failed(refusal(Code::Unavailable, "SHARD_UNAVAILABLE", Some(500)))];
            fake.enqueue.answer(v1::EnqueueResponse { results });
        }
        let began = tokio::time::Instant::now();
        let results = client.enqueue(vec![NewItem::new("a", "1")]).await.unwrap();
        assert!(results[0].is_ok() && began.elapsed().as_millis() < 100, "{:?}", began.elapsed());
        let calls = fake.enqueue.calls();
        let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| &call.request_id).collect();
        assert_eq!((calls.len(), ids.len()), (4, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_with_the_callers_id_keeps_it() {
        let (fake, client) = Fake::start().await;
        let refused = v1::EnqueueResult {
            error: Some(refusal(Code::ResourceExhausted, "OVERLOADED", Some(1))),
            ..Default::default()
        };
        fake.enqueue.fail(Code::Unavailable, None, 1);
        fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), refused] });
        let items = vec![NewItem::new("a", "1"), NewItem::new("a", "2")];
        let results = client.enqueue_once("import-7", items).await.unwrap();
        assert!(results[0].is_ok());
        assert_eq!(results[1].as_ref().unwrap_err().code(), Code::ResourceExhausted);
        let calls = fake.enqueue.calls();
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|call| call.request_id == "import-7" && call.items.len() == 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_invalid_member_is_a_final_answer() {
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
