//! Dedupe keys that nodes tell each other of, as messages and as values.

use forebay_engine::{KeyQuestion, RememberedKey};
use forebay_proto::peer::{FindKeysRequest, FindKeysResponse, FoundKey};
use forebay_store::DedupeHit;
use forebay_types::{ShardId, Timestamp};

/// A question as a message.
pub fn request(question: KeyQuestion) -> FindKeysRequest {
    let KeyQuestion { shard, homes, keys } = question;
    FindKeysRequest {
        shard: shard.0,
        homes: homes.into_iter().map(|id| id.0).collect(),
        keys: keys.into_iter().map(|key| key.to_vec().into()).collect(),
    }
}

/// The question of a message. `None`: a key is not one.
pub fn question(request: FindKeysRequest) -> Option<KeyQuestion> {
    let FindKeysRequest { shard, homes, keys } = request;
    let keys = keys.iter().map(|key| <[u8; 16]>::try_from(key.as_ref()).ok());
    Some(KeyQuestion {
        shard: ShardId(shard),
        homes: homes.into_iter().map(ShardId).collect(),
        keys: keys.collect::<Option<_>>()?,
    })
}

/// An answer as a message.
pub fn response(hits: Option<Vec<RememberedKey>>) -> FindKeysResponse {
    let found = |RememberedKey { hit, topic, is_removed }| FoundKey {
        key: hit.hash.to_vec().into(),
        stored_at_micros: hit.at.as_micros(),
        answer: hit.answer.into(),
        topic: topic.map(|topic| topic.as_ref().to_owned()),
        removed: is_removed,
    };
    FindKeysResponse { known: hits.is_some(), found: hits.into_iter().flatten().map(found).collect() }
}

/// The answer of a message. `None`: the node can't say, or its answer is not one.
pub fn answer(response: FindKeysResponse) -> Option<Vec<RememberedKey>> {
    let hit = |found: FoundKey| {
        let hit = DedupeHit {
            hash: <[u8; 16]>::try_from(found.key.as_ref()).ok()?,
            at: Timestamp::from_micros(found.stored_at_micros),
            answer: found.answer.to_vec(),
        };
        Some(RememberedKey { hit, topic: found.topic.map(Into::into), is_removed: found.removed })
    };
    let found = response.found.into_iter().map(hit).collect::<Option<_>>()?;
    response.known.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_are_the_same_on_the_other_side() {
        let asked =
            KeyQuestion { shard: ShardId(3), homes: vec![ShardId(1), ShardId(2)], keys: vec![[7; 16]] };
        assert_eq!(question(request(asked.clone())), Some(asked));
        let hit = DedupeHit { hash: [7; 16], at: Timestamp::from_micros(-5), answer: vec![1, 2] };
        let bare = RememberedKey::from(hit);
        let of_topic = RememberedKey { topic: Some("t".into()), is_removed: true, ..bare.clone() };
        let found = vec![bare, of_topic];
        assert_eq!(answer(response(Some(found.clone()))), Some(found));
        assert_eq!(answer(response(None)), None);
    }

    #[test]
    fn a_hash_of_another_length_is_none() {
        let short = FindKeysRequest { shard: 1, homes: vec![1], keys: vec![vec![7; 15].into()] };
        assert_eq!(question(short), None);
        let found = FoundKey { key: vec![7; 17].into(), ..FoundKey::default() };
        assert_eq!(answer(FindKeysResponse { known: true, found: vec![found] }), None);
    }
}
