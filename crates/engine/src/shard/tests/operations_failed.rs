//! Parts of operations that can't go on, and dead letters that were redriven often enough.

use forebay_store::{
    OperationChange, OperationFailure, OperationId, OperationKind, OperationOrder, OperationRow,
    OperationSpec,
};
use forebay_types::Reason;

use super::{
    operations::{begin, dead, figures, id, order, progress, read, spec},
    *,
};
use crate::{api::NackAction::DeadLetter, shard::upkeep::operation::operations::Operations};

/// As a later program stored it. Without a filter all items would match.
fn of_later_program() -> OperationSpec {
    OperationSpec { filter: "colour = 1".to_owned(), ..spec(1, OperationKind::Purge) }
}

/// A dead letter.
fn died(shard: &mut OwnedShard, ms: u64) -> Seq {
    let receipt = store_leased(shard, ms, items(1))[0];
    nack(shard, receipt, DeadLetter);
    run(shard, ms + 1);
    receipt.item.seq
}

#[test]
fn an_operation_whose_filter_is_not_understood_waits_and_can_be_cancelled() {
    let mut shard = shard();
    store(&mut shard, 0, items(2));
    begin(&mut shard, 1, of_later_program());
    assert!(shard.begin_operation(1, moment(2)).is_none());
    assert_eq!((progress(&shard, 1).ended_at, counts(&shard, T)), (None, (2, 0, 0)));
    assert_eq!(progress(&shard, 1).failure, Some(OperationFailure::Filter), "those who look are told");
    // It is in nobody's way.
    begin(&mut shard, 3, spec(2, OperationKind::Purge));
    assert!(shard.begin_operation(2, moment(4)).is_some());
    let cancel = OperationChange::Cancel;
    let change = OperationOrder::Change { id: id(1), namespace: "ns".to_owned(), change: cancel };
    assert!(order(&mut shard, 5, change).unwrap().ended_at.is_some());
}

#[test]
fn it_fails_after_an_hour_and_changes_nothing() {
    let mut shard = shard();
    store(&mut shard, 0, items(2));
    begin(&mut shard, 1, of_later_program());
    let hour = 3_600_000;
    assert!(shard.begin_operation(1, moment(hour)).is_none());
    assert!(build(&mut shard, hour).batch.is_none(), "it began 1 ms after the test");
    let given_up = shard.upkeep.operations.next_wake(moment(hour));
    let due = at(hour + 1).plus(Duration::from_micros(1));
    assert_eq!(given_up, Some(due), "nobody has to ask for it");
    assert!(shard.begin_operation(2, moment(hour + 1)).is_none(), "there is nothing to be read");
    run(&mut shard, hour + 1);
    let ended = progress(&shard, 1);
    assert_eq!((ended.failure, ended.ended_at), (Some(OperationFailure::Filter), Some(time(hour + 1))));
    assert_eq!((figures(&shard, 1), counts(&shard, T)), ([0; 5], (2, 0, 0)));
}

#[test]
fn an_owner_that_understands_the_filter_goes_on() {
    let mut shard = shard();
    begin(&mut shard, 1, of_later_program());
    let row = shard.operation(id(1)).unwrap().clone();
    let spec = OperationSpec { filter: String::new(), ..row.spec };
    let loaded = Operations::load(vec![OperationRow { spec, progress: row.progress }], Vec::new());
    assert_eq!(loaded.get(id(1)).unwrap().row.progress.failure, None);
}

#[test]
fn dead_letters_stay_where_their_topic_can_not_be_made() {
    let mut shard = shard();
    let seqs = [died(&mut shard, 0), died(&mut shard, 2)];
    let to_topic = "other".to_owned();
    let redrive = OperationSpec { to_topic, ..spec(1, OperationKind::Redrive) };
    assert_eq!(begin(&mut shard, 10, redrive).estimated, 2);
    read(&mut shard, 11, dead(&seqs));
    let full = |_: &str| usize::MAX / 2;
    let batch = build_with(&mut shard, 11, &full, HashMap::new()).batch.unwrap();
    assert!(batch.redrives.is_empty() && batch.new_topics.is_empty());
    commit(&mut shard, 11);
    let ended = progress(&shard, 1);
    assert_eq!((ended.failure, figures(&shard, 1)), (Some(OperationFailure::Target), [0; 5]));
    assert_eq!((ended.ended_at, counts(&shard, T)), (Some(time(11)), (0, 0, 2)));
    begin(&mut shard, 12, spec(2, OperationKind::Redrive));
    read(&mut shard, 13, dead(&seqs));
    run(&mut shard, 13);
    assert_eq!((figures(&shard, 2), progress(&shard, 2).failure), ([2, 2, 2, 0, 0], None));
}

#[test]
fn a_part_that_can_not_be_read_is_named_and_left_alone() {
    let unreadable = OperationId([9; 16]);
    let mut shard = shard();
    shard.upkeep.operations = Operations::load(Vec::new(), vec![unreadable]);
    assert!(shard.has_unreadable(unreadable) && !shard.has_unreadable(id(1)));
    let later = OperationSpec { id: unreadable, ..spec(1, OperationKind::Purge) };
    for order_of in [OperationOrder::Begin, OperationOrder::Follow] {
        let refused = order(&mut shard, 1, order_of(Box::new(later.clone())));
        assert_eq!(refused, Err(Reason::Unimplemented), "its counts would begin anew");
    }
    assert!(shard.operation(unreadable).is_none());
}

#[test]
fn dead_letters_that_were_redriven_often_enough_are_skipped() {
    let mut shard = shard();
    let seqs = [died(&mut shard, 0), died(&mut shard, 2), died(&mut shard, 4)];
    let redrive = OperationSpec { max_redrives: Some(2), ..spec(1, OperationKind::Redrive) };
    begin(&mut shard, 10, redrive);
    let mut found = dead(&seqs);
    for (item, redrives) in found.iter_mut().zip([0, 1, 2]) {
        item.attributes.redrives = redrives;
    }
    read(&mut shard, 11, found);
    let (batch, _) = run(&mut shard, 11);
    assert_eq!(batch.redrives.iter().map(|row| row.attributes.redrives).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(figures(&shard, 1), [3, 3, 2, 1, 0]);
    let only = OperationSpec { filter: "redrives >= 2".to_owned(), ..spec(2, OperationKind::DeleteDead) };
    begin(&mut shard, 20, only);
    let mut found = dead(&seqs[2..]);
    found[0].attributes.redrives = 2;
    read(&mut shard, 21, found);
    run(&mut shard, 21);
    assert_eq!(figures(&shard, 2), [1, 1, 1, 0, 0]);
}
