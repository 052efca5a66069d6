//! The budget and the keys that an enqueue holds while it waits.

use forebay_types::Reason;

use super::*;

const KEY: [u8; 16] = [1; 16];

fn held(shard: &OwnedShard) -> bool {
    shard.intake.keys.held(&[KEY]).is_some()
}

fn keyed() -> AdmittedItem {
    AdmittedItem { dedupe: key(1), ..item(0) }
}

#[test]
fn charges_and_keys_are_released_with_the_commit() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed(), item_of_bytes(1_000)]));
    let charged = shard.intake.budget.bytes();
    assert_eq!(charged, 1_000 + 2 * 129);
    build(&mut shard, 0);
    assert_eq!((shard.intake.budget.bytes(), held(&shard)), (charged, true));
    commit(&mut shard, 0);
    assert_eq!((shard.intake.budget.bytes(), held(&shard)), (0, false));
}

#[test]
fn those_that_wait_for_a_key_are_answered_with_the_commit_that_stores_it() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed()]));
    let other = AdmittedItem { index: 1, dedupe: key(2), ..item(0) };
    for (call, items) in [(2, vec![keyed(), other]), (3, vec![keyed()])] {
        let waits = part(call, items);
        shard.charge(&waits.namespace, waits.charge());
        shard.wait_for_key(KEY, waits);
    }
    let (_, committed) = run(&mut shard, 0);
    let answered: Vec<_> =
        committed.duplicates.iter().map(|same| (same.call, same.index, same.seq)).collect();
    assert_eq!(answered, [(2, 0, Seq(1)), (3, 0, Seq(1))]);
    let rest = shard.next_resumed().unwrap();
    assert_eq!((rest.call, rest.items.len(), shard.intake.budget.bytes()), (2, 1, 129));
}

#[test]
fn a_call_that_is_cut_is_released_piece_by_piece() {
    let mut shard = shard_with(|settings| settings.batch_rows = 2);
    put(&mut shard, part(1, items(5)));
    let left: Vec<usize> = (0..3)
        .map(|_| {
            run(&mut shard, 0);
            shard.intake.budget.bytes()
        })
        .collect();
    assert_eq!(left, [3 * 129, 129, 0]);
}

#[test]
fn what_is_refused_is_released() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed()]));
    build(&mut shard, 0);
    shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!((shard.intake.budget.bytes(), held(&shard)), (0, false));
}

#[test]
fn what_is_tried_again_stays_charged() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed(), item(0)]));
    build(&mut shard, 0);
    shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!((shard.intake.budget.bytes(), held(&shard)), (2 * 129, true));
}

#[test]
fn a_key_waits_while_another_enqueue_holds_it_or_waits_for_it() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed()]));
    assert_eq!(shard.key_to_wait_for(&[[2; 16], KEY], true), Some(KEY));
    assert_eq!(shard.key_to_wait_for(&[[2; 16]], false), None);
    let waits = ShardEnqueue { request: request(1), ..part(2, items(1)) };
    shard.charge(&waits.namespace, waits.charge());
    shard.wait_for_key(KEY, waits);
    shard.intake.keys.release(&[KEY]);
    shard.wait_for_key(KEY, part(3, items(1)));
    assert_eq!(shard.key_to_wait_for(&[KEY], false), Some(KEY), "others came first");
    assert_eq!(shard.key_to_wait_for(&[KEY], true), None, "this one has waited");
}

#[test]
fn keys_are_taken_once_there_is_a_generation() {
    let second = u64::try_from(time(0).as_micros() / 1_000_000).unwrap();
    let mut shard = shard();
    assert!(!shard.takes_keys(time(0)));
    shard.generations_changed(vec![second], None);
    assert!(shard.takes_keys(time(0)));
}

#[test]
fn a_shard_takes_no_more_bytes_than_its_budget() {
    let mut shard = shard_with(|settings| settings.admit_tenant_bytes = 200);
    assert!(shard.over_budget("ns", 900, at(0)).is_none(), "one call is always taken");
    put(&mut shard, part(1, items(1)));
    assert_eq!(shard.over_budget("ns", 72, at(0)).unwrap().reason, Reason::Overloaded);
    assert!(shard.over_budget("ns", 71, at(0)).is_none());
    assert!(shard.over_budget("other", 900, at(0)).is_none());
}

#[test]
fn a_batch_is_filled_by_rows_or_by_bytes() {
    let mut shard = shard_with(|settings| settings.batch_rows = 8);
    shard.tenure.batch_bytes = 500;
    put(&mut shard, part(1, items(3)));
    assert_eq!((shard.waiting_rows(), shard.backlog()), (3, 3));
    assert!(!shard.fills_a_batch(7) && shard.fills_a_batch(8));
    put(&mut shard, part(2, items(1)));
    assert!(shard.fills_a_batch(4), "516 bytes wait");
}
