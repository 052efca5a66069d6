//! Direct hand-off: new items are leased to polls that wait, in the batch that stores them.

use super::*;
use crate::shard::work::WaitingPoll;

/// Polls wait for a topic: their numbers, and how many items each takes.
fn waiting(topic: &str, polls: &[(u64, usize)]) -> (TopicName, Vec<WaitingPoll>) {
    let poll = |&(poll, max_items): &(u64, usize)| WaitingPoll {
        max_items,
        max_bytes: 1_000,
        lease: share(poll, Vec::new()),
    };
    (TopicName::new("ns", topic), polls.iter().map(poll).collect())
}

pub(super) fn build_for(shard: &mut OwnedShard, ms: u64, polls: &[(u64, usize)]) -> BuiltBatch {
    build_with(shard, ms, &|_| 0, HashMap::from([waiting("t", polls)]))
}

/// The polls to which the batch hands items, and the items' priorities.
pub(super) fn handed(shard: &OwnedShard) -> Vec<(u64, Vec<i32>)> {
    let planned = &shard.commit.in_flight.as_ref().unwrap().planned;
    let handed = planned.iter().filter_map(|planned| match planned {
        PlannedAction::HandOff { part, .. } => {
            Some((part.poll, part.items.iter().map(|reserved| reserved.key.priority).collect()))
        }
        _ => None,
    });
    handed.collect()
}

#[test]
fn the_best_items_go_to_the_poll_that_came_first() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item(5), item(1)]));
    put(&mut shard, part(2, vec![item(3)]));
    let built = build_for(&mut shard, 0, &[(7, 2), (8, 5), (9, 1)]);
    assert_eq!(handed(&shard), [(7, vec![1, 3]), (8, vec![5])]);
    assert_eq!(built.handed_off.into_iter().collect::<Vec<_>>(), [7, 8]);
    let batch = built.batch.unwrap();
    assert_eq!((batch.inserts.len(), batch.leases.len()), (3, 3));
}

#[test]
fn what_was_handed_off_is_leased_and_in_no_window() {
    let mut shard = shard();
    put(&mut shard, part(1, items(3)));
    build_for(&mut shard, 0, &[(7, 2)]);
    let receipts = receipts(&commit(&mut shard, 0));
    assert!(receipts.len() == 2 && receipts.iter().all(|receipt| shard.is_open(receipt)));
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((3, 0, 0), 1));
    assert_eq!(shard.check(), Ok(()));
}

#[test]
fn a_poll_takes_no_more_bytes_than_it_asked_for_but_one_item() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_of_bytes(5_000), item_of_bytes(600), item_of_bytes(600)]));
    build_for(&mut shard, 0, &[(7, 9), (8, 9)]);
    assert_eq!(handed(&shard), [(7, vec![0]), (8, vec![0])]);
}

#[test]
fn scheduled_and_at_most_once_items_are_not_handed_off() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_due(50), item_once()]));
    assert!(build_for(&mut shard, 0, &[(7, 2)]).handed_off.is_empty());
}

#[test]
fn nothing_is_handed_off_where_the_batch_readies_another_item_of_the_topic() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, NackAction::Release(Duration::ZERO));
    put(&mut shard, part(1, vec![item(-1), item_of("u", 0)]));
    let polls = HashMap::from([waiting("t", &[(7, 1)]), waiting("u", &[(8, 1)])]);
    let built = build_with(&mut shard, 0, &|_| 0, polls);
    assert_eq!(built.handed_off.into_iter().collect::<Vec<_>>(), [8], "another topic is none of its concern");
}

#[test]
fn an_ack_in_the_same_batch_does_not_keep_items_from_being_handed_off() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    put(&mut shard, part(1, items(1)));
    assert_eq!(build_for(&mut shard, 0, &[(7, 1)]).handed_off.len(), 1);
}

#[test]
fn nothing_is_handed_off_where_a_sweep_promotes_an_item_of_the_topic() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(50)])[0];
    scan(&mut shard, Sweep::Due, 1, 60);
    shard.scanned(Sweep::Due, 1, vec![due_row(time(50), key)], None);
    put(&mut shard, part(1, items(1)));
    assert!(build_for(&mut shard, 60, &[(7, 1)]).handed_off.is_empty());
}

#[test]
fn nothing_is_handed_off_where_an_item_is_inserted_again() {
    let mut shard = shard();
    restore_one(&mut shard);
    put(&mut shard, part(1, items(1)));
    assert!(build_for(&mut shard, 0, &[(7, 1)]).handed_off.is_empty());
}

#[test]
fn a_poll_for_two_topics_gets_what_the_first_of_them_has() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_of("u", 0), item(0)]));
    let polls = HashMap::from([waiting("t", &[(7, 1)]), waiting("u", &[(7, 1)])]);
    let built = build_with(&mut shard, 0, &|_| 0, polls);
    assert_eq!((built.handed_off.len(), handed(&shard).len()), (1, 1));
}

#[test]
fn a_hand_off_is_cancelled_when_the_batch_does_not_happen() {
    let mut shard = shard();
    put(&mut shard, part(1, items(2)));
    build_for(&mut shard, 0, &[(7, 2)]);
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!((undone.handoffs_cancelled, undone.refused.len()), (vec![7], 0));
    while !shard.intake.enqueues.is_empty() {
        assert!(run(&mut shard, 0).0.leases.is_empty());
    }
    assert_eq!(window_len(&shard, T), 2, "the items are there for anyone");
}

#[test]
fn a_hand_off_is_cancelled_when_the_disk_is_full() {
    let mut shard = shard();
    put(&mut shard, part(1, items(2)));
    build_for(&mut shard, 0, &[(7, 2)]);
    let undone = shard.disk_full(at(0)).unwrap();
    assert_eq!((undone.handoffs_cancelled, undone.refused.len()), (vec![7], 1));
    assert!(shard.is_idle());
}
