//! The sweeps: whose turn it is, how far a scan looks, what a page does, and how far the checkpoint moves.

use forebay_store::{Checkpoint, DueItem, DueKey, DueRow};

use super::*;

/// A row of a sweep's table.
pub(super) fn due(ms: u64, key: Key, scheduled: bool) -> DueRow {
    let attributes = ItemAttributes { expires_at: Some(time(ms)), ..attributes() };
    let row = ReadyRow { key, attributes, ..ready_row(1) };
    let item = if scheduled { DueItem::Scheduled(row) } else { DueItem::Ready(row) };
    DueRow { at: time(ms), seq: key.seq, topic: T, item }
}

/// The expiry sweep has found these rows, at this time.
pub(super) fn expiry_page(shard: &mut OwnedShard, ms: u64, rows: Vec<DueRow>) {
    scan_nothing(shard, Sweep::Due, ms);
    scan(shard, Sweep::Expiry, 2, ms);
    shard.scanned(Sweep::Expiry, 2, rows, None);
}

/// This sweep scans and finds nothing.
fn scan_nothing(shard: &mut OwnedShard, sweep: Sweep, ms: u64) {
    scan(shard, sweep, 9, ms);
    shard.scanned(sweep, 9, Vec::new(), None);
}

fn checkpoint(batch: &Batch, sweep: Sweep) -> Option<Timestamp> {
    batch.checkpoints.iter().find(|checkpoint| checkpoint.sweep == sweep).map(|checkpoint| checkpoint.at)
}

/// How many items the expiry sweep deleted. All are of one namespace.
fn expired(committed: &CommittedBatch) -> u64 {
    assert!(committed.expired.keys().all(|namespace| **namespace == *"ns"), "{:?}", committed.expired);
    committed.expired.values().sum()
}

#[test]
fn sweeps_take_turns() {
    let mut shard = shard();
    scan(&mut shard, Sweep::Due, 1, 0);
    assert!(shard.begin_scan(2, moment(0)).is_none(), "one at a time");
    shard.scanned(Sweep::Due, 1, Vec::new(), None);
    scan_nothing(&mut shard, Sweep::Expiry, 0);
    scan_nothing(&mut shard, Sweep::Retention, 0);
    assert!(shard.begin_scan(4, moment(9_000)).is_none(), "none has anything to look for");
}

#[test]
fn the_sweep_whose_row_is_older_goes_first() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    store(&mut shard, 0, vec![item_due(50), item_expiring(40)]);
    scan(&mut shard, Sweep::Expiry, 1, 60);
}

#[test]
fn a_sweep_with_a_backlog_holds_up_no_other() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    store(&mut shard, 0, vec![item_due(50), item_expiring(10)]);
    let mut scanned = Vec::new();
    for _ in 0..4 {
        let request = shard.begin_scan(1, moment(60)).unwrap();
        scanned.push(request.sweep);
        // It ends without a row, and knows of an older one.
        shard.scanned(request.sweep, 1, Vec::new(), Some(time(20)));
    }
    assert_eq!(scanned, [Sweep::Expiry, Sweep::Due, Sweep::Expiry, Sweep::Due]);
}

/// A later program may be able to read it.
#[test]
fn a_row_that_cannot_be_read_stays_above_the_checkpoint_and_holds_up_none() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    let keys = store(&mut shard, 0, vec![item_due(40), item_due(50)]);
    scan(&mut shard, Sweep::Due, 1, 60);
    let mut rows = vec![due(40, keys[0], true), due(50, keys[1], true)];
    if let DueItem::Scheduled(row) = &mut rows[0].item {
        row.unreadable = true;
    }
    shard.scanned(Sweep::Due, 1, rows, None);
    let batch = build(&mut shard, 60).batch.unwrap();
    assert_eq!(batch.promotes, [DueKey { at: time(50), seq: keys[1].seq }]);
    assert!(checkpoint(&batch, Sweep::Due).is_none_or(|at| at <= time(40)), "{:?}", batch.checkpoints);
    commit(&mut shard, 60);
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((1, 1, 0), 1));
    let next = shard.begin_scan(2, moment(60));
    assert!(next.is_none_or(|scan| scan.from > time(50)), "it is not read again");
}

#[test]
fn nothing_is_scanned_before_its_time() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    store(&mut shard, 0, vec![item_due(50)]);
    assert!(shard.begin_scan(1, moment(49)).is_none());
    assert_eq!(scan(&mut shard, Sweep::Due, 1, 50), time(50));
}

#[test]
fn a_scan_stops_before_the_rows_of_the_batch_in_flight() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_due(50)]));
    build(&mut shard, 10);
    let to = scan(&mut shard, Sweep::Due, 1, 100);
    assert_eq!(to.as_micros(), time(50).as_micros() - 1);
}

#[test]
fn a_due_item_becomes_ready() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(50)])[0];
    scan(&mut shard, Sweep::Due, 1, 60);
    shard.scanned(Sweep::Due, 1, vec![due(50, key, true)], None);
    let (batch, committed) = run(&mut shard, 70);
    assert_eq!(batch.promotes, [DueKey { at: time(50), seq: key.seq }]);
    assert_eq!(checkpoint(&batch, Sweep::Due), Some(time(60)), "as far as the scan looked");
    assert_eq!((head(&shard).unwrap().0, counts(&shard, T)), (key, (1, 0, 0)));
    assert_eq!((expired(&committed), shard.status().sweeps[0].moved), (0, 1));
}

#[test]
fn a_sweep_knows_since_when_the_first_row_waits() {
    let mut shard = shard();
    let next = |shard: &OwnedShard| shard.status().sweeps[1].next_micros;
    let keys = store(&mut shard, 0, vec![item_expiring(50), item_expiring(80)]);
    assert_eq!(next(&shard), None, "it has not looked");
    scan_nothing(&mut shard, Sweep::Due, 60);
    scan(&mut shard, Sweep::Expiry, 2, 60);
    let page = vec![due(50, keys[0], false)];
    shard.scanned(Sweep::Expiry, 2, page, None);
    assert_eq!(run(&mut shard, 60).1.expired.len(), 1);
    scan_nothing(&mut shard, Sweep::Retention, 60);
    scan(&mut shard, Sweep::Expiry, 3, 70);
    shard.scanned(Sweep::Expiry, 3, Vec::new(), Some(time(80)));
    assert_eq!(next(&shard), Some(time(80).as_micros()));
    scan(&mut shard, Sweep::Expiry, 4, 90);
    shard.scanned(Sweep::Expiry, 4, vec![due(80, keys[1], false)], None);
    run(&mut shard, 90);
    scan(&mut shard, Sweep::Expiry, 5, 95);
    shard.scanned(Sweep::Expiry, 5, Vec::new(), None);
    assert_eq!(next(&shard), None, "there is none");
}

#[test]
fn an_expired_item_is_deleted() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_expiring(50), item(0)]);
    expiry_page(&mut shard, 60, vec![due(50, keys[0], false)]);
    let (batch, committed) = run(&mut shard, 60);
    let row = DueKey { at: time(50), seq: keys[0].seq };
    assert_eq!((batch.deletes, batch.expiry_deletes), (vec![keys[0].seq], vec![row]));
    assert_eq!((expired(&committed), counts(&shard, T)), (1, (1, 0, 0)));
    assert_eq!(head(&shard).unwrap().0, keys[1]);
}

#[test]
fn an_expired_scheduled_item_loses_its_schedule_row() {
    let mut shard = shard();
    let mut both = item_expiring(50);
    both.due = Some(time(90));
    let key = store(&mut shard, 0, vec![both])[0];
    expiry_page(&mut shard, 60, vec![due(50, key, true)]);
    let (batch, _) = run(&mut shard, 60);
    assert_eq!(batch.schedule_deletes, [DueKey { at: time(90), seq: key.seq }]);
    assert_eq!(counts(&shard, T), (0, 0, 0));
}

#[test]
fn a_leased_item_only_loses_its_expiry_row() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(50)])[0];
    expiry_page(&mut shard, 60, vec![due(50, Key { seq: receipt.item.seq, ..Key::MIN }, false)]);
    let (batch, committed) = run(&mut shard, 60);
    assert_eq!((batch.deletes.len(), batch.expiry_deletes.len(), expired(&committed)), (0, 1, 0));
    assert!(shard.is_open(&receipt) && counts(&shard, T) == (1, 0, 0));
}

#[test]
fn the_checkpoint_of_a_full_page_is_its_last_row() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    let keys = store(&mut shard, 0, (0..250).map(|_| item_due(50)).collect());
    scan(&mut shard, Sweep::Due, 1, 600);
    let rows = keys.iter().zip(50..).map(|(key, ms)| due(ms, *key, true)).collect();
    shard.scanned(Sweep::Due, 1, rows, None);
    let (batch, _) = run(&mut shard, 600);
    assert_eq!(checkpoint(&batch, Sweep::Due), Some(time(299)));
    assert_eq!(shard.begin_scan(2, moment(600)).map(|scan| scan.from), Some(time(299)), "there may be more");
}

#[test]
fn the_checkpoint_never_passes_a_row_of_its_own_batch() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_expiring(20)])[0];
    expiry_page(&mut shard, 100, vec![due(20, key, false)]);
    put(&mut shard, part(1, vec![item_expiring(50)]));
    let (batch, _) = run(&mut shard, 100);
    assert_eq!(checkpoint(&batch, Sweep::Expiry), Some(time(50)));
}

#[test]
fn the_checkpoint_never_passes_a_row_that_was_added_during_the_scan() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_expiring(20)])[0];
    scan(&mut shard, Sweep::Due, 1, 100);
    shard.scanned(Sweep::Due, 1, Vec::new(), None);
    scan(&mut shard, Sweep::Expiry, 2, 100);
    store(&mut shard, 100, vec![item_expiring(50)]);
    shard.scanned(Sweep::Expiry, 2, vec![due(20, key, false)], None);
    assert_eq!(checkpoint(&run(&mut shard, 100).0, Sweep::Expiry), Some(time(50)));
}

#[test]
fn a_scan_that_found_nothing_still_knows_of_a_row_that_was_added_meanwhile() {
    let mut shard = shard();
    scan(&mut shard, Sweep::Due, 1, 0);
    store(&mut shard, 0, vec![item_due(50)]);
    shard.scanned(Sweep::Due, 1, Vec::new(), Some(time(70)));
    scan_nothing(&mut shard, Sweep::Expiry, 0);
    scan_nothing(&mut shard, Sweep::Retention, 0);
    scan(&mut shard, Sweep::Due, 3, 50);
}

#[test]
fn the_checkpoint_never_passes_a_row_that_was_left_over() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_expiring(20), item_expiring(30), item_expiring(40)]);
    reserve(&mut shard, T, 1).into_iter().for_each(|reserved| {
        shard.lease(ShardLease { lease: None, ..share(1, vec![reserved]) }, 0);
    });
    let rows = keys.iter().zip([20, 30, 40]).map(|(key, ms)| due(ms, *key, false)).collect();
    expiry_page(&mut shard, 100, rows);
    let (batch, committed) = run(&mut shard, 100);
    assert_eq!((batch.deletes.len(), expired(&committed)), (2, 2), "one was on its way to a lease");
    assert_eq!(checkpoint(&batch, Sweep::Expiry), Some(time(20)));
    scan_nothing(&mut shard, Sweep::Retention, 100);
    assert!(shard.begin_scan(3, moment(119)).is_none(), "it is not looked at again at once");
    assert_eq!(shard.begin_scan(3, moment(120)).map(|scan| scan.from), Some(time(20)));
}

#[test]
fn a_row_of_an_item_that_changed_since_the_scan_began_is_left_over() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(20)])[0];
    scan(&mut shard, Sweep::Due, 1, 100);
    shard.scanned(Sweep::Due, 1, Vec::new(), None);
    scan(&mut shard, Sweep::Expiry, 2, 100);
    ack(&mut shard, receipt);
    run(&mut shard, 100);
    let row = due(20, Key { seq: receipt.item.seq, ..Key::MIN }, false);
    shard.scanned(Sweep::Expiry, 2, vec![row], None);
    let (batch, committed) = run(&mut shard, 100);
    assert_eq!((batch.deletes.len(), batch.expiry_deletes.len(), expired(&committed)), (0, 0, 0));
    assert_eq!(counts(&shard, T), (0, 0, 0), "it is not deleted twice");
}

#[test]
fn a_row_of_an_item_that_the_batch_deals_with_is_left_over() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(20)])[0];
    expiry_page(&mut shard, 100, vec![due(20, Key { seq: receipt.item.seq, ..Key::MIN }, false)]);
    ack(&mut shard, receipt);
    let (batch, _) = run(&mut shard, 100);
    assert_eq!((batch.deletes.len(), batch.expiry_deletes.len()), (1, 1));
    assert_eq!(checkpoint(&batch, Sweep::Expiry), Some(time(20)));
}

#[test]
fn the_checkpoint_goes_back_to_a_row_that_is_added_below_it() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_expiring(20)])[0];
    expiry_page(&mut shard, 100, vec![due(20, key, false)]);
    run(&mut shard, 100);
    assert_eq!(shard.upkeep.sweeps.expiry.checkpoint, time(100));
    put(&mut shard, part(1, vec![item_expiring(50)]));
    let (batch, _) = run(&mut shard, 100);
    assert_eq!(batch.checkpoints, [Checkpoint { sweep: Sweep::Expiry, at: time(50) }]);
    assert_eq!(shard.upkeep.sweeps.expiry.checkpoint, time(50));
}

#[test]
fn a_sweep_goes_on_at_its_stored_checkpoint() {
    let checkpoints = vec![Checkpoint { sweep: Sweep::Expiry, at: time(7) }];
    let mut shard = loaded(Settings::default(), ShardSnapshot { checkpoints, ..ShardSnapshot::default() });
    assert_eq!(shard.begin_scan(1, moment(9)).map(|scan| scan.from), Some(Timestamp::MIN));
    shard.scanned(Sweep::Due, 1, Vec::new(), None);
    scan_nothing(&mut shard, Sweep::Retention, 9);
    assert_eq!(shard.begin_scan(2, moment(9)).map(|scan| scan.from), Some(time(7)));
}

#[test]
fn a_failed_scan_is_tried_again_after_a_pause() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    store(&mut shard, 0, vec![item_due(10)]);
    scan(&mut shard, Sweep::Due, 1, 10);
    shard.scan_failed(Sweep::Due, 99, at(10));
    assert!(shard.begin_scan(2, moment(500)).is_none(), "it was not that one that failed");
    shard.scan_failed(Sweep::Due, 1, at(10));
    assert!(shard.begin_scan(2, moment(109)).is_none());
    scan(&mut shard, Sweep::Due, 2, 110);
}

#[test]
fn the_result_of_an_earlier_scan_is_not_used() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(50)])[0];
    scan(&mut shard, Sweep::Due, 1, 60);
    shard.scan_failed(Sweep::Due, 1, at(60));
    shard.scanned(Sweep::Due, 1, vec![due(50, key, true)], None);
    assert!(build(&mut shard, 60).batch.is_none());
}
