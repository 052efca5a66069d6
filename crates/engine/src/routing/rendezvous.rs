//! Rendezvous hashing: each key ranks the shards by a hash over key and shard, so a changed set of shards
//! moves as few keys as possible.

use std::{cmp::Reverse, hash::Hasher as _};

use forebay_types::ShardId;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Shards that share a topic's new items, as long as they keep up.
pub(crate) const SHARDS_PER_TOPIC: usize = 2;

/// 128 bits over the parts; each part is preceded by its length, so that no two lists of parts run together.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    for part in parts {
        hasher.write_u64(part.len() as u64);
        hasher.write(part);
    }
    hasher.finish128().as_bytes()
}

/// How well a shard suits a key; the greatest wins.
pub(crate) fn weight(key: &[u8], shard: ShardId) -> u64 {
    let bytes = hash(&[key, &shard.0.to_be_bytes()]);
    u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
}

/// The `count` shards that suit a key best, best first. Each comes with whatever the caller knows it by.
pub(crate) fn best<T: Ord>(key: &[u8], shards: impl Iterator<Item = (T, ShardId)>, count: usize) -> Vec<T> {
    let mut ranked: Vec<_> = shards.map(|(shard, id)| (Reverse(weight(key, id)), shard)).collect();
    ranked.sort_unstable();
    ranked.truncate(count);
    ranked.into_iter().map(|(_, shard)| shard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(ids: &[u32]) -> impl Iterator<Item = (usize, ShardId)> {
        ids.iter().map(|id| ShardId(*id)).enumerate()
    }

    #[test]
    fn a_key_stays_where_it_is_when_another_shard_goes() {
        let mut moved = 0;
        for key in 0..1_000_u32 {
            let key = key.to_be_bytes();
            let before = [1, 2, 3, 4][best(&key, shards(&[1, 2, 3, 4]), 1)[0]];
            let after = [1, 2, 3][best(&key, shards(&[1, 2, 3]), 1)[0]];
            assert!(before == 4 || before == after);
            moved += usize::from(before == 4);
        }
        assert!((150..350).contains(&moved), "{moved}");
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
