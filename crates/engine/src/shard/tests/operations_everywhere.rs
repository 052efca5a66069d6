//! Operations that remove items wherever they are, and those that give items other values.

use forebay_store::{OperationCursor, OperationKind, OperationSpec, OperationUpdate};

use forebay_types::{Schedule, State};

use super::{
    operations::{begin, changed, dead, figures, id, progress, read, ready, spec},
    *,
};
use crate::{
    api::NackAction::DeadLetter,
    shard::work::{OperationItem, Place, Walk},
};

fn update(wanted: OperationUpdate) -> OperationSpec {
    OperationSpec { update: Some(wanted), ..spec(1, OperationKind::Update) }
}

fn to_priority(priority: i32) -> OperationSpec {
    update(OperationUpdate { priority: Some(priority), ..OperationUpdate::default() })
}

/// The next page finds these items, and is committed.
fn page(shard: &mut OwnedShard, ms: u64, items: Vec<OperationItem>) -> (Batch, CommittedBatch) {
    read(shard, ms, items);
    run(shard, ms)
}

/// An item as the next read of it finds it, once an operation has changed it.
fn updated(batch: &Batch, at_row: usize) -> OperationItem {
    let row = &batch.updates[at_row];
    let attributes = row.attributes.as_ref().unwrap().attributes;
    OperationItem { attributes, ..ready(&[row.key]).remove(0) }
}

#[test]
fn items_are_removed_wherever_they_are() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, DeadLetter);
    run(&mut shard, 1);
    let keys = store(&mut shard, 2, items(3));
    let leased = lease(&mut shard, 3, 1)[0];
    let due = store(&mut shard, 4, vec![item_due(900)]);
    begin(&mut shard, 5, spec(1, OperationKind::Cancel));
    let scheduled = OperationItem { place: Place::Scheduled, ..ready(&due).remove(0) };
    page(&mut shard, 6, vec![scheduled]);
    let (batch, committed) = page(&mut shard, 10, ready(&keys));
    assert_eq!((batch.purges.len(), changed(&committed), counts(&shard, T)), (3, 3, (0, 0, 1)));
    assert!(!shard.is_leased(leased.item.seq));
    let walk = shard.begin_operation(1, moment(20)).unwrap().walk;
    assert!(matches!(walk, Walk::Dead { until: Timestamp::MAX, .. }));
    // One has died that was stored since the operation began.
    let later = Seq(progress(&shard, 1).as_of.0 + 1);
    shard.operation_read(1, Some(dead(&[receipt.item.seq, later])), at(20));
    let (batch, _) = run(&mut shard, 20);
    assert_eq!(batch.dead_letter_purges, [receipt.item.seq]);
    assert_eq!((figures(&shard, 1), counts(&shard, T)), ([5, 5, 5, 0, 0], (0, 0, 0)));
    assert!(progress(&shard, 1).ended_at.is_some());
    ack(&mut shard, leased);
    assert_eq!(build(&mut shard, 21).stale.len(), 1, "its receipt is over");
}

#[test]
fn dead_letters_of_a_topic_without_items_are_removed() {
    let mut shard = shard();
    let other = OperationSpec { topic: "dormant".to_owned(), ..spec(1, OperationKind::Cancel) };
    begin(&mut shard, 1, other);
    assert!(shard.begin_operation(1, moment(2)).is_none(), "there are no items to be read");
    run(&mut shard, 2);
    let walk = shard.begin_operation(2, moment(3)).unwrap().walk;
    assert!(matches!(walk, Walk::Dead { .. }));
}

#[test]
fn an_item_that_an_operation_meets_again_at_its_new_place_does_not_count() {
    let mut shard = shard_with(|settings| settings.batch_rows = 16);
    let keys = store(&mut shard, 0, items(5));
    begin(&mut shard, 1, to_priority(7));
    page(&mut shard, 2, Vec::new());
    let (batch, committed) = page(&mut shard, 3, ready(&keys[..4]));
    assert_eq!((batch.updates.len(), changed(&committed)), (4, 4));
    assert!(batch.updates.iter().all(|row| row.is_operated && row.key.priority == 7 && !row.expires));
    assert!(matches!(progress(&shard, 1).cursor, OperationCursor::Ready(_)), "a full page: it goes on");
    let met = (0..2).map(|row| updated(&batch, row));
    let rest = ready(&keys[4..]).into_iter().chain(met).collect();
    let (batch, _) = page(&mut shard, 20, rest);
    assert_eq!((batch.updates.len(), figures(&shard, 1)), (1, [5, 5, 5, 0, 0]));
    assert!(progress(&shard, 1).ended_at.is_some());
}

#[test]
fn another_operation_may_update_an_item_again() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(1));
    begin(&mut shard, 1, to_priority(7));
    page(&mut shard, 2, Vec::new());
    let (batch, _) = page(&mut shard, 3, ready(&keys));
    let second = OperationSpec { id: id(2), ..to_priority(8) };
    begin(&mut shard, 9, second);
    page(&mut shard, 10, Vec::new());
    let (batch, _) = page(&mut shard, 11, vec![updated(&batch, 0)]);
    assert_eq!((batch.updates[0].key.priority, figures(&shard, 2)), (8, [1, 1, 1, 0, 0]));
    assert_eq!(updated(&batch, 0).attributes.updated_by, id(2).mark());
    assert_eq!(head(&shard).unwrap().0.priority, 8);
}

#[test]
fn what_is_leased_has_expired_or_would_never_be_due_is_skipped() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(4));
    let receipt = lease(&mut shard, 1, 1)[0];
    let later = Schedule::After(time(700));
    begin(&mut shard, 2, update(OperationUpdate { due: Some(later), ..OperationUpdate::default() }));
    page(&mut shard, 3, Vec::new());
    let mut found = ready(&keys);
    for item in &mut found {
        let expires = item.key.seq == keys[2].seq;
        item.attributes.expires_at = expires.then(|| time(500));
    }
    found.last_mut().unwrap().attributes.expires_at = Some(time(3));
    let (batch, _) = page(&mut shard, 4, found);
    assert_eq!((batch.updates.len(), figures(&shard, 1)), (1, [4, 4, 1, 3, 0]));
    let row = &batch.updates[0];
    assert_eq!((row.state, row.schedules, row.key.rank), (State::Scheduled, true, time(700).as_micros()));
    assert!(shard.is_leased(receipt.item.seq));
    assert_eq!(counts(&shard, T), (3, 1, 0));
}

#[test]
fn metadata_and_expiry_are_replaced() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(1));
    let wanted = OperationUpdate {
        metadata: Some(b"123456".to_vec()),
        ttl: Some(Duration::from_secs(1)),
        ..OperationUpdate::default()
    };
    begin(&mut shard, 1, update(wanted));
    page(&mut shard, 2, Vec::new());
    let headers = vec![("k".to_owned(), "v".to_owned())];
    let found = OperationItem { bytes: 40, metadata_bytes: 10, headers, ..ready(&keys).remove(0) };
    let (batch, _) = page(&mut shard, 10, vec![found]);
    let row = &batch.updates[0];
    let new = row.attributes.as_ref().unwrap();
    assert_eq!((new.bytes, new.headers.len(), new.attributes.expires_at), (30, 1, Some(time(1_010))));
    assert!(row.expires && row.metadata.as_deref() == Some(b"123456"));
    let (_, item) = head(&shard).unwrap();
    assert_eq!((item.bytes, item.attributes.updated_by), (36, id(1).mark()));
}

#[test]
fn an_update_that_did_not_happen_is_made_again() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    begin(&mut shard, 1, to_priority(-1));
    page(&mut shard, 2, Vec::new());
    read(&mut shard, 3, ready(&keys));
    build(&mut shard, 3).batch.unwrap();
    assert_eq!(window_len(&shard, T), 0, "nobody takes them as they were");
    shard.disk_full(at(3)).unwrap();
    assert_eq!((figures(&shard, 1), window_len(&shard, T)), ([0; 5], 2));
    let (batch, _) = run(&mut shard, 5_000);
    assert_eq!((batch.updates.len(), figures(&shard, 1)), (2, [2, 2, 2, 0, 0]));
    assert_eq!(head(&shard).unwrap().0.priority, -1);
}
