//! Every shard was asked: duplicates are answered as they were the first time, the rest is queued.

use std::collections::HashMap;

use forebay_types::{ItemId, Reason, Refusal, Seq, ShardId, Timestamp, Topic};

use crate::{
    api::{EnqueueOutcome, RememberedKey},
    core::{
        Core,
        fates::Fate,
        lookups::{DedupeLookup, FoundKey},
        pending_calls::PendingCalls,
    },
    index::ShardIndex,
    planted::{Bug, on},
    shard::work::{ItemKey, KeyHash, RememberedAnswers, RequestKey, ShardEnqueue, decode_remembered},
};

/// A key that is remembered under a hash, and counts still.
struct KnownKey {
    /// When it was stored, and whether its item was removed, or of another topic.
    key: RememberedKey,
    /// Where.
    shard: ShardId,
    /// The answer to repeat.
    remembered: RememberedAnswers,
}

impl KnownKey {
    /// The item that was stored under a dedupe key.
    fn stored(&self) -> Option<EnqueueOutcome> {
        let seq = *self.remembered.answers.last()?.as_ref().ok()?;
        let id = ItemId { shard: self.shard, seq };
        Some(EnqueueOutcome { id, duplicate: true, first_at: Some(self.key.hit.at) })
    }

    /// Whether the release before stored it, which knows no topics of keys.
    fn is_older(&self) -> bool {
        self.remembered.of.is_none()
    }
}

/// The keys that were found, by hash.
struct KnownKeys(HashMap<KeyHash, Vec<KnownKey>>);

impl KnownKeys {
    fn new(hits: Vec<FoundKey>, counts: impl Fn(Timestamp) -> bool) -> Self {
        let mut all: HashMap<KeyHash, Vec<KnownKey>> = HashMap::new();
        for FoundKey { shard, key } in hits.into_iter().filter(|found| counts(found.key.hit.at)) {
            if let Some(remembered) = decode_remembered(&key.hit.answer) {
                all.entry(key.hit.hash).or_default().push(KnownKey { key, shard, remembered });
            }
        }
        Self(all)
    }

    fn of(&self, hash: &KeyHash) -> impl Iterator<Item = &KnownKey> {
        self.0.get(hash).into_iter().flatten()
    }

    /// The call that was stored under a request id. Of several the latest counts.
    fn request(&self, request: &RequestKey) -> Option<&KnownKey> {
        self.of(&request.hash).max_by_key(|known| known.key.hit.at)
    }

    /// The item that was stored under a key. What the release before stored counts if its item is of this
    /// topic. If it is gone nobody knows its topic: then it counts too, since nothing may be stored twice.
    fn item(&self, topic: &Topic, key: &ItemKey) -> Option<EnqueueOutcome> {
        let is_same = |known: &&KnownKey| known.key.topic.as_ref().is_none_or(|of| of == topic);
        let shared = self.older(key).filter(is_same);
        let alike = self.of(&key.own).chain(shared).filter(|known| !known.key.is_removed);
        alike.max_by_key(|known| known.key.hit.at)?.stored()
    }

    /// The keys that the release before stored, for any topic.
    fn older(&self, key: &ItemKey) -> impl Iterator<Item = &KnownKey> {
        self.of(&key.shared).filter(|known| known.is_older())
    }
}

pub(super) fn duplicates(core: &mut Core, part: ShardEnqueue, lookup: DedupeLookup) {
    let DedupeLookup { home: index, hits, .. } = lookup;
    let now = core.time.now();
    let now = core.slots.owned(index).map_or(now, |shard| shard.key_time(now));
    let window =
        core.settings.dedupe_window(core.policies.settings.dedupe_window(&part.namespace), &part.namespace);
    let known = KnownKeys::new(hits, |at| core.time.elapsed(at, now) < window);
    if let Some(request) = &part.request
        && let Some(first) = known.request(request)
    {
        request_answered(&mut core.calls, &part, request, first);
        return free(core, index, &part);
    }
    let (call, namespace, request) = (part.call, part.namespace, part.request);
    let (mut fresh, mut repeated) = (Vec::new(), Vec::new());
    for mut item in part.items {
        let first = item.dedupe.as_ref().and_then(|key| known.item(&item.topic, key));
        match first {
            Some(first) => {
                core.calls.enqueue_done(call, item.index, Ok(first));
                repeated.push(item);
            }
            None => {
                if let Some(key) = &mut item.dedupe {
                    let is_taken = known.older(key).any(|older| !older.key.is_removed);
                    key.is_shared_taken = is_taken;
                }
                fresh.push(item);
            }
        }
    }
    if !repeated.is_empty() {
        core.traffic.became(&namespace, Fate::Duplicate, repeated.len() as u64);
    }
    if !fresh.is_empty()
        && let Some(shard) = core.slots.owned_mut(index)
    {
        shard.enqueue(ShardEnqueue { call, namespace: namespace.clone(), request, items: fresh });
    }
    if !repeated.is_empty() {
        free(core, index, &ShardEnqueue { call, namespace, request: None, items: repeated });
    }
}

/// An enqueue has its answer: what it held is free again.
pub(super) fn free(core: &mut Core, index: ShardIndex, part: &ShardEnqueue) {
    if let Some(shard) = core.slots.owned_mut(index) {
        shard.free(part);
    }
}

/// Answers a call whose request id is known as it was answered the first time, if it is the same call.
fn request_answered(calls: &mut PendingCalls, part: &ShardEnqueue, request: &RequestKey, first: &KnownKey) {
    let KnownKey { remembered: RememberedAnswers { answers, of }, shard, .. } = first;
    let is_other = of.zip(request.content).is_some_and(|(first, this)| first != this);
    if answers.len() != part.items.len() || is_other && !on(Bug::RequestContentIgnored) {
        for item in &part.items {
            calls.enqueue_done(part.call, item.index, Err(reused()));
        }
        return;
    }
    for (item, answer) in part.items.iter().zip(answers) {
        let stored = |seq: &Seq| EnqueueOutcome::new(ItemId { shard: *shard, seq: *seq });
        calls.enqueue_done(part.call, item.index, answer.as_ref().map(stored).map_err(Refusal::clone));
    }
}

/// Another call was stored under the request id. Nothing of this one is.
fn reused() -> Refusal {
    let message =
        "was used for a call with other items: nothing of this one is stored; give it an id of its own";
    Refusal { field: Some("request_id".to_owned()), ..Refusal::new(Reason::RequestIdReused, message) }
}

#[cfg(test)]
mod tests {
    use forebay_store::DedupeHit;

    use super::*;
    use crate::shard::work::encode_remembered;

    const KEY: ItemKey = ItemKey { own: [1; 16], shared: [2; 16], is_shared_taken: false };

    /// A key of the release before, of an item that is in a topic still, or of one that is gone.
    fn older(topic: Option<&str>) -> KnownKeys {
        let answer = encode_remembered(std::iter::once(Ok(Seq(7))), None);
        let hit = DedupeHit { hash: KEY.shared, at: Timestamp::from_micros(1), answer };
        let key = RememberedKey { hit, topic: topic.map(Topic::from), is_removed: false };
        KnownKeys::new(vec![FoundKey { shard: ShardId(1), key }], |_| true)
    }

    #[test]
    fn a_key_of_the_release_before_counts_in_the_topic_of_its_item() {
        let mail = Topic::from("mail");
        assert!(older(Some("mail")).item(&mail, &KEY).is_some_and(|stored| stored.duplicate));
        assert!(older(Some("invoice")).item(&mail, &KEY).is_none(), "it is stored");
        assert!(older(None).item(&mail, &KEY).is_some(), "nobody knows of which topic it was");
    }
}
