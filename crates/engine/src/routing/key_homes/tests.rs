//! Tests of the homes of keys.

use super::*;

const WINDOW: Duration = Duration::from_secs(800);

fn second(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

fn ids(shards: &[u32]) -> Vec<ShardId> {
    shards.iter().copied().map(ShardId).collect()
}

fn record(shards: &[u32], since: i64, earlier: &[(&[u32], i64)]) -> ShardTopology {
    let earlier = earlier.iter().map(|(shards, ended)| (ids(shards), second(*ended))).collect();
    ShardTopology { shards: ids(shards), since: second(since), earlier }
}

fn homes(shards: &[u32]) -> KeyHomes {
    let mut homes = KeyHomes::new(WINDOW, Monotonic::default());
    homes.begin(ids(shards), Vec::new());
    homes
}

/// The record that a shard should make.
fn to_record(homes: &KeyHomes, shard: u32, now: Timestamp) -> Option<ShardTopology> {
    homes.next_record(ShardId(shard), now).map(|next| next.topology)
}

/// Whether keys can be stored, where no shard is silent.
fn is_complete(homes: &KeyHomes, now: Timestamp, at: Monotonic) -> bool {
    homes.is_complete(now, at, |_| false)
}

/// A node takes over all shards one after the other, and each records what is known then.
fn take_over(homes: &mut KeyHomes, records: &mut BTreeMap<u32, ShardTopology>, now: Timestamp) {
    for id in homes.current.clone() {
        homes.recorded(id, records.get(&id.0).cloned().unwrap_or_default(), now);
        // Shards that were taken over before may have to record more.
        for id in homes.current.clone() {
            if let Some(new) = to_record(homes, id.0, now) {
                records.insert(id.0, new.clone());
                homes.recorded(id, new, now);
            }
        }
    }
}

#[test]
fn a_changed_set_sends_moved_keys_to_their_old_home_until_the_window_ends() {
    let mut homes = homes(&[1, 2, 3]);
    let now = second(1_000);
    homes.recorded(ShardId(1), record(&[1, 2], 10, &[]), now);
    let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
    let moved = keys.iter().filter(|key| !homes.earlier_homes(&[**key], now).is_empty()).count();
    assert!((15..55).contains(&moved), "{moved}: about a third of the keys moves to the new shard");
    assert!(!homes.earlier_homes(&keys, now.plus(WINDOW)).is_empty());
    assert!(homes.earlier_homes(&keys, now.plus(WINDOW + WINDOW / ENDED_PARTS)).is_empty());
}

#[test]
fn an_earlier_home_that_is_not_configured_is_missing_until_the_last_window_under_it_ends() {
    let mut homes = homes(&[2, 3]);
    let now = second(1_000);
    homes.recorded(ShardId(1), record(&[2, 3], 900, &[(&[1, 2], 300), (&[1, 2, 3], 900)]), now);
    assert_eq!(homes.missing(now), BTreeMap::from([(ShardId(1), second(1_700))]));
    assert!(homes.missing(second(1_700)).is_empty());
    assert!(homes.is_to_be_named(ShardId(1)) && !homes.is_to_be_named(ShardId(1)));
}

#[test]
fn a_set_that_ended_long_ago_matters_no_more() {
    let mut homes = homes(&[1, 2, 3]);
    let now = second(1_100);
    homes.recorded(ShardId(1), record(&[1, 2, 3], 300, &[(&[1, 2], 300)]), now);
    let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
    assert!(homes.earlier_homes(&keys, now).is_empty());
    assert_eq!(to_record(&homes, 1, now), None);
    homes.recorded(ShardId(2), ShardTopology::default(), now);
    assert_eq!(to_record(&homes, 2, now), Some(record(&[1, 2, 3], 1_100, &[])));
}

#[test]
fn every_set_of_two_changes_within_a_window_is_known_to_shards_of_the_last_one_alone() {
    let mut records = BTreeMap::new();
    for (now, shards) in [(100, &[1, 2][..]), (200, &[1, 2, 3, 4]), (300, &[3, 4])] {
        let mut homes = homes(shards);
        take_over(&mut homes, &mut records, second(now));
        assert!(is_complete(&homes, second(now), Monotonic::default()));
    }
    let earlier: &[(&[u32], i64)] = &[(&[1, 2], 300), (&[1, 2, 3, 4], 400)];
    assert_eq!(records[&3], record(&[3, 4], 300, earlier));
    assert_eq!(records[&4], records[&3]);
}

#[test]
fn a_set_that_is_seen_to_last_is_recorded_anew_a_few_times_in_a_window() {
    let mut homes = homes(&[1, 2]);
    homes.recorded(ShardId(2), ShardTopology::default(), second(100));
    assert!(homes.recorded(ShardId(1), record(&[1], 10, &[]), second(100)));
    let recorded = to_record(&homes, 2, second(100)).unwrap();
    assert_eq!(recorded, record(&[1, 2], 100, &[(&[1], 200)]));
    homes.recorded(ShardId(2), recorded, second(100));
    assert!(!homes.recorded(ShardId(1), record(&[1], 10, &[]), second(199)));
    assert_eq!(to_record(&homes, 2, second(199)), None);
    assert!(homes.recorded(ShardId(1), record(&[1], 10, &[]), second(200)), "its owner still lives");
    let recorded = to_record(&homes, 2, second(201)).unwrap();
    assert_eq!(recorded, record(&[1, 2], 100, &[(&[1], 300)]));
}

#[test]
fn keys_are_taken_once_every_shard_has_recorded_the_set_or_the_window_has_passed() {
    let mut homes = homes(&[1, 2]);
    let (now, at) = (second(100), Monotonic::default());
    assert!(!is_complete(&homes, now, at));
    assert!(is_complete(&homes, now, at.plus(WINDOW)));
    let mine = record(&[1, 2], 100, &[]);
    homes.recorded(ShardId(1), mine.clone(), now);
    assert!(!is_complete(&homes, now, at), "one was not read");
    homes.recorded(ShardId(2), ShardTopology::default(), now);
    assert!(!is_complete(&homes, now, at), "who is configured with shard 2 alone would not know of shard 1");
    assert!(homes.has_recorded(ShardId(1), now) && !homes.has_recorded(ShardId(2), now));
    homes.recorded(ShardId(2), mine, now);
    assert!(is_complete(&homes, now, at));
}

#[test]
fn it_knows_enough_if_half_of_the_shards_have_recorded_the_current_set_for_long() {
    let complete = |records: &[&ShardTopology], now| {
        let mut homes = homes(&[1, 2, 3, 4]);
        for (id, record) in ids(&[1, 2, 3, 4]).into_iter().zip(records) {
            homes.recorded(id, (*record).clone(), now);
        }
        is_complete(&homes, now, Monotonic::default())
    };
    let long_ago = &record(&[1, 2, 3, 4], 300, &[(&[1, 2], 300)]);
    assert!(complete(&[long_ago, long_ago], second(1_100)));
    assert!(!complete(&[long_ago, long_ago], second(1_099)), "a window may still reach the set before");
    assert!(!complete(&[long_ago], second(1_100)), "too few were seen");
    let recent = record(&[1, 2, 3, 4], 600, &[]);
    let other = record(&[1, 2, 3], 200, &[(&[1, 2, 3, 4], 200)]);
    for record in [recent, other, ShardTopology::default()] {
        assert!(!complete(&[long_ago, long_ago, &record], second(1_100)), "{record:?}");
    }
}

#[test]
fn what_a_running_node_knows_of_the_last_set_goes_on_after_a_change() {
    let (now, at) = (second(1_000), Monotonic::default());
    let mut homes = homes(&[1, 2]);
    for shard in [1, 2] {
        homes.recorded(ShardId(shard), record(&[1, 2], 10, &[]), now);
    }
    assert!(is_complete(&homes, now, at));
    homes.change(ids(&[3, 1]), ids(&[2]), now, at);
    let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
    assert!(keys.iter().all(|key| homes.home(key) != Some(ShardId(2))), "it is drained");
    assert_eq!(homes.earlier_homes(&keys, now), ids(&[1, 2]).into_iter().collect());
    assert_eq!(homes.keys_until(ShardId(2), now), Some(second(1_900)));
    assert_eq!((homes.keys_until(ShardId(1), now), homes.keys_until(ShardId(3), now)), (None, None));
    let next = record(&[1, 3], 1_000, &[(&[1, 2], 1_100)]);
    for shard in [3, 1, 2] {
        assert!(!is_complete(&homes, now, at), "shard {shard} has not recorded the new set");
        homes.recorded(ShardId(shard), ShardTopology::default(), now);
        let expected = NextRecord { topology: next.clone(), is_change: true };
        assert_eq!(homes.next_record(ShardId(shard), now), Some(expected));
        homes.recorded(ShardId(shard), next.clone(), now);
    }
    assert!(is_complete(&homes, now, at));
}

#[test]
fn a_change_begins_the_wait_for_the_longest_window_anew() {
    let now = second(1_000);
    let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
    let mut homes = homes(&[1, 2]);
    assert!(is_complete(&homes, now, at(800)));
    homes.change(ids(&[1, 2, 3]), Vec::new(), now, at(800));
    assert!(!is_complete(&homes, now, at(801)) && is_complete(&homes, now, at(1_600)));
}

#[test]
fn a_drained_shard_that_is_silent_holds_up_no_keys_but_its_own() {
    let (now, at) = (second(1_000), Monotonic::default());
    let mut homes = homes(&[1, 2]);
    homes.change(ids(&[1]), ids(&[2]), now, at);
    homes.recorded(ShardId(1), ShardTopology::default(), now);
    let next = to_record(&homes, 1, now).unwrap();
    let silent = |silent: u32| move |id| id == ShardId(silent);
    assert!(!homes.is_complete(now, at, silent(2)), "shard 1 has not recorded the set");
    homes.recorded(ShardId(1), next, now);
    assert!(!homes.is_complete(now, at, silent(1)), "shard 2 answers, and has not");
    assert!(homes.is_complete(now, at, silent(2)));
}

#[test]
fn a_set_that_comes_back_is_no_earlier_one() {
    let (now, at) = (second(1_000), Monotonic::default());
    let mut homes = homes(&[1, 2]);
    homes.change(ids(&[1]), ids(&[2]), now, at);
    homes.change(ids(&[1, 2]), Vec::new(), now, at);
    homes.recorded(ShardId(1), record(&[1, 2], 10, &[]), now);
    assert_eq!(to_record(&homes, 1, now), Some(record(&[1, 2], 10, &[(&[1], 1_100)])));
}

#[test]
fn the_keys_of_a_shard_that_was_removed_are_forgotten() {
    let (now, at) = (second(1_000), Monotonic::default());
    let mut homes = homes(&[1, 2]);
    homes.change(ids(&[1]), Vec::new(), now, at);
    let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
    assert!(homes.earlier_homes(&keys, now).is_empty() && homes.missing(now).is_empty());
    // A shard that this node never had may be one that it has not heard of yet.
    homes.recorded(ShardId(1), record(&[1, 3], 900, &[]), now);
    assert_eq!(homes.earlier_homes(&keys, now), ids(&[3]).into_iter().collect());
}
