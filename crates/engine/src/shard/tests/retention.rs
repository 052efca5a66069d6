//! Dead letters: when they are deleted, and topics that have nothing else.

use super::{counts::folded, *};
use crate::api::NackAction::DeadLetter;

/// Dead letters are kept for 100 ms, and a topic without items for 10 ms.
pub(super) fn settings() -> Settings {
    Settings {
        dead_letter_retention: Duration::from_millis(100),
        idle_topic: Duration::from_millis(10),
        ..Settings::default()
    }
}

fn dead(dead: i64) -> TopicCounts {
    TopicCounts { dead, ..TopicCounts::default() }
}

/// An item of the topic `t` dies now. Returns the batch.
pub(super) fn die(shard: &mut OwnedShard, ms: u64) -> (Seq, Batch) {
    let receipt = store_leased(shard, ms, items(1))[0];
    nack(shard, receipt, DeadLetter);
    (receipt.item.seq, run(shard, ms).0)
}

/// The sweep finds these dead letters of a topic: their ends, and when they died.
pub(super) fn found(shard: &mut OwnedShard, ms: u64, topic: TopicId, letters: &[(Seq, u64, u64)]) {
    let row = |&(seq, end, died): &(Seq, u64, u64)| {
        let item = DueItem::DeadLetter { name: TopicName::new("ns", "t"), died_at: time(died) };
        DueRow { at: time(end), seq, topic, item }
    };
    let rows: Vec<DueRow> = letters.iter().map(row).collect();
    loop {
        let scan = shard.begin_scan(1, moment(ms)).unwrap();
        if scan.sweep == Sweep::Retention {
            return shard.scanned(scan.sweep, 1, rows, None);
        }
        shard.scanned(scan.sweep, 1, Vec::new(), None);
    }
}

#[test]
fn a_dead_letter_ends_with_the_retention_of_its_namespace() {
    for (own, end) in [(None, time(110)), (Some(30), time(40)), (Some(0), Timestamp::MAX)] {
        let own = own.map(|ms| ("ns".to_owned(), Duration::from_millis(ms)));
        let others = ("other".to_owned(), Duration::from_millis(1));
        let retentions = own.into_iter().chain([others]).collect();
        let settings = Settings { dead_letter_retentions: retentions, ..settings() };
        let mut shard = loaded(settings, ShardSnapshot::default());
        assert_eq!(die(&mut shard, 10).1.dead_letters[0].expires_at, end);
    }
}

#[test]
fn a_dead_letter_is_deleted_when_its_retention_is_over() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    sweep_all(&mut shard, 0);
    let (seq, _) = die(&mut shard, 0);
    assert!(shard.begin_scan(1, moment(99)).is_none(), "nothing is looked for before");
    found(&mut shard, 100, T, &[(seq, 100, 0)]);
    let (batch, committed) = run(&mut shard, 100);
    assert_eq!((batch.dead_letter_deletes, batch.count_deltas), (vec![seq], vec![(T, dead(-1))]));
    assert!(batch.dead_letter_keeps.is_empty() && batch.dormant_losses.is_empty());
    assert_eq!((committed.dead_letters_deleted, counts(&shard, T)), (1, (0, 0, 0)));
}

#[test]
fn a_longer_retention_keeps_the_dead_letters_that_are_there() {
    for (retention, end) in [(150, time(150)), (0, Timestamp::MAX)] {
        let retention = Duration::from_millis(retention);
        let settings = Settings { dead_letter_retention: retention, ..settings() };
        let mut shard = loaded(settings, ShardSnapshot::default());
        let (seq, _) = die(&mut shard, 0);
        // It died under another configuration.
        found(&mut shard, 100, T, &[(seq, 100, 0)]);
        let (batch, committed) = run(&mut shard, 100);
        assert_eq!((batch.dead_letter_keeps, batch.dead_letter_deletes.len()), (vec![(seq, end)], 0));
        assert_eq!((committed.dead_letters_deleted, shard.status().dead), (0, 1));
        if end < Timestamp::MAX {
            found(&mut shard, 150, T, &[(seq, 150, 0)]);
            assert_eq!(run(&mut shard, 150).0.dead_letter_deletes, [seq]);
        }
    }
}

#[test]
fn a_shorter_retention_counts_for_those_to_come() {
    let settings = Settings { dead_letter_retention: Duration::from_millis(5), ..settings() };
    let mut shard = loaded(settings, ShardSnapshot::default());
    let (seq, _) = die(&mut shard, 0);
    found(&mut shard, 100, T, &[(seq, 100, 0)]);
    assert_eq!(run(&mut shard, 100).0.dead_letter_deletes, [seq]);
}

#[test]
fn a_dead_letter_whose_longer_retention_is_over_too_is_deleted() {
    let settings = Settings { dead_letter_retention: Duration::from_millis(120), ..settings() };
    let mut shard = loaded(settings, ShardSnapshot::default());
    let (seq, _) = die(&mut shard, 0);
    found(&mut shard, 130, T, &[(seq, 100, 0)]);
    assert_eq!(run(&mut shard, 130).0.dead_letter_deletes, [seq]);
}

#[test]
fn on_a_full_disk_dead_letters_are_deleted_and_none_is_kept_for_longer() {
    let settings = Settings { dead_letter_retention: Duration::from_millis(150), ..settings() };
    let mut shard = loaded(settings, ShardSnapshot::default());
    let ((one, _), (two, _)) = (die(&mut shard, 0), die(&mut shard, 0));
    ask_lease_of_new(&mut shard);
    build(&mut shard, 100).batch.unwrap();
    shard.disk_full(at(100)).unwrap();
    found(&mut shard, 150, T, &[(one, 140, 10), (two, 150, 0)]);
    let (batch, _) = run(&mut shard, 150);
    assert_eq!((batch.dead_letter_deletes, batch.dead_letter_keeps.len()), (vec![two], 0));
    assert_eq!(batch.checkpoints[0].at, time(140), "the other one is looked at again");
}

/// A lease that needs room on the disk waits for a batch.
fn ask_lease_of_new(shard: &mut OwnedShard) {
    store(shard, 0, items(1));
    ask_lease(shard, 1);
}

#[test]
fn a_topic_with_dead_letters_alone_leaves_memory_and_keeps_its_row() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    die(&mut shard, 0);
    assert!(build(&mut shard, 9).batch.is_none());
    let (batch, committed) = run(&mut shard, 10);
    assert_eq!((batch.drop_topics.len(), folded(&batch)), (0, vec![(T, dead(1))]));
    assert_eq!(committed.dropped.len(), 1, "the node's directory forgets it too");
    assert_eq!((shard.contents.topics.len(), shard.status().dead), (0, 1), "its dead letters still count");
    shard.contents.topics.check().unwrap();
}

#[test]
fn the_counts_of_a_dormant_topic_are_written_once() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    die(&mut shard, 0);
    // The next batch would fold its counts too.
    shard.tenure.batch += 300;
    let (batch, _) = run(&mut shard, 10);
    assert_eq!((folded(&batch), batch.drop_deltas.is_some()), (vec![(T, dead(1))], true));
}

#[test]
fn a_new_item_makes_a_new_topic_of_a_dormant_one() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    die(&mut shard, 0);
    run(&mut shard, 10);
    put(&mut shard, part(1, items(1)));
    let (batch, _) = run(&mut shard, 20);
    assert_eq!((batch.new_topics[0].id, &*batch.new_topics[0].name.topic), (TopicId(2), "t"));
    assert_eq!((shard.contents.topics.len(), shard.status().dead), (1, 1));
}

#[test]
fn the_dead_letters_of_a_dormant_topic_are_subtracted_from_its_row() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    let ((one, _), (two, _)) = (die(&mut shard, 0), die(&mut shard, 0));
    run(&mut shard, 10);
    found(&mut shard, 100, T, &[(one, 100, 0), (two, 100, 0)]);
    let (batch, committed) = run(&mut shard, 100);
    assert_eq!((batch.dormant_losses, batch.count_deltas.len()), (vec![(T, 2)], 0));
    assert_eq!((committed.dead_letters_deleted, shard.status().dead), (2, 0));
}

#[test]
fn a_batch_that_did_not_happen_forgets_no_topic() {
    let mut shard = loaded(settings(), ShardSnapshot::default());
    die(&mut shard, 0);
    assert_eq!(build(&mut shard, 10).batch.unwrap().folds.len(), 1);
    shard.unstorable("too long", &[], at(10)).unwrap();
    assert_eq!((shard.contents.topics.len(), shard.status().dead), (1, 1));
    assert!(build(&mut shard, 10).batch.is_none(), "it is left out for a while");
    shard.upkeep.not_before = at(0); // the pause is over
    run(&mut shard, 10);
    assert_eq!((shard.contents.topics.len(), shard.status().dead), (0, 1));
}

#[test]
fn the_dead_letters_of_dormant_topics_are_known_after_a_take_over() {
    let topics = vec![TopicRow { id: T, name: TopicName::new("ns", "t"), counts: dead(3) }];
    let snapshot = ShardSnapshot { topics, dormant_dead: 5, ..ShardSnapshot::default() };
    let mut shard = loaded(settings(), snapshot);
    assert_eq!((shard.contents.topics.len(), shard.status().dead), (1, 8));
    found(&mut shard, 100, TopicId(9), &[(Seq(7), 50, 0)]);
    assert_eq!(run(&mut shard, 100).0.dormant_losses, [(TopicId(9), 1)]);
    assert_eq!(shard.status().dead, 7);
}
