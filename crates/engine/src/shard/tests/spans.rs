//! A step of the shard's time ends no lease and no delay. What was to be at a time is then.

use super::*;
use crate::clock::Step;

/// How far the time steps, in milliseconds.
const STEP: u64 = 3_600_000;

/// The time steps after so many milliseconds.
fn step(shard: &mut OwnedShard, ms: u64) {
    shard.step(Step { before: moment(ms), after: after(ms) });
}

/// The moment so many milliseconds after the beginning, once the time has stepped.
fn after(ms: u64) -> Moment {
    Moment { now: time(STEP + ms), at: at(ms) }
}

/// Builds a batch, and commits it, so many milliseconds after the beginning, once the time has stepped.
fn run_after(shard: &mut OwnedShard, ms: u64) -> Option<Batch> {
    let rng = &mut StdRng::seed_from_u64(ms);
    let context = BuildContext {
        moment: after(ms),
        rng,
        topics_of: &|_| 0,
        topics_left: usize::MAX,
        waiting: HashMap::new(),
        set: &SettingsTable::default(),
    };
    let batch = shard.build(context).batch?;
    shard.committed(batch.number, at(ms), Duration::ZERO).unwrap();
    Some(batch)
}

/// An item that waits for the end of a delay.
fn delayed(ms: u64) -> AdmittedItem {
    let mut item = item_due(ms);
    item.attributes.waits = Waits::Span;
    item
}

/// The row of a scheduled item as a scan finds it.
fn row(key: Key, at: Timestamp, attributes: ItemAttributes) -> DueRow {
    let item = DueItem::Scheduled(ReadyRow { key, attributes, ..ready_row(1) });
    DueRow { at, seq: key.seq, topic: T, item }
}

/// Sweeps what is due so many milliseconds after the beginning, once the time has stepped.
fn sweep_after(shard: &mut OwnedShard, rows: Vec<DueRow>, ms: u64) -> Batch {
    // The others have their turns.
    while let Some(scan) = shard.begin_scan(9, after(ms))
        && scan.sweep != Sweep::Due
    {
        shard.scanned(scan.sweep, 9, Vec::new(), None);
    }
    shard.scanned(Sweep::Due, 9, rows, None);
    run_after(shard, ms).unwrap()
}

#[test]
fn a_lease_lasts_as_long_as_it_was_to() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(2)); // for a second
    step(&mut shard, 400);
    assert_eq!(shard.contents.leases.next_deadline(), Some(time(STEP + 1_000)));
    assert!(run_after(&mut shard, 999).is_none());
    let batch = run_after(&mut shard, 1_000).unwrap();
    assert_eq!(batch.requeues.len(), 2);
    let failure = batch.requeues[0].failure.as_ref().unwrap();
    assert_eq!(
        (failure.ended_at, batch.requeues[0].rank),
        (time(STEP + 1_000), time(STEP + 1_000).as_micros())
    );
}

#[test]
fn a_lease_in_a_batch_on_its_way_lasts_as_long_too() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    ask_lease(&mut shard, 1);
    build(&mut shard, 100);
    step(&mut shard, 200);
    commit(&mut shard, 300);
    assert!(run_after(&mut shard, 1_099).is_none() && run_after(&mut shard, 1_101).is_some());
}

#[test]
fn numbers_of_a_batch_that_did_not_happen_are_not_those_of_before_the_step() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    ask_lease(&mut shard, 1);
    put(&mut shard, part(1, vec![delayed(60_000)]));
    let rows = build(&mut shard, 100).rows;
    step(&mut shard, 200);
    shard.unstorable("bad", &[], at(300)).unwrap();
    let batches: Vec<Batch> = std::iter::from_fn(|| run_after(&mut shard, 400)).collect();
    assert_eq!(batches.iter().map(|batch| batch.leases.len() + batch.inserts.len()).sum::<usize>(), rows);
    assert_eq!(shard.contents.leases.next_deadline(), Some(time(STEP + 1_400)), "not an hour later");
    let item = batches.iter().find_map(|batch| batch.inserts.first()).unwrap();
    let due = row(item.key, Timestamp::from_micros(item.key.rank), item.attributes);
    assert_eq!(shard.tenure.spans.moved(&due), None);
}

#[test]
fn leases_of_before_and_after_a_step_end_in_the_order_of_their_ends() {
    let mut shard = shard();
    store(&mut shard, 0, items(3));
    lease(&mut shard, 0, 1);
    step(&mut shard, 500);
    ask_lease(&mut shard, 1);
    run_after(&mut shard, 600);
    let ends: Vec<u64> = shard
        .leases_behind((Timestamp::MIN, Seq(0)))
        .map(|(end, _)| end.since(time(STEP)).as_millis() as u64)
        .collect();
    assert_eq!(ends, [1_000, 1_600]);
    assert_eq!(shard.check(), Ok(()));
}

#[test]
fn a_delay_is_put_off_and_a_time_that_was_named_is_not() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![delayed(8_000), item_due(9_000)]);
    step(&mut shard, 1_000);
    let waits = ItemAttributes { waits: Waits::Span, ..attributes() };
    let rows = vec![row(keys[0], time(8_000), waits), row(keys[1], time(9_000), attributes())];
    let batch = sweep_after(&mut shard, rows, 1_001);
    let moved = time(STEP + 8_000);
    assert_eq!(batch.put_offs, [forebay_store::PutOff { seq: keys[0].seq, from: time(8_000), to: moved }]);
    assert_eq!(batch.promotes.iter().map(|key| key.seq).collect::<Vec<_>>(), [keys[1].seq]);
    assert_eq!(counts(&shard, T), (1, 1, 0));
    // It is put off once.
    let batch = sweep_after(&mut shard, vec![row(keys[0], moved, waits)], 8_001);
    assert_eq!((batch.put_offs.len(), batch.promotes.len()), (0, 1));
}

#[test]
fn the_delay_of_a_nack_is_put_off_and_that_of_a_later_one_is_not() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    nack(&mut shard, receipts[0], NackAction::Fail(Some(Duration::from_secs(60))));
    run(&mut shard, 100);
    step(&mut shard, 500);
    nack(&mut shard, receipts[1], NackAction::Fail(Some(Duration::from_secs(60))));
    run_after(&mut shard, 600);
    let again = ItemAttributes { deliveries: 1, failures: 1, ..attributes() };
    let due = |receipt: Receipt, at: Timestamp| {
        row(Key { priority: 0, rank: at.as_micros(), seq: receipt.item.seq }, at, again)
    };
    let batch = sweep_after(&mut shard, vec![due(receipts[0], time(60_100))], 601);
    assert_eq!(batch.put_offs.iter().map(|row| row.to).collect::<Vec<_>>(), [time(STEP + 60_100)]);
    let rows = vec![due(receipts[0], time(STEP + 60_100)), due(receipts[1], time(STEP + 60_600))];
    let batch = sweep_after(&mut shard, rows, 61_000);
    assert_eq!((batch.put_offs.len(), batch.promotes.len()), (0, 2));
}

#[test]
fn what_was_admitted_before_a_step_and_is_stored_after_it_begins_then() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![delayed(8_000)]));
    step(&mut shard, 100);
    let batch = run_after(&mut shard, 200).unwrap();
    assert_eq!(batch.inserts[0].state, forebay_types::State::Scheduled);
    assert_eq!(batch.inserts[0].key.rank, time(STEP + 8_200).as_micros());
}

#[test]
fn a_shard_whose_fence_is_ahead_steps_as_far_as_its_time_does() {
    let mut shard = shard();
    shard.moment(after(0));
    let before = shard.moment(moment(2)).now;
    step(&mut shard, 4);
    assert!(shard.tenure.spans.stepped_at().is_none() || shard.moment(after(4)).now > before);
    assert!(shard.moment(after(4)).now >= time(STEP));
}
