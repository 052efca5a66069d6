//! Dedupe keys and request ids.

use std::collections::BTreeMap;

use forebay_store::{DedupeEntry, DedupeHit, HighWaterMarks, ShardTopology};
use forebay_types::ShardId;

use super::{
    Subject,
    bench::{Bench, at, marks},
};

fn hash(number: u64) -> [u8; 16] {
    // Spread over the whole range, like real hashes.
    u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes()
}

fn entry(generation: u64, key: u64, answer: &[u8]) -> DedupeEntry {
    DedupeEntry { generation, hash: hash(key), answer: answer.to_vec() }
}

/// Creating or dropping one twice is no error.
pub async fn generations_come_and_go(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let heartbeat = &mut bench.owner.heartbeat;
    for number in [1_780_000_600, 1_780_000_000, 1_780_000_600, 7] {
        heartbeat.create_generation(number).await.expect("creates");
    }
    assert_eq!(bench.owner.load().await.generations, [7, 1_780_000_000, 1_780_000_600]);
    let heartbeat = &mut bench.owner.heartbeat;
    for number in [7, 7, 9] {
        heartbeat.drop_generation(number).await.expect("drops");
    }
    assert_eq!(bench.owner.load().await.generations, [1_780_000_000, 1_780_000_600]);
}

/// A key is stored with its answer and the time of its batch.
pub async fn a_key_is_found_again(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    for number in [1, 2] {
        bench.owner.heartbeat.create_generation(number).await.expect("creates");
    }
    let answer = vec![0, 255, 7];
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(1));
            batch.dedupes.extend([entry(1, 1, &answer), entry(2, 2, b"")]);
        })
        .await;
    let reader = bench.owner.reader.clone();
    let one = DedupeHit { hash: hash(1), at: at(11), answer };
    let two = DedupeHit { hash: hash(2), at: at(11), answer: vec![] };
    assert_eq!(reader.dedupe(&[1], &[hash(1), hash(2)]).await.expect("reads"), std::slice::from_ref(&one));
    assert_eq!(reader.dedupe(&[2], &[hash(1), hash(2)]).await.expect("reads"), std::slice::from_ref(&two));
    let mut both = reader.dedupe(&[1, 2], &[hash(3), hash(2), hash(1)]).await.expect("reads");
    both.sort_by_key(|hit| hit.hash != hash(1));
    assert_eq!(both, [one, two]);
    assert_eq!(reader.dedupe(&[], &[hash(1)]).await.expect("reads"), []);
    assert_eq!(reader.dedupe(&[1], &[]).await.expect("reads"), []);
}

/// A key may be stored again in its generation after its window.
pub async fn a_key_is_replaced(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.heartbeat.create_generation(1).await.expect("creates");
    for (time, answer) in [(11, b"first"), (12, b"later")] {
        bench
            .owner
            .commit(|batch| {
                batch.marks = Some(HighWaterMarks { time: at(time), ..marks(1) });
                batch.dedupes.push(entry(1, 1, answer));
            })
            .await;
    }
    let hits = bench.owner.reader.dedupe(&[1], &[hash(1)]).await.expect("reads");
    assert_eq!(hits, [DedupeHit { hash: hash(1), at: at(12), answer: b"later".to_vec() }]);
}

/// With a full batch of keys and one large answer.
pub async fn many_keys_are_asked(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.heartbeat.create_generation(1).await.expect("creates");
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(1));
            batch.dedupes.extend((0..1_000).map(|number: u64| entry(1, number, &number.to_be_bytes())));
            batch.dedupes.push(entry(1, 5_000, &[7; 200_000]));
        })
        .await;
    let hashes: Vec<_> = (500..2_000).chain([5_000]).map(hash).collect();
    let mut hits = bench.owner.reader.dedupe(&[1], &hashes).await.expect("reads");
    hits.sort_by_key(|hit| hit.answer.len());
    assert_eq!(hits.len(), 501);
    assert_eq!(hits[500].answer, vec![7; 200_000]);
    for hit in &hits[..500] {
        let number = u64::from_be_bytes(hit.answer.as_slice().try_into().expect("eight bytes"));
        assert_eq!(hit.hash, hash(number));
    }
}

/// The last batch with a topology history replaces all earlier ones.
pub async fn the_topology_history_is_kept(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    assert_eq!(bench.observe().await.topology_history, ShardTopology::default());
    let shards = |shards: &[u32]| shards.iter().copied().map(ShardId).collect::<Vec<_>>();
    let first = ShardTopology { shards: shards(&[1, 2]), since: at(1), earlier: BTreeMap::new() };
    let earlier = BTreeMap::from([(shards(&[1, 2]), at(5))]);
    let second = ShardTopology { shards: shards(&[1, 2, 3]), since: at(5), earlier };
    for topology in [first, second.clone()] {
        bench.owner.commit(|batch| batch.topology_history = Some(topology)).await;
    }
    bench.owner.commit(|batch| batch.topology_history = None).await;
    assert_eq!(bench.observe().await.topology_history, second);
}
