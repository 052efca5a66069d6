//! Parts of operations: which of them run, what a page does, and what is counted.

use forebay_store::{
    OperationChange, OperationCursor, OperationId, OperationKind, OperationOrder, OperationProgress,
    OperationSpec, OperationUpdate, OperationWish,
};
use forebay_types::Reason;

use super::*;
use crate::{
    api::NackAction::DeadLetter,
    shard::{
        commit::disk_room::Need,
        work::{OperationItem, OrderRequest, Place, Walk},
    },
};

pub(super) fn id(number: u8) -> OperationId {
    OperationId([number; 16])
}

pub(super) fn spec(number: u8, kind: OperationKind) -> OperationSpec {
    OperationSpec {
        id: id(number),
        kind,
        namespace: "ns".to_owned(),
        topic: "t".to_owned(),
        filter: String::new(),
        leased: false,
        to_topic: String::new(),
        ttl: None,
        update: None,
        max_redrives: None,
        limits: None,
        shards: vec![SHARD],
        home: SHARD,
        who: String::new(),
        reason: String::new(),
        started_at: time(u64::from(number)),
        request: [number; 16],
        wish: OperationWish { version: 1, rate: 1_000, active: 1, cancelled: false },
    }
}

pub(super) fn order(
    shard: &mut OwnedShard,
    ms: u64,
    order: OperationOrder,
) -> Result<OperationProgress, Reason> {
    shard.order(OrderRequest { call: 1, order }).unwrap();
    let (batch, committed) = run(shard, ms);
    assert!(batch.operations.is_empty() || Need::of(&batch) >= Need::Rows, "a row is stored");
    let ordered = committed.done.into_iter().find_map(|planned| match planned {
        PlannedAction::Order(order) => Some(order.result),
        _ => None,
    });
    ordered.unwrap().map(|row| row.progress).map_err(|refusal| refusal.reason)
}

/// The request that begins an operation.
pub(super) fn request(spec: OperationSpec) -> OrderRequest {
    OrderRequest { call: 1, order: OperationOrder::Begin(Box::new(spec)) }
}

pub(super) fn begin(shard: &mut OwnedShard, ms: u64, spec: OperationSpec) -> OperationProgress {
    order(shard, ms, OperationOrder::Begin(Box::new(spec))).unwrap()
}

/// These ready items as an operation reads them.
pub(super) fn ready(keys: &[Key]) -> Vec<OperationItem> {
    let item = |key: &Key| OperationItem {
        topic: T,
        key: *key,
        attributes: attributes(),
        bytes: 0,
        metadata_bytes: 0,
        headers: Vec::new(),
        place: Place::Ready,
        unreadable: false,
    };
    keys.iter().map(item).collect()
}

/// These dead letters as an operation reads them.
pub(super) fn dead(seqs: &[Seq]) -> Vec<OperationItem> {
    let place = || Place::Dead {
        died_at: time(5),
        cause: String::new(),
        last_error: "why".to_owned(),
        packed: vec![7],
    };
    let item = |seq: &Seq| OperationItem {
        topic: T,
        key: Key { priority: 0, rank: 0, seq: *seq },
        attributes: ItemAttributes { failures: 1, deliveries: 1, ..attributes() },
        bytes: 0,
        metadata_bytes: 0,
        headers: Vec::new(),
        place: place(),
        unreadable: false,
    };
    seqs.iter().map(item).collect()
}

/// The next read of an operation finds these items.
pub(super) fn read(shard: &mut OwnedShard, ms: u64, items: Vec<OperationItem>) {
    shard.begin_operation(1, moment(ms)).unwrap();
    shard.operation_read(1, Some(items), at(ms));
}

pub(super) fn progress(shard: &OwnedShard, number: u8) -> OperationProgress {
    shard.operation(id(number)).unwrap().progress
}

/// Scanned, matched, changed, skipped, failed.
pub(super) fn figures(shard: &OwnedShard, number: u8) -> [u64; 5] {
    let OperationProgress { scanned, matched, changed, skipped, failed, .. } = progress(shard, number);
    [scanned, matched, changed, skipped, failed]
}

pub(super) fn changed(committed: &CommittedBatch) -> u64 {
    committed.operated.as_ref().unwrap().items.changed
}

#[test]
fn a_purge_removes_what_waits_and_counts_it_in_the_same_batch() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(5));
    lease(&mut shard, 1, 1);
    begin(&mut shard, 2, spec(1, OperationKind::Purge));
    read(&mut shard, 3, Vec::new());
    run(&mut shard, 3);
    read(&mut shard, 4, ready(&keys));
    let (batch, committed) = run(&mut shard, 4);
    assert_eq!(batch.purges.len(), 4, "one is leased");
    assert_eq!(batch.operation_progress[0].1, progress(&shard, 1));
    assert_eq!((figures(&shard, 1), changed(&committed)), ([5, 5, 4, 1, 0], 4));
    assert!(progress(&shard, 1).ended_at.is_some());
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((1, 0, 0), 0));
    assert!(shard.begin_operation(9, moment(9_000)).is_none());
}

/// Of an item that can't be read nobody knows whether it passes a filter.
#[test]
fn what_cannot_be_read_fails_unless_everything_is_removed() {
    for (kind, filter, expected) in [
        (OperationKind::Purge, "", [3, 3, 3, 0, 0]),
        (OperationKind::Purge, "priority < 100", [3, 3, 2, 0, 1]),
        (OperationKind::Update, "", [3, 3, 2, 0, 1]),
    ] {
        let mut shard = shard();
        let keys = store(&mut shard, 0, items(3));
        let update = OperationUpdate { priority: Some(7), ..OperationUpdate::default() };
        let update = (kind == OperationKind::Update).then_some(update);
        begin(&mut shard, 2, OperationSpec { filter: filter.to_owned(), update, ..spec(1, kind) });
        read(&mut shard, 3, Vec::new());
        run(&mut shard, 3);
        let mut found = ready(&keys);
        found[1].unreadable = true;
        read(&mut shard, 4, found);
        run(&mut shard, 4);
        assert_eq!(figures(&shard, 1), expected, "{kind:?} {filter}");
        assert_eq!(counts(&shard, T).0, if kind == OperationKind::Purge { expected[4] as i64 } else { 3 });
    }
}

#[test]
fn a_leased_item_is_purged_if_asked_and_its_receipt_is_over() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    let receipt = lease(&mut shard, 1, 1)[0];
    begin(&mut shard, 2, OperationSpec { leased: true, ..spec(1, OperationKind::Purge) });
    read(&mut shard, 3, Vec::new());
    run(&mut shard, 3);
    read(&mut shard, 4, ready(&keys));
    run(&mut shard, 4);
    assert_eq!((figures(&shard, 1), counts(&shard, T)), ([2, 2, 2, 0, 0], (0, 0, 0)));
    assert!(!shard.is_leased(receipt.item.seq));
    ack(&mut shard, receipt);
    assert_eq!(build(&mut shard, 5).stale.len(), 1);
}

#[test]
fn a_scheduled_item_is_purged_before_its_time() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_due(500)]);
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    let scheduled = OperationItem { place: Place::Scheduled, ..ready(&keys).remove(0) };
    read(&mut shard, 2, vec![scheduled]);
    let (batch, _) = run(&mut shard, 2);
    assert_eq!((batch.purges.len(), batch.schedule_deletes.len(), counts(&shard, T)), (1, 1, (0, 0, 0)));
}

#[test]
fn a_page_of_a_sweep_that_is_older_leaves_what_was_purged() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_due(50)]);
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    scan(&mut shard, Sweep::Due, 5, 60);
    let scheduled = OperationItem { place: Place::Scheduled, ..ready(&keys).remove(0) };
    read(&mut shard, 61, vec![scheduled]);
    run(&mut shard, 61);
    shard.scanned(Sweep::Due, 5, vec![due_row(time(50), keys[0])], None);
    assert!(build(&mut shard, 62).batch.unwrap().promotes.is_empty());
}

#[test]
fn what_changed_since_the_read_is_skipped() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    read(&mut shard, 2, Vec::new());
    run(&mut shard, 2);
    shard.begin_operation(7, moment(3)).unwrap();
    let receipt = lease(&mut shard, 3, 1)[0];
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::ZERO)));
    run(&mut shard, 4);
    shard.operation_read(7, Some(ready(&keys)), at(5));
    run(&mut shard, 5);
    assert_eq!(figures(&shard, 1), [2, 2, 1, 1, 0]);
}

#[test]
fn a_batch_that_did_not_happen_counts_nothing_and_is_built_again() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    read(&mut shard, 2, Vec::new());
    run(&mut shard, 2);
    read(&mut shard, 3, ready(&keys));
    build(&mut shard, 3).batch.unwrap();
    assert_eq!(window_len(&shard, T), 0, "nobody takes them while the batch is in flight");
    shard.disk_full(at(3)).unwrap();
    assert_eq!((figures(&shard, 1), counts(&shard, T)), ([0; 5], (3, 0, 0)));
    assert_eq!(window_len(&shard, T), 3);
    run(&mut shard, 5_000);
    assert_eq!((figures(&shard, 1), counts(&shard, T)), ([3, 3, 3, 0, 0], (0, 0, 0)));
}

#[test]
fn a_filter_a_limit_and_a_quarter_of_the_batch_cut_a_page() {
    let mut shard = shard_with(|settings| settings.batch_rows = 16);
    let keys = store(&mut shard, 0, (0..9).map(|number| item(if number == 0 { 5 } else { 1 })).collect());
    let limits = Some([(SHARD, 5)].into());
    let filter = "priority < 5 AND age < 1h".to_owned();
    begin(&mut shard, 1, OperationSpec { filter, limits, ..spec(1, OperationKind::Purge) });
    read(&mut shard, 2, Vec::new());
    run(&mut shard, 2);
    let mut ordered = keys.clone();
    ordered.sort_unstable();
    read(&mut shard, 3, ready(&ordered[..4]));
    run(&mut shard, 3);
    assert_eq!(
        (figures(&shard, 1), progress(&shard, 1).cursor),
        ([4, 4, 4, 0, 0], OperationCursor::Ready(ordered[3]))
    );
    assert!(shard.begin_operation(2, moment(6)).is_none(), "the rate allows four in 4 ms");
    read(&mut shard, 7, ready(&ordered[4..8]));
    run(&mut shard, 7);
    assert_eq!(figures(&shard, 1), [5, 5, 5, 0, 0]);
    assert!(progress(&shard, 1).ended_at.is_some());
}

#[test]
fn calls_have_the_shard_for_themselves_after_a_page_that_they_shared_a_batch_with() {
    let mut shard = shard_with(|settings| settings.batch_rows = 16);
    let mut keys = store(&mut shard, 0, items(12));
    keys.sort_unstable();
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    read(&mut shard, 2, Vec::new());
    run(&mut shard, 2);
    read(&mut shard, 3, ready(&keys[..4]));
    build(&mut shard, 3);
    commit(&mut shard, 13);
    // The rate allows four items in 4 ms.
    read(&mut shard, 17, ready(&keys[4..8]));
    put(&mut shard, part(17, items(1)));
    build(&mut shard, 17);
    commit(&mut shard, 27);
    assert_eq!(progress(&shard, 1).changed, 8);
    assert!(shard.begin_operation(2, moment(66)).is_none(), "that batch took 10 ms");
    read(&mut shard, 67, ready(&keys[8..]));
    build(&mut shard, 67);
    put(&mut shard, part(68, items(1)));
    commit(&mut shard, 10_067);
    assert!(shard.begin_operation(2, moment(11_066)).is_none(), "a call waited for that batch");
    assert!(shard.begin_operation(2, moment(11_067)).is_some(), "a second is enough");
}

#[test]
fn a_redriven_item_waits_behind_the_others_without_failures() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, DeadLetter);
    run(&mut shard, 1);
    store(&mut shard, 2, items(1));
    let ttl = Some(Duration::from_secs(9));
    begin(&mut shard, 10, OperationSpec { ttl, ..spec(1, OperationKind::Redrive) });
    read(&mut shard, 11, dead(&[receipt.item.seq]));
    let (batch, committed) = run(&mut shard, 11);
    let redrive = &batch.redrives[0];
    let ItemAttributes { failures, deliveries, expires_at, .. } = redrive.attributes;
    assert_eq!((failures, deliveries, expires_at), (0, 1, Some(time(9_011))));
    assert_eq!((redrive.topic, redrive.key.rank), (T, time(11).as_micros()));
    assert_eq!((counts(&shard, T), changed(&committed)), ((2, 0, 0), 1));
    assert_ne!(head(&shard).unwrap().0.seq, receipt.item.seq);
    assert_eq!(window_len(&shard, T), 2);
}

#[test]
fn dead_letters_go_to_a_new_topic_or_nowhere() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, DeadLetter);
    run(&mut shard, 1);
    let to_topic = "other".to_owned();
    begin(&mut shard, 10, OperationSpec { to_topic, ..spec(1, OperationKind::Redrive) });
    read(&mut shard, 11, dead(&[receipt.item.seq]));
    let (batch, _) = run(&mut shard, 11);
    assert_eq!((batch.new_topics.len(), counts(&shard, TopicId(2))), (1, (1, 0, 0)));
    begin(&mut shard, 12, spec(2, OperationKind::DeleteDead));
    read(&mut shard, 13, Vec::new());
    run(&mut shard, 13);
    assert!(progress(&shard, 2).ended_at.is_some());
}

#[test]
fn leases_that_had_begun_are_released_and_keep_their_place() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    lease(&mut shard, 1, 2);
    let begun = begin(&mut shard, 2, spec(1, OperationKind::ResetLeases));
    assert_eq!(begun.estimated, 2, "leased items alone");
    lease(&mut shard, 3, 1);
    assert!(shard.begin_operation(1, moment(4)).is_none(), "it needs no read");
    let (batch, _) = run(&mut shard, 4);
    assert_eq!((batch.requeues.len(), figures(&shard, 1)), (2, [2, 2, 2, 0, 0]));
    assert!(batch.requeues.iter().all(|back| back.failures == 0 && back.deliveries == 1));
    assert_eq!(head(&shard).unwrap().0, keys[0]);
}

#[test]
fn of_a_topic_one_operation_runs_and_a_cancelled_one_does_nothing_more() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    begin(&mut shard, 1, spec(1, OperationKind::Purge));
    begin(&mut shard, 2, spec(2, OperationKind::DeleteDead));
    let walk = shard.begin_operation(1, moment(3)).unwrap().walk;
    assert!(matches!(walk, Walk::Items { is_scheduled: true, .. }));
    shard.operation_read(1, Some(Vec::new()), at(3));
    let change = OperationChange::Cancel;
    let cancel = OperationOrder::Change { id: id(1), namespace: "ns".to_owned(), change };
    assert!(order(&mut shard, 4, cancel.clone()).unwrap().ended_at.is_some());
    assert_eq!(figures(&shard, 1), [0; 5]);
    assert!(build(&mut shard, 5).batch.is_none(), "its page is dropped");
    let walk = shard.begin_operation(2, moment(6)).unwrap().walk;
    assert!(matches!(walk, Walk::Dead { .. }), "the next one runs");
    let foreign = OperationOrder::Change { id: id(2), namespace: "other".to_owned(), change };
    assert_eq!(order(&mut shard, 7, foreign), Err(Reason::OperationNotFound));
}

#[test]
fn an_operation_that_is_begun_again_is_the_same_one() {
    let mut shard = shard();
    let first = begin(&mut shard, 1, spec(1, OperationKind::Purge));
    store(&mut shard, 2, items(1));
    assert_eq!(begin(&mut shard, 3, spec(1, OperationKind::Purge)), first);
    let other = OperationSpec { request: [9; 16], ..spec(1, OperationKind::Purge) };
    let refused = order(&mut shard, 4, OperationOrder::Begin(Box::new(other)));
    assert_eq!(refused, Err(Reason::RequestIdReused));
}

#[test]
fn so_many_operations_of_a_namespace_wait_and_of_those_that_ended_some_are_kept() {
    let mut shard = shard();
    let numbered = |number: u32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let cancelled = number >= 1_000;
        let wish = OperationWish { cancelled, ..spec(1, OperationKind::Purge).wish };
        OperationSpec { id: OperationId(bytes), wish, ..spec(1, OperationKind::Purge) }
    };
    (0..104).for_each(|number| {
        begin(&mut shard, 1, numbered(number));
    });
    let refused = order(&mut shard, 2, OperationOrder::Begin(Box::new(numbered(104))));
    assert_eq!(refused, Err(Reason::Overloaded));
    let follow = |number| OperationOrder::Follow(Box::new(numbered(number)));
    (1_000..1_100).for_each(|number| {
        order(&mut shard, 3 + u64::from(number), follow(number)).unwrap();
    });
    let ended = shard.operations().filter(|row| row.progress.ended_at.is_some()).count();
    assert!((20..=21).contains(&ended), "{ended}");
}
