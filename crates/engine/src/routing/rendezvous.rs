//! Rendezvous hashing: each key ranks the shards by a hash over key and shard, so a changed set of shards
//! moves as few keys as possible.

use std::{cmp::Reverse, collections::BinaryHeap, hash::Hasher as _};

use forebay_types::ShardId;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Shards that share a topic's new items, as long as they keep up.
pub(crate) const SHARDS_PER_TOPIC: usize = 2;

/// Shards of a topic's set: its items go nowhere else, as long as any of these takes them.
pub(crate) const SHARDS_IN_SET: usize = 8;

/// 128 bits over the parts; each part is preceded by its length, so that no two lists of parts run together.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    parts.iter().for_each(|part| write(&mut hasher, part));
    hasher.finish128().as_bytes()
}

fn write(hasher: &mut SipHasher13, part: &[u8]) {
    hasher.write_u64(part.len() as u64);
    hasher.write(part);
}

/// The shard that suits a key best. Shards remember keys by it, so it must stay as it is.
pub(crate) fn best(key: &[u8], shards: &[ShardId]) -> Option<ShardId> {
    let mut of_key = SipHasher13::new();
    write(&mut of_key, key);
    let weight = |shard: ShardId| {
        let mut hasher = of_key;
        write(&mut hasher, &shard.0.to_be_bytes());
        hasher.finish128().h1
    };
    shards.iter().copied().max_by_key(|shard| (weight(*shard), Reverse(*shard)))
}

/// Shards in the order in which they suit a topic, sorted as far as somebody asks. A call may have a thousand
/// topics, and a node hundreds of shards: the weight is a cheaper one than that of [`best`].
pub(crate) struct Ranking<T> {
    /// The best.
    sorted: Vec<T>,
    /// The rest.
    rest: BinaryHeap<(u64, Reverse<T>)>,
}

impl<T: Copy + Ord> Ranking<T> {
    /// Each shard comes with whatever the caller knows it by. `topic` is a hash.
    pub fn new(topic: [u8; 16], shards: impl Iterator<Item = (T, ShardId)>) -> Self {
        let topic = u128::from_le_bytes(topic) as u64;
        let rest = shards.map(|(shard, id)| (mix(topic ^ mix(u64::from(id.0))), Reverse(shard)));
        Self { sorted: Vec::new(), rest: rest.collect() }
    }

    /// The shard at this position, the best at 0.
    pub fn get(&mut self, position: usize) -> Option<T> {
        while self.sorted.len() <= position {
            let (_, Reverse(next)) = self.rest.pop()?;
            self.sorted.push(next);
        }
        Some(self.sorted[position])
    }
}

/// The step of the generator `SplitMix64`: each bit of the number changes about half of the result's.
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(ids: &[u32]) -> Vec<ShardId> {
        ids.iter().copied().map(ShardId).collect()
    }

    #[test]
    fn a_key_stays_where_it_is_when_another_shard_goes() {
        let mut moved = 0;
        for key in 0..1_000_u32 {
            let key = key.to_be_bytes();
            let before = best(&key, &shards(&[1, 2, 3, 4]));
            let after = best(&key, &shards(&[1, 2, 3]));
            assert!(before == Some(ShardId(4)) || before == after);
            moved += usize::from(before != after);
        }
        assert!((150..350).contains(&moved), "{moved}");
    }

    /// Another order would lose what shards remember of keys.
    #[test]
    fn keys_keep_their_homes() {
        let homes = (0..8).map(|key: u8| best(&[key; 16], &shards(&[1, 2, 3, 4])).unwrap().0);
        assert_eq!(homes.collect::<Vec<_>>(), [4, 1, 2, 4, 3, 2, 4, 2]);
    }

    #[test]
    fn a_topic_stays_where_it_is_when_another_shard_goes() {
        let known: Vec<(ShardId, ShardId)> = shards(&[1, 2, 3, 4]).into_iter().map(|id| (id, id)).collect();
        let mut at = [[0; 4]; 2];
        for topic in 0..1_000_u32 {
            let topic = hash(&[&topic.to_be_bytes()]);
            let mut all = Ranking::new(topic, known.iter().copied());
            let order: Vec<ShardId> = (0..).map_while(|position| all.get(position)).collect();
            assert_eq!((all.get(0), all.get(4)), (Some(order[0]), None));
            let left: Vec<_> = known.iter().copied().filter(|(id, _)| *id != order[1]).collect();
            let mut ranking = Ranking::new(topic, left.into_iter());
            assert_eq!(
                [0, 1, 2].map(|position| ranking.get(position).unwrap()),
                [order[0], order[2], order[3]]
            );
            (0..2).for_each(|position| at[position][order[position].0 as usize - 1] += 1);
        }
        assert!(at.as_flattened().iter().all(|topics| (200..300).contains(topics)), "{at:?}");
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
