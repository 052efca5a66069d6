//! What an enqueue holds while it waits: bytes of the budget, and its keys.

use forebay_types::Reason;

use super::*;

const KEY: [u8; 16] = [1; 16];

fn keyed() -> AdmittedItem {
    AdmittedItem { dedupe: Some(KEY), ..item(0) }
}

#[test]
fn charges_and_keys_are_released_with_the_commit() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed(), item_of_bytes(1_000)]));
    let charged = shard.budget.bytes();
    assert_eq!(charged, 1_000 + 2 * 129);
    build(&mut shard, 0);
    assert_eq!((shard.budget.bytes(), shard.keys.is_held(&[KEY])), (charged, true));
    assert!(commit(&mut shard, 0).keys_released);
    assert_eq!((shard.budget.bytes(), shard.keys.is_held(&[KEY])), (0, false));
}

#[test]
fn nobody_waits_for_keys_that_were_not_there() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    assert!(!run(&mut shard, 0).1.keys_released);
}

#[test]
fn a_call_that_is_cut_is_released_piece_by_piece() {
    let mut shard = shard_with(|settings| settings.batch_rows = 2);
    put(&mut shard, part(1, items(5)));
    let left: Vec<usize> = (0..3)
        .map(|_| {
            run(&mut shard, 0);
            shard.budget.bytes()
        })
        .collect();
    assert_eq!(left, [3 * 129, 129, 0]);
}

#[test]
fn what_is_refused_is_released() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed()]));
    build(&mut shard, 0);
    assert!(shard.unstorable("too long", &[]).unwrap().keys_released);
    assert_eq!((shard.budget.bytes(), shard.keys.is_held(&[KEY])), (0, false));
}

#[test]
fn what_is_tried_again_stays_charged() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![keyed(), item(0)]));
    build(&mut shard, 0);
    assert!(!shard.unstorable("too long", &[]).unwrap().keys_released);
    assert_eq!((shard.budget.bytes(), shard.keys.is_held(&[KEY])), (2 * 129, true));
}

#[test]
fn a_key_waits_while_another_enqueue_holds_it_or_no_generation_takes_keys() {
    let second = u64::try_from(time(0).as_micros() / 1_000_000).unwrap();
    let mut shard = shard();
    assert!(shard.must_wait_for_keys(&[KEY], time(0)), "there is no generation");
    shard.generations_changed(Some(vec![second]), at(0));
    assert!(!shard.must_wait_for_keys(&[KEY], time(0)));
    put(&mut shard, part(1, vec![keyed()]));
    assert!(shard.must_wait_for_keys(&[KEY], time(0)));
    assert!(!shard.must_wait_for_keys(&[[2; 16]], time(0)));
    run(&mut shard, 0);
    assert!(!shard.must_wait_for_keys(&[KEY], time(0)));
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
