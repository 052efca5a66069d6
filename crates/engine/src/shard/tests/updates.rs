//! UpdateItem: an item that waits gets other values, and memory and rows follow.

use forebay_types::{Reason, Schedule, State};

use super::{
    changes::{dead, found, read, reasons, refusals, states},
    handoff::{build_for, handed},
    *,
};
use crate::{
    api::{ItemChange, ItemState, ItemUpdate},
    shard::work::{ChangeRequest, FoundItem, Place, ReplySlot},
};

const KEEP: ItemUpdate = ItemUpdate { priority: None, schedule: None, metadata: None, ttl: None };

fn request(seq: Seq, update: ItemUpdate) -> ChangeRequest {
    let (change, slot) = (ItemChange::Update(update), ReplySlot { call: 1, index: 0 });
    ChangeRequest { namespace: "ns".into(), seq, change, dry_run: false, slot }
}

/// Asks for an update of an item that a read finds so.
fn ask(shard: &mut OwnedShard, found: FoundItem, update: ItemUpdate) {
    shard.ask_change(request(found.item.key.seq, update)).unwrap();
    read(shard, vec![found]);
}

fn after(ms: u64) -> ItemUpdate {
    ItemUpdate { schedule: Some(Schedule::Delay(Duration::from_millis(ms))), ..KEEP }
}

fn priority(priority: i32) -> ItemUpdate {
    ItemUpdate { priority: Some(priority), ..KEEP }
}

/// The first row of those that a batch updates.
fn updated(batch: &Batch) -> (Key, State, bool) {
    let row = &batch.updates[0];
    (row.key, row.state, row.schedules)
}

#[test]
fn a_ready_item_has_its_new_place_once_the_batch_is_committed() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    ask(&mut shard, found(keys[2], Place::Ready), priority(-4));
    let batch = build(&mut shard, 1).batch.unwrap();
    assert_eq!(window_len(&shard, T), 2, "nobody takes it meanwhile");
    let moved = Key { priority: -4, ..keys[2] };
    assert_eq!(updated(&batch), (moved, State::Ready, false));
    assert!(batch.count_deltas.is_empty() && batch.schedule_deletes.is_empty());
    assert_eq!(states(&commit(&mut shard, 1)), [ItemState::Ready]);
    assert_eq!(head(&shard).unwrap().0, moved);
    assert_eq!((counts(&shard, T), window_len(&shard, T), shard.check()), ((3, 0, 0), 3, Ok(())));
}

#[test]
fn a_ready_item_is_scheduled_and_a_scheduled_one_made_ready() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    ask(&mut shard, found(key, Place::Ready), after(500));
    let (batch, committed) = run(&mut shard, 1);
    let due = Key { rank: time(501).as_micros(), ..key };
    assert_eq!(
        (updated(&batch), states(&committed)),
        ((due, State::Scheduled, true), vec![ItemState::Scheduled])
    );
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((0, 1, 0), 0));
    // Later, earlier, and now.
    ask(&mut shard, found(due, Place::Scheduled), after(700));
    let (batch, _) = run(&mut shard, 2);
    let later = Key { rank: time(702).as_micros(), ..key };
    assert_eq!((updated(&batch), batch.schedule_deletes[0].at), ((later, State::Scheduled, true), time(501)));
    ask(&mut shard, found(later, Place::Scheduled), priority(3));
    let (batch, _) = run(&mut shard, 3);
    let later = Key { priority: 3, ..later };
    assert_eq!((updated(&batch), batch.schedule_deletes.len()), ((later, State::Scheduled, false), 0));
    ask(&mut shard, found(later, Place::Scheduled), ItemUpdate { schedule: Some(Schedule::Now), ..KEEP });
    let (batch, committed) = run(&mut shard, 4);
    let now = Key { rank: time(4).as_micros(), ..later };
    assert_eq!((updated(&batch), states(&committed)), ((now, State::Ready, false), vec![ItemState::Ready]));
    assert_eq!((counts(&shard, T), head(&shard).unwrap().0), ((1, 0, 0), now));
    // A time that has passed moves a ready item nowhere.
    let past = ItemUpdate { schedule: Some(Schedule::After(time(0))), ..KEEP };
    ask(&mut shard, found(now, Place::Ready), past);
    assert_eq!(updated(&run(&mut shard, 9).0).0, now);
}

#[test]
fn a_checkpoint_goes_back_to_what_an_update_adds() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    shard.upkeep.sweeps.due.checkpoint = time(60_000);
    shard.upkeep.sweeps.expiry.checkpoint = time(60_000);
    let update = ItemUpdate { ttl: Some(Duration::from_secs(9)), ..after(1_000) };
    ask(&mut shard, found(key, Place::Ready), update);
    let (batch, _) = run(&mut shard, 5_003);
    let points: Vec<_> = batch.checkpoints.iter().map(|point| (point.sweep, point.at)).collect();
    assert_eq!(points, [(Sweep::Due, time(6_003)), (Sweep::Expiry, time(14_003))]);
}

#[test]
fn a_new_expiry_replaces_the_old_one_and_new_metadata_counts() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_expiring(900)])[0];
    let mut item = found(key, Place::Ready);
    item.item.attributes.expires_at = Some(time(900));
    (item.item.bytes, item.item.metadata_bytes) = (40, 10);
    item.item.headers = vec![("k".into(), "v".into())];
    let update =
        ItemUpdate { ttl: Some(Duration::from_secs(2)), metadata: Some("123456789012".into()), ..KEEP };
    ask(&mut shard, item, update);
    let (batch, _) = run(&mut shard, 10);
    let row = &batch.updates[0];
    let expiry = row.attributes.as_ref().unwrap();
    assert_eq!(
        (expiry.attributes.expires_at, expiry.bytes, expiry.headers.len()),
        (Some(time(2_010)), 30, 1)
    );
    assert_eq!((batch.expiry_deletes[0].at, row.metadata.as_ref().unwrap().len()), (time(900), 12));
    let (_, item) = head(&shard).unwrap();
    assert_eq!((item.bytes, item.attributes.expires_at), (42, Some(time(2_010))));
}

#[test]
fn what_does_not_wait_is_refused() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    lease(&mut shard, 0, 1);
    let expired = || {
        let mut item = found(keys[1], Place::Ready);
        item.item.attributes.expires_at = Some(time(1));
        item
    };
    let foreign = || FoundItem { namespace: "other".into(), ..found(keys[2], Place::Ready) };
    let mut refused = Vec::new();
    for item in [found(keys[0], Place::Ready), found(keys[1], dead()), expired(), foreign()] {
        ask(&mut shard, item, priority(1));
        let built = build(&mut shard, 5);
        assert!(built.batch.is_none());
        refused.extend(reasons(&built));
    }
    use Reason::{ItemDead, ItemLeased, ItemNotFound};
    assert_eq!(refused, [ItemLeased, ItemDead, ItemNotFound, ItemNotFound]);
    assert_eq!((counts(&shard, T), window_len(&shard, T), shard.is_idle()), ((3, 0, 0), 2, true));
}

#[test]
fn an_item_that_cannot_be_read_is_not_updated_and_can_be_cancelled() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(2))[0];
    let unreadable = || {
        let mut item = found(key, Place::Ready);
        item.item.unreadable = true;
        item
    };
    ask(&mut shard, unreadable(), priority(1));
    assert_eq!(reasons(&build(&mut shard, 5)), [Reason::ItemUnreadable]);
    super::changes::ask(&mut shard, 2, key.seq).unwrap();
    read(&mut shard, vec![unreadable()]);
    assert_eq!(build(&mut shard, 6).batch.unwrap().cancels, [key.seq]);
    commit(&mut shard, 6);
    assert_eq!((counts(&shard, T), shard.check()), ((1, 0, 0), Ok(())));
}

#[test]
fn an_item_is_due_before_it_expires() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(5_000)])[0];
    let mut fields = Vec::new();
    let ttl = |ms| ItemUpdate { ttl: Some(Duration::from_millis(ms)), ..KEEP };
    let at_end = ItemUpdate { schedule: Some(Schedule::After(time(8_000))), ..KEEP };
    for (expires_at, update) in [(8_000, after(8_000)), (8_000, at_end), (8_000, ttl(4_999))] {
        let mut item = found(key, Place::Scheduled);
        item.item.attributes.expires_at = Some(time(expires_at));
        ask(&mut shard, item, update);
        let built = build(&mut shard, 1);
        fields.extend(refusals(&built).into_iter().map(|refusal| refusal.field.clone().unwrap()));
    }
    assert_eq!(fields, ["delay", "deliver_after", "ttl"]);
    // Both together count.
    ask(&mut shard, found(key, Place::Scheduled), ItemUpdate { ttl: ttl(9_001).ttl, ..after(9_000) });
    assert_eq!(states(&run(&mut shard, 1).1), [ItemState::Scheduled]);
}

#[test]
fn an_update_that_did_not_happen_changes_nothing_and_waits_for_room() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    ask(&mut shard, found(keys[0], Place::Ready), priority(9));
    build(&mut shard, 1).batch.unwrap();
    shard.disk_full(at(1)).unwrap();
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T)), (keys[0], 2));
    // It is read again, and refused as long as there is no room for it.
    read(&mut shard, vec![found(keys[0], Place::Ready)]);
    assert_eq!(reasons(&build(&mut shard, 2)), [Reason::DiskFull]);
    ask(&mut shard, found(keys[0], Place::Ready), priority(9));
    assert_eq!(states(&run(&mut shard, 500).1), [ItemState::Ready]);
    assert_eq!(head(&shard).unwrap().0, keys[1]);
}

#[test]
fn a_read_of_the_store_does_not_bring_back_what_an_item_was() {
    let mut shard = shard_with_topics(1, 3);
    let second = ready_row(2).key;
    fetch(&mut shard, T, 7);
    ask(&mut shard, found(second, Place::Ready), priority(-1));
    run(&mut shard, 1);
    shard.prefetched(T, 7, Some(vec![ready_row(1), ready_row(2)]));
    let moved = Key { priority: -1, ..second };
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T), shard.check()), (moved, 2, Ok(())));
}

#[test]
fn nothing_is_handed_off_beside_an_item_that_moves() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(9_000)])[0];
    let now = ItemUpdate { schedule: Some(Schedule::Now), priority: Some(-1), ..KEEP };
    ask(&mut shard, found(key, Place::Scheduled), now);
    put(&mut shard, part(1, items(1)));
    assert!(build_for(&mut shard, 1, &[(7, 2)]).handed_off.is_empty() && handed(&shard).is_empty());
    commit(&mut shard, 1);
    assert_eq!(head(&shard).unwrap().0.priority, -1);
}

#[test]
fn a_dry_run_says_where_the_item_would_be() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    shard.ask_change(ChangeRequest { dry_run: true, ..request(key.seq, after(9)) }).unwrap();
    read(&mut shard, vec![found(key, Place::Ready)]);
    let built = build(&mut shard, 1);
    assert_eq!(built.not_changed[0].1, Ok(ItemState::Scheduled));
    assert!(built.batch.is_none() && window_len(&shard, T) == 1);
}
