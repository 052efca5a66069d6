//! Every item that came in is there or has left, whichever way it left.

use forebay_store::{NamespaceTally, OperationKind, OperationSpec, Tally, TopicTally};

use super::{
    changes,
    operations::{self, begin, spec},
    retention::{self, die},
    sweep::{due, expiry_page},
    *,
};
use crate::shard::{commit::disk_room::Need, work::Place};

fn tally(shard: &OwnedShard, topic: TopicId) -> Tally {
    shard.contents.topics.get(topic).unwrap().tally().unwrap().tally
}

/// Checks that all items that came in and did not leave are there. Returns how many expired, and how many
/// were removed.
#[track_caller]
fn gone(shard: &OwnedShard) -> (i64, i64) {
    for topic in (1..9).map(TopicId).filter(|topic| shard.contents.topics.get(*topic).is_some()) {
        let (ready, scheduled, dead) = counts(shard, topic);
        assert_eq!(tally(shard, topic).present(), ready + scheduled + dead, "{topic:?}");
    }
    (tally(shard, T).expired, tally(shard, T).removed)
}

#[test]
fn items_that_expire_while_they_wait_are_counted() {
    let mut shard = shard();
    let ready = store(&mut shard, 0, vec![item_expiring(40), item(0)])[0];
    let attributes = ItemAttributes { expires_at: Some(time(45)), ..attributes() };
    let later = store(&mut shard, 1, vec![AdmittedItem { attributes, ..item_due(44) }])[0];
    expiry_page(&mut shard, 50, vec![due(40, ready, false), due(45, later, true)]);
    run(&mut shard, 50);
    assert_eq!(gone(&shard), (2, 0));
    assert_eq!(tally(&shard, T), Tally { enqueued: 3, expired: 2, ..Tally::default() });
}

#[test]
fn an_item_that_expires_while_it_is_leased_is_counted_when_its_delivery_ends() {
    let ends: [fn(&mut OwnedShard, Receipt); 4] = [
        |shard, receipt| nack(shard, receipt, NackAction::Fail(None)),
        |shard, receipt| nack(shard, receipt, NackAction::DeadLetter),
        |shard, receipt| nack(shard, receipt, NackAction::Release(Duration::ZERO)),
        // Its lease runs out.
        |_, _| {},
    ];
    for end in ends {
        let mut shard = shard();
        let receipt = store_leased(&mut shard, 0, vec![item_expiring(40)])[0];
        let key = Key { priority: 0, rank: 0, seq: receipt.item.seq };
        expiry_page(&mut shard, 50, vec![due(40, key, false)]);
        run(&mut shard, 50);
        assert_eq!(gone(&shard), (0, 0), "it is there while it is leased");
        end(&mut shard, receipt);
        run(&mut shard, 1_000);
        assert_eq!(gone(&shard), (1, 0));
    }
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(40)])[0];
    ack(&mut shard, receipt);
    run(&mut shard, 50);
    assert_eq!((gone(&shard), tally(&shard, T).acked), ((0, 0), 1), "an ack is an ack");
}

#[test]
fn what_callers_cancel_is_counted_as_removed() {
    let mut shard = shard();
    let (died, _) = die(&mut shard, 0);
    let leased = store_leased(&mut shard, 2, items(1))[0].item.seq;
    let ready = store(&mut shard, 3, items(1))[0];
    let later = store(&mut shard, 4, vec![item_due(9_000)])[0];
    let place = |seq: Seq| match seq {
        _ if seq == died => changes::dead(),
        _ if seq == later.seq => Place::Scheduled,
        _ => Place::Ready,
    };
    let seqs = [died, leased, ready.seq, later.seq];
    seqs.iter().for_each(|seq| changes::ask(&mut shard, seq.0, *seq).unwrap());
    let found = seqs.map(|seq| changes::found(Key { seq, ..ready }, place(seq)));
    changes::read(&mut shard, found.into());
    run(&mut shard, 5);
    assert_eq!((gone(&shard), counts(&shard, T)), ((0, 4), (0, 0, 0)));
}

#[test]
fn what_operations_take_away_is_counted_as_removed() {
    let mut shard = shard();
    let keys = store(&mut shard, 2, items(3));
    let purge = OperationSpec { leased: true, ..spec(1, OperationKind::Purge) };
    begin(&mut shard, 3, purge);
    lease(&mut shard, 3, 1);
    operations::read(&mut shard, 4, operations::ready(&keys));
    run(&mut shard, 4);
    assert_eq!((gone(&shard), counts(&shard, T)), ((0, 3), (0, 0, 0)));
}

#[test]
fn dead_letters_that_operations_delete_are_counted_as_removed() {
    let mut shard = shard();
    let (one, two) = (die(&mut shard, 0).0, die(&mut shard, 1).0);
    begin(&mut shard, 2, spec(1, OperationKind::DeleteDead));
    operations::read(&mut shard, 3, operations::dead(&[one, two]));
    run(&mut shard, 3);
    assert_eq!((gone(&shard), counts(&shard, T)), ((0, 2), (0, 0, 0)));
}

#[test]
fn a_dead_letter_that_goes_to_another_topic_leaves_this_one() {
    let mut shard = shard();
    let (one, two) = (die(&mut shard, 0).0, die(&mut shard, 1).0);
    begin(&mut shard, 2, spec(1, OperationKind::Redrive));
    operations::read(&mut shard, 3, operations::dead(&[one]));
    run(&mut shard, 3);
    assert_eq!((gone(&shard), tally(&shard, T).enqueued), ((0, 0), 2), "it stays in its topic");
    begin(&mut shard, 4, OperationSpec { to_topic: "u".into(), ..spec(2, OperationKind::Redrive) });
    operations::read(&mut shard, 5, operations::dead(&[two]));
    run(&mut shard, 5);
    let other = Tally { enqueued: 1, ..Tally::default() };
    assert_eq!((gone(&shard), tally(&shard, TopicId(2))), ((0, 1), other));
}

#[test]
fn a_dead_letter_that_was_kept_for_long_enough_is_counted_as_removed() {
    let mut shard =
        loaded(Settings { idle_topic: Duration::MAX, ..retention::settings() }, ShardSnapshot::default());
    let (seq, _) = die(&mut shard, 0);
    retention::found(&mut shard, 100, T, &[(seq, 100, 0)]);
    run(&mut shard, 100);
    assert_eq!(gone(&shard), (0, 1));
}

/// A shard whose only topic is forgotten, with two dead letters.
fn with_dormant() -> (OwnedShard, [Seq; 2], NamespaceTally) {
    let mut shard = loaded(retention::settings(), ShardSnapshot::default());
    let seqs = [die(&mut shard, 0).0, die(&mut shard, 0).0];
    let row = run(&mut shard, 10).0.namespace_tallies.remove(0);
    assert_eq!(row.tally.unwrap().tally.present(), 2);
    (shard, seqs, row)
}

#[test]
fn the_dead_letters_of_a_forgotten_topic_are_counted_by_its_namespace() {
    let ways: [fn(&mut OwnedShard, Seq); 3] = [
        |shard, seq| retention::found(shard, 100, T, &[(seq, 100, 0)]),
        |shard, seq| {
            changes::ask(shard, 1, seq).unwrap();
            changes::read(shard, vec![changes::found(Key { priority: 0, rank: 0, seq }, changes::dead())]);
        },
        |shard, seq| {
            begin(shard, 100, spec(1, OperationKind::DeleteDead));
            operations::read(shard, 100, operations::dead(&[seq]));
        },
    ];
    for way in ways {
        let (mut shard, [seq, _], before) = with_dormant();
        way(&mut shard, seq);
        let (batch, _) = run(&mut shard, 100);
        assert_eq!((batch.dormant_losses.len(), batch.tallies.len()), (1, 0));
        let after = batch.namespace_tallies[0].tally.unwrap();
        let TopicTally { since, tally } = before.tally.unwrap();
        assert_eq!(after, TopicTally { since, tally: Tally { removed: 1, ..tally } });
        assert_eq!(shard.contents.topics.forgotten.rows[&before.namespace].tally, Some(after));
    }
}

#[test]
fn the_dead_letter_of_a_forgotten_topic_that_is_an_item_again_is_one_of_a_new_topic() {
    let (mut shard, [seq, _], _) = with_dormant();
    begin(&mut shard, 100, spec(1, OperationKind::Redrive));
    operations::read(&mut shard, 100, operations::dead(&[seq]));
    let (batch, _) = run(&mut shard, 100);
    assert_eq!(batch.namespace_tallies[0].tally.unwrap().tally.removed, 1);
    assert_eq!(tally(&shard, TopicId(2)), Tally { enqueued: 1, ..Tally::default() });
}

#[test]
fn what_a_namespace_counted_before_it_was_deleted_is_not_taken_away_from() {
    let (mut shard, [seq, _], row) = with_dormant();
    shard.contents.topics.forgotten.load(vec![NamespaceTally { deleted_through: T, ..row }]);
    retention::found(&mut shard, 100, T, &[(seq, 100, 0)]);
    assert!(run(&mut shard, 100).0.namespace_tallies.is_empty());
    let (mut shard, [seq, _], row) = with_dormant();
    shard.contents.topics.forgotten.rows.remove(&row.namespace);
    retention::found(&mut shard, 100, T, &[(seq, 100, 0)]);
    assert!(run(&mut shard, 100).0.namespace_tallies.is_empty(), "nothing is counted of it");
}

#[test]
fn on_a_full_disk_a_dead_letter_of_a_forgotten_topic_goes_and_is_counted() {
    let (mut shard, [seq, _], _) = with_dormant();
    shard.commit.disk.full(Need::Rows, at(100));
    retention::found(&mut shard, 100, T, &[(seq, 100, 0)]);
    let batch = build(&mut shard, 100).batch.unwrap();
    assert_eq!((batch.dead_letter_deletes, batch.namespace_tallies.len()), (vec![seq], 1));
    assert_eq!(shard.commit.in_flight.as_ref().unwrap().need, Need::Nothing);
}

#[test]
fn no_dead_letter_goes_before_the_counts_of_namespaces_are_read() {
    let (mut shard, [seq, _], _) = with_dormant();
    shard.order(operations::request(spec(1, OperationKind::DeleteDead))).unwrap();
    run(&mut shard, 20);
    shard.contents.topics.tally_load.begin(false);
    changes::ask(&mut shard, 1, seq).unwrap();
    assert!(shard.begin_change(1).is_none() && shard.begin_operation(1, moment(100)).is_none());
    let mut scans = Vec::new();
    while let Some(scan) = shard.begin_scan(1, moment(100)) {
        scans.push(scan.sweep);
        shard.scanned(scan.sweep, 1, Vec::new(), None);
    }
    assert_eq!(scans, [Sweep::Due, Sweep::Expiry]);
    // Nothing wakes for what must wait.
    shard.begin_tallies(1, at(100)).unwrap();
    assert!(shard.upkeep.sweeps.next_wake(moment(100), shard.sweeps_due()).is_none());
    shard.tallies_read(1, Some(TallyRows::Namespaces(Vec::new())), at(100));
    assert!(shard.begin_change(1).is_some() && shard.begin_operation(1, moment(100)).is_some());
    assert_eq!(shard.begin_scan(1, moment(100)).unwrap().sweep, Sweep::Retention);
}
