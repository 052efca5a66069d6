//! The check of a shard's accounts. Accounts that are private to a file are corrupted in that file's tests.

use super::*;

/// A shard with something everywhere.
pub(in crate::shard) fn busy() -> OwnedShard {
    let mut shard = shard_with(|settings| settings.batch_rows = 8);
    let receipts = store_leased(&mut shard, 0, items(3));
    store(&mut shard, 1, items(8));
    ack(&mut shard, receipts[0]);
    ask_lease(&mut shard, 2);
    let keyed = |key| vec![AdmittedItem { dedupe: super::key(key), ..item(0) }, item(0)];
    put(&mut shard, part(2, keyed(1)));
    build(&mut shard, 1);
    ask_lease(&mut shard, 1);
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let bodyless = share(2, reserve(&mut shard, T, 1));
    shard.lease(bodyless, 5);
    put(&mut shard, part(3, keyed(2)));
    let lookup = part(4, keyed(3));
    shard.charge(&lookup.namespace, lookup.charge());
    shard.hold_keys(&lookup.keys());
    shard.begin_lookup(6, lookup);
    let waits = part(5, keyed(1));
    shard.charge(&waits.namespace, waits.charge());
    shard.pause_for_keys(waits);
    shard
}

/// The error that the check finds in a busy shard after this change.
pub(in crate::shard) fn wrong(corrupt: impl FnOnce(&mut OwnedShard)) -> String {
    let mut shard = busy();
    corrupt(&mut shard);
    shard.check().unwrap_err()
}

#[test]
fn every_account_of_a_busy_shard_agrees() {
    let mut shard = busy();
    assert_eq!(shard.check(), Ok(()));
    assert!(!shard.is_idle() && shard.is_committing());
    commit(&mut shard, 2);
    assert_eq!(shard.check(), Ok(()));
}

#[test]
fn a_leased_item_in_its_window_is_found() {
    let what = wrong(|shard| {
        let lease = shard.contents.leases.timed_out(time(9_000)).next().unwrap();
        let (seq, item) = (lease.seq, ReadyItem::from_lease(lease, 0));
        let key = Key { priority: 0, rank: 0, seq };
        shard.contents.topics.with_window(T, |window| window.add(key, item));
    });
    assert!(what.contains("is in its window, and leased or reserved"), "{what}");
}

#[test]
fn a_reserved_item_in_its_window_is_found() {
    let what = wrong(|shard| {
        let reserved = shard.intake.leasing.iter().next().unwrap().items[0].clone();
        shard.contents.topics.with_window(T, |window| window.add(reserved.key, reserved.item));
    });
    assert!(what.contains("is in its window, and leased or reserved"), "{what}");
}

#[test]
fn a_reservation_that_nobody_has_is_found() {
    let what = wrong(|shard| {
        shard.contents.reserved.insert(Seq(99));
    });
    assert_eq!(what, "4 items are on their way to a lease; reserved 5, topics 4");
}

#[test]
fn a_reservation_that_a_topic_does_not_count_is_found() {
    let what = wrong(|shard| shard.contents.topics.get_mut(T).unwrap().reserved -= 1);
    assert_eq!(what, "4 items are on their way to a lease; reserved 4, topics 3");
}

#[test]
fn an_item_on_its_way_without_a_reservation_is_found() {
    let what = wrong(|shard| {
        let seq = shard.intake.leasing.iter().next().unwrap().items[0].key.seq;
        shard.contents.reserved.remove(&seq);
        shard.contents.reserved.insert(Seq(99));
    });
    assert!(what.ends_with("is on its way to a lease and not reserved"), "{what}");
}

#[test]
fn a_restored_item_that_is_leased_is_found() {
    let what = wrong(|shard| {
        let reserved = shard.intake.leasing.iter().next().unwrap().items[0].clone();
        let restore = shard.restore_of(reserved);
        shard.intake.restores.push(restore);
    });
    assert!(what.ends_with("is to be inserted again, and is out"), "{what}");
}

#[test]
fn a_read_that_is_not_counted_is_found() {
    let what = wrong(|shard| shard.contents.prefetches.begin(9, 0));
    assert_eq!(what, "0 windows are read, 1 reads are counted");
}

#[test]
fn topics_to_be_folded_out_of_order_are_found() {
    let what = wrong(|shard| shard.contents.topics.dirty.clear());
    assert_eq!(what, "1 topics are dirty; the queue has []");
}

#[test]
fn a_lease_that_was_lost_on_its_way_is_found() {
    let lost = "3 items are on their way to a lease; reserved 4, topics 4";
    assert_eq!(wrong(|shard| shard.intake.leasing = Default::default()), lost);
    assert_eq!(wrong(|shard| shard.intake.awaiting_bodies.clear()), lost);
}

#[test]
fn a_key_that_nobody_holds_is_found() {
    let what = wrong(|shard| shard.intake.keys.hold(&[[9; 16]]));
    assert_eq!(what, "3 keys wait, 4 are in flight");
}

#[test]
fn a_key_that_was_released_too_early_is_found() {
    let what = wrong(|shard| {
        shard.intake.keys.release(&[[2; 16]]);
    });
    assert!(what.starts_with("key [2, 2,") && what.ends_with("waits and is not in flight"), "{what}");
}

#[test]
fn a_key_in_anothers_place_is_found() {
    let what = wrong(|shard| {
        shard.intake.keys.release(&[[2; 16]]);
        shard.intake.keys.hold(&[[9; 16]]);
    });
    assert!(what.starts_with("key [2, 2,") && what.ends_with("waits and is not in flight"), "{what}");
}

#[test]
fn a_charge_for_nothing_is_found() {
    let what = wrong(|shard| shard.charge(&"ns".into(), 7));
    assert_eq!(what, format!("{} bytes wait; budget {1}, tenants {1}", 8 * 129, 8 * 129 + 7));
}

#[test]
fn an_enqueue_that_was_lost_is_found() {
    let what = wrong(|shard| {
        shard.resume_keys();
        shard.next_resumed();
    });
    assert_eq!(what, format!("{} bytes wait; budget {1}, tenants {1}", 6 * 129, 8 * 129));
}
