//! Changes of single items: what waits for a read, what a batch does with what was read, and what is read
//! again.

use forebay_types::{Reason, Refusal};

use super::*;
use crate::{
    api::{ItemChange, ItemState, ItemUpdate},
    shard::work::{ChangeRequest, FoundItem, OperationItem, Place, ReplySlot},
};

pub(super) fn cancel(namespace: &str, call: u64, seq: Seq) -> ChangeRequest {
    let slot = ReplySlot { call, index: 0 };
    ChangeRequest { namespace: namespace.into(), seq, change: ItemChange::Cancel, dry_run: false, slot }
}

/// An item is to be cancelled.
pub(super) fn ask(shard: &mut OwnedShard, call: u64, seq: Seq) -> Result<(), Reason> {
    shard.ask_change(cancel("ns", call, seq)).map_err(|refused| refused.1.reason)
}

/// An item, as a read finds it.
pub(super) fn found(key: Key, place: Place) -> FoundItem {
    let attributes = ItemAttributes { expires_at: None, ..attributes() };
    let headers = Vec::new();
    let (bytes, metadata_bytes, unreadable) = (0, 0, false);
    let item = OperationItem { topic: T, key, attributes, bytes, metadata_bytes, headers, place, unreadable };
    FoundItem { namespace: "ns".into(), item }
}

pub(super) fn dead() -> Place {
    Place::Dead { died_at: time(5), cause: String::new(), last_error: String::new(), packed: Vec::new() }
}

/// The next read finds these items.
pub(super) fn read(shard: &mut OwnedShard, items: Vec<FoundItem>) {
    shard.begin_change(1).unwrap();
    assert!(shard.change_read(1, Some(items)).is_empty());
}

/// The states of items that a batch changed.
pub(super) fn states(committed: &CommittedBatch) -> Vec<ItemState> {
    let states = committed.done.iter().filter_map(|planned| match planned {
        PlannedAction::Change(change) => Some(change.state),
        _ => None,
    });
    states.collect()
}

pub(super) fn refusals(built: &BuiltBatch) -> Vec<&Refusal> {
    built.not_changed.iter().map(|(_, told)| told.as_ref().unwrap_err()).collect()
}

pub(super) fn reasons(built: &BuiltBatch) -> Vec<Reason> {
    refusals(built).into_iter().map(|refusal| refusal.reason).collect()
}

#[test]
fn items_in_any_state_are_cancelled_and_counted_in_one_batch() {
    let mut shard = shard();
    let dies = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, dies, NackAction::DeadLetter);
    run(&mut shard, 1);
    let receipt = store_leased(&mut shard, 2, items(1))[0];
    let ready = store(&mut shard, 3, items(2));
    let later = store(&mut shard, 4, vec![item_due(9_000)])[0];
    let leased = Key { seq: receipt.item.seq, ..ready[0] };
    let died = Key { seq: dies.item.seq, ..ready[0] };
    for key in [ready[0], later, leased, died] {
        ask(&mut shard, key.seq.0, key.seq).unwrap();
    }
    let places = [Place::Ready, Place::Scheduled, Place::Ready, dead()];
    let all = [ready[0], later, leased, died].into_iter().zip(places);
    read(&mut shard, all.map(|(key, place)| found(key, place)).collect());
    let (batch, committed) = run(&mut shard, 5);
    let cancelled = (batch.cancels.len(), batch.dead_letter_cancels.len(), batch.schedule_deletes.len());
    assert_eq!(cancelled, (3, 1, 1));
    let expected = [ItemState::Ready, ItemState::Scheduled, ItemState::Leased, ItemState::Dead];
    assert_eq!(states(&committed), expected);
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((1, 0, 0), 1));
    assert!(!shard.is_leased(receipt.item.seq) && shard.is_idle());
    ack(&mut shard, receipt);
    assert_eq!(build(&mut shard, 6).stale.len(), 1, "its receipt is over");
}

#[test]
fn nobody_learns_of_an_item_of_another_tenant() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    shard.ask_change(cancel("other", 1, key.seq)).unwrap();
    ask(&mut shard, 2, Seq(99)).unwrap();
    read(&mut shard, vec![found(key, Place::Ready)]);
    let built = build(&mut shard, 1);
    assert_eq!(reasons(&built), [Reason::ItemNotFound; 2]);
    let texts: Vec<&str> = refusals(&built).into_iter().map(|refusal| &*refusal.message).collect();
    assert_eq!(texts, [format!("there is no item 1-{}", key.seq.0), "there is no item 1-99".to_owned()]);
    assert!(built.batch.is_none() && shard.is_idle() && window_len(&shard, T) == 1);
}

#[test]
fn an_item_that_changed_since_it_was_read_is_read_again() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    ask(&mut shard, 1, keys[0].seq).unwrap();
    assert_eq!(shard.begin_change(7).unwrap(), [keys[0].seq]);
    // It is leased and acked before the read ends.
    let receipt = lease(&mut shard, 1, 1)[0];
    ack(&mut shard, receipt);
    run(&mut shard, 2);
    shard.change_read(7, Some(vec![found(keys[0], Place::Ready)]));
    assert!(build(&mut shard, 3).batch.is_none(), "nothing is known of it");
    assert_eq!(shard.begin_change(8).unwrap(), [keys[0].seq]);
    shard.change_read(8, Some(Vec::new()));
    assert_eq!(reasons(&build(&mut shard, 4)), [Reason::ItemNotFound]);
}

#[test]
fn an_item_on_its_way_to_a_lease_is_read_again() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    ask(&mut shard, 1, key.seq).unwrap();
    read(&mut shard, vec![found(key, Place::Ready)]);
    let receipt = lease(&mut shard, 1, 1)[0];
    assert!(shard.is_leased(receipt.item.seq), "the batch deals with it already");
    read(&mut shard, vec![found(key, Place::Ready)]);
    assert_eq!(states(&run(&mut shard, 2).1), [ItemState::Leased]);
    assert!(!shard.is_leased(receipt.item.seq));
}

#[test]
fn a_batch_that_did_not_happen_changes_nothing_and_is_read_again() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    let receipt = lease(&mut shard, 0, 1)[0];
    keys.iter().for_each(|key| ask(&mut shard, key.seq.0, key.seq).unwrap());
    let both = || keys.iter().map(|key| found(*key, Place::Ready)).collect::<Vec<_>>();
    read(&mut shard, both());
    assert_eq!(build(&mut shard, 1).batch.unwrap().cancels.len(), 2);
    assert_eq!(window_len(&shard, T), 0, "nobody takes it meanwhile");
    shard.disk_full(at(1)).unwrap();
    assert!(shard.is_leased(receipt.item.seq) && window_len(&shard, T) == 1 && !shard.is_idle());
    read(&mut shard, both());
    assert_eq!(states(&run(&mut shard, 500).1), [ItemState::Leased, ItemState::Ready]);
    assert_eq!((counts(&shard, T), shard.is_idle()), ((0, 0, 0), true));
}

#[test]
fn a_change_that_the_database_refuses_is_alone_then() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(4));
    keys.iter().for_each(|key| ask(&mut shard, key.seq.0, key.seq).unwrap());
    let bad = keys[2].seq;
    let mut refused = Vec::new();
    for ms in 1..20 {
        let Some(seqs) = shard.begin_change(1) else { break };
        let some = keys.iter().filter(|key| seqs.contains(&key.seq));
        shard.change_read(1, Some(some.map(|key| found(*key, Place::Ready)).collect()));
        while let Some(batch) = build(&mut shard, ms).batch {
            match batch.cancels.contains(&bad) {
                true => refused.extend(shard.unstorable("bad", &[], at(ms)).unwrap().refused),
                false => drop(commit(&mut shard, ms)),
            }
        }
    }
    assert!(matches!(&refused[..], [PlannedAction::Change(change)] if change.request.seq == bad));
    assert_eq!((counts(&shard, T), window_len(&shard, T), shard.is_idle()), ((1, 0, 0), 1, true));
}

#[test]
fn a_second_change_of_an_item_waits_for_the_first() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    (1..3).for_each(|call| ask(&mut shard, call, key.seq).unwrap());
    read(&mut shard, vec![found(key, Place::Ready)]);
    assert_eq!(states(&run(&mut shard, 1).1), [ItemState::Ready]);
    read(&mut shard, Vec::new());
    assert_eq!(reasons(&build(&mut shard, 2)), [Reason::ItemNotFound]);
}

#[test]
fn so_many_changes_of_a_tenant_wait_and_others_have_their_turn() {
    let mut shard = shard();
    (0..4_000).for_each(|seq| ask(&mut shard, 1, Seq(seq)).unwrap());
    assert_eq!(ask(&mut shard, 1, Seq(1)), Err(Reason::Overloaded));
    shard.ask_change(cancel("other", 2, Seq(7_000))).unwrap();
    let seqs = shard.begin_change(1).unwrap();
    assert!(seqs.len() == 200 && seqs.contains(&Seq(7_000)), "nobody waits behind all of another's");
    assert!(shard.begin_change(2).is_none(), "one read at a time");
    let failed = shard.change_read(1, None);
    assert_eq!(failed.len(), 200, "a read that failed is for those to know who asked");
}

#[test]
fn changes_of_a_tenant_wait_with_so_many_bytes() {
    let mut shard = shard();
    let update = |namespace: &str, seq: u64| {
        let metadata = Some(vec![7; 60_000].into());
        let change = ItemChange::Update(ItemUpdate { metadata, ..ItemUpdate::default() });
        ChangeRequest { change, ..cancel(namespace, 1, Seq(seq)) }
    };
    let taken = (0..200).take_while(|seq| shard.ask_change(update("ns", *seq)).is_ok()).count();
    assert_eq!(taken, (4 << 20) / 60_256);
    assert_eq!(shard.ask_change(update("ns", 500)).unwrap_err().1.reason, Reason::Overloaded);
    let others = (0..999).take_while(|at| shard.ask_change(update(&format!("o{}", at / 50), *at)).is_ok());
    assert_eq!(taken + others.count(), (16 << 20) / 60_256);
}

#[test]
fn a_dry_run_says_where_items_are_and_leaves_them() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    lease(&mut shard, 1, 1);
    for key in &keys {
        shard.ask_change(ChangeRequest { dry_run: true, ..cancel("ns", 1, key.seq) }).unwrap();
    }
    read(&mut shard, keys.iter().map(|key| found(*key, Place::Ready)).collect());
    let built = build(&mut shard, 2);
    let told: Vec<_> = built.not_changed.iter().map(|(_, told)| told.clone().unwrap()).collect();
    assert_eq!(told, [ItemState::Leased, ItemState::Ready]);
    assert!(built.batch.is_none() && shard.is_idle());
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((2, 0, 0), 1));
}
