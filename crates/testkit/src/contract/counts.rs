//! Topics and their counts.

use forebay_store::{HighWaterMarks, NamespaceTally, Tally, TopicCounts, TopicRow, TopicTally};
use forebay_types::{Seq, Timestamp, TopicId, TopicName};

use super::{
    Subject,
    bench::{Bench, topic},
};

const fn counts(ready: i64, scheduled: i64, dead: i64) -> TopicCounts {
    TopicCounts { ready, scheduled, dead }
}

fn with(id: u32, counts: TopicCounts) -> TopicRow {
    TopicRow { counts, ..topic(id) }
}

/// Deltas count from the batch that creates the topic.
pub async fn deltas_add_up(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend([topic(1), topic(2)]);
            batch.count_deltas.extend([(TopicId(1), counts(5, 2, 0)), (TopicId(2), counts(0, 0, 1))]);
        })
        .await;
    bench.owner.commit(|batch| batch.count_deltas.push((TopicId(1), counts(-2, -2, 7)))).await;
    assert_eq!(bench.owner.load().await.topics, [with(1, counts(3, 0, 7)), with(2, counts(0, 0, 1))]);
    let bench = bench.succeed().await;
    assert_eq!(bench.owner.load().await.topics, [with(1, counts(3, 0, 7)), with(2, counts(0, 0, 1))]);
}

/// Tallies of items are kept by batch, and folded with the counts. A tally counts from its first batch on.
pub async fn tallies_add_up_and_are_folded(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let one = |acked, failed| Tally { enqueued: 3, acked, failed, ..Tally::default() };
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let marks = |seconds| HighWaterMarks { seq: Seq(0), topic: TopicId(2), rank: 0, time: at(seconds) };
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(7));
            batch.new_topics.extend([topic(1), topic(2)]);
            batch.count_deltas.push((TopicId(1), counts(5, 0, 0)));
            batch.tallies.push((TopicId(1), one(1, 0)));
        })
        .await;
    // Without a change of counts, and with negative numbers, as where at-most-once items return.
    let returned = Tally { consumed: -2, ..one(0, i64::from(u32::MAX)) };
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(8));
            batch.tallies.extend([(TopicId(1), returned), (TopicId(2), one(0, 1))]);
        })
        .await;
    let mut sum = one(1, 0);
    sum += returned;
    let first = TopicTally { since: at(7), tally: sum };
    let second = TopicTally { since: at(8), tally: one(0, 1) };
    let loaded = bench.owner.load().await;
    assert_eq!(loaded.tallies, [(TopicId(1), first), (TopicId(2), second)]);
    assert_eq!(loaded.unfolded, [TopicId(1), TopicId(2)]);
    assert_eq!(loaded.topics, [with(1, counts(5, 0, 0)), with(2, counts(0, 0, 0))]);
    // One topic is folded with its tally, another one, of which nothing is counted, without.
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(3));
            batch
                .folds
                .extend([(TopicId(1), counts(5, 0, 0), Some(first)), (TopicId(3), counts(0, 1, 0), None)]);
        })
        .await;
    bench.owner.commit(|batch| batch.tallies.push((TopicId(1), one(1, 0)))).await;
    bench
        .owner
        .commit(|batch| {
            batch.folds.push((TopicId(2), counts(0, 0, 0), Some(second)));
            batch.drop_deltas = Some(0..3);
        })
        .await;
    let mut first = first;
    first.tally += one(1, 0);
    let bench = bench.succeed().await;
    let loaded = bench.owner.load().await;
    // Tallies that were folded are read later.
    let mut rows = bench.owner.reader.tallies(TopicId(0), 9).await.expect("reads");
    assert_eq!(rows[1..], [(TopicId(2), second)]);
    rows[0].1.tally += loaded.tallies[0].1.tally;
    assert_eq!((rows[0], loaded.tallies.len()), ((TopicId(1), first), 1));
    let page = bench.owner.reader.tallies(TopicId(0), 1).await.expect("reads");
    let behind = bench.owner.reader.tallies(page[0].0, 1).await.expect("reads");
    assert_eq!((page.len(), behind), (1, vec![(TopicId(2), second)]));
    assert_eq!(loaded.unfolded, [TopicId(1)]);
    let topics = [with(1, counts(5, 0, 0)), with(2, counts(0, 0, 0)), with(3, counts(0, 1, 0))];
    assert_eq!(loaded.topics, topics);
}

/// A fold includes the deltas up to its batch, deleted or not. Later deltas are added, and their topics are
/// named.
pub async fn a_fold_replaces_the_deltas(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend([topic(1), topic(2)]);
            batch.count_deltas.extend([(TopicId(1), counts(5, 0, 0)), (TopicId(2), counts(6, 0, 0))]);
        })
        .await;
    // The fold has the counts as of its batch, including the batch's own delta.
    bench
        .owner
        .commit(|batch| {
            batch.count_deltas.extend([(TopicId(1), counts(1, 0, 0)), (TopicId(2), counts(1, 0, 0))]);
            batch.folds.push((TopicId(1), counts(6, 0, 0), None));
        })
        .await;
    let loaded = bench.owner.load().await;
    assert_eq!(loaded.topics, [with(1, counts(6, 0, 0)), with(2, counts(7, 0, 0))]);
    assert_eq!(loaded.unfolded, [TopicId(2)]);
    bench
        .owner
        .commit(|batch| {
            batch.count_deltas.push((TopicId(1), counts(-6, 3, 0)));
            batch.folds.push((TopicId(2), counts(7, 0, 0), None));
            batch.drop_deltas = Some(1..3);
        })
        .await;
    let loaded = bench.owner.load().await;
    assert_eq!(loaded.topics, [with(1, counts(0, 3, 0)), with(2, counts(7, 0, 0))]);
    assert_eq!(loaded.unfolded, [TopicId(1)]);
    assert_eq!(loaded.deltas_from, 3);
    bench
        .owner
        .commit(|batch| {
            batch.folds.push((TopicId(1), counts(0, 3, 0), None));
            batch.drop_deltas = Some(3..4);
        })
        .await;
    assert_eq!(bench.owner.load().await.deltas_from, 4, "the last fold's batch, where no row is left");
}

/// The deltas of a dropped topic are ignored.
pub async fn a_dropped_topic_is_gone(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend([topic(1), topic(2)]);
            batch.count_deltas.push((TopicId(1), counts(5, 0, 0)));
        })
        .await;
    bench
        .owner
        .commit(|batch| {
            batch.count_deltas.push((TopicId(1), counts(-5, 0, 0)));
            batch.drop_topics.push(TopicId(1));
        })
        .await;
    assert_eq!(bench.owner.load().await.topics, [topic(2)]);
    // A new topic may have the same name and another number.
    let again = TopicRow { id: TopicId(3), ..topic(1) };
    bench.owner.commit(|batch| batch.new_topics.push(again.clone())).await;
    assert_eq!(bench.owner.load().await.topics, [topic(2), again]);
}

/// With the longest names and the largest numbers.
pub async fn many_topics_are_folded(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let long = "n".repeat(200);
    let mut topics: Vec<TopicRow> = (1..=300).map(topic).collect();
    let name = TopicName::new(long.as_str(), long.replace('n', "A-Z.:/_"[..1].as_ref()));
    topics.push(TopicRow { id: TopicId(u32::MAX), name, counts: counts(0, 0, 0) });
    bench.owner.commit(|batch| batch.new_topics.clone_from(&topics)).await;
    for topic in &mut topics {
        topic.counts = counts(i64::from(topic.id.0), 1 << 40, i64::from(topic.id.0 % 7));
    }
    bench
        .owner
        .commit(|batch| batch.folds.extend(topics.iter().rev().map(|topic| (topic.id, topic.counts, None))))
        .await;
    let mut read = bench.owner.load().await.topics;
    read.sort_by_key(|topic| topic.id);
    assert_eq!(read, topics);
}

/// Tallies of forgotten topics are kept by namespace, and read in pages.
pub async fn namespaces_keep_what_topics_counted(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let row = |namespace: &str, enqueued| {
        let tally = Tally { enqueued, consumed: -1, ..Tally::default() };
        NamespaceTally {
            namespace: namespace.into(),
            tally: Some(TopicTally { since: Timestamp::from_micros(7), tally }),
            deleted_through: TopicId(0),
            changed_in: 3,
        }
    };
    let names = ["a", "a-b", "b", "B"];
    bench.owner.commit(|batch| batch.namespace_tallies.extend(names.map(|name| row(name, 1)))).await;
    // A row is replaced, without a tally too, and others go. One that is not there is no error.
    let anew = NamespaceTally { tally: None, deleted_through: TopicId(u32::MAX), ..row("a-b", 0) };
    bench
        .owner
        .commit(|batch| {
            batch.namespace_tallies.extend([row("B", i64::MAX), anew.clone()]);
            batch.namespace_tally_deletes.extend(["a".into(), "none".into()]);
        })
        .await;
    let bench = bench.succeed().await;
    let reader = &bench.owner.reader;
    let rows = [row("B", i64::MAX), anew, row("b", 1)];
    assert_eq!(reader.namespace_tallies("", 9).await.expect("reads"), rows);
    assert_eq!(reader.namespace_tallies("B", 1).await.expect("reads"), rows[1..2]);
    assert_eq!(reader.namespace_tallies("b", 9).await.expect("reads"), []);
}

/// A row with dead letters alone is a dormant topic's, unless it has a tally: then memory has the topic.
pub async fn a_topic_with_a_tally_is_not_dormant(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let tally =
        TopicTally { since: Timestamp::from_micros(7), tally: Tally { failed: 1, ..Tally::default() } };
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend([topic(1), topic(2)]);
            batch.count_deltas.extend([(TopicId(1), counts(0, 0, 1)), (TopicId(2), counts(0, 0, 2))]);
            batch.tallies.push((TopicId(1), tally.tally));
        })
        .await;
    bench
        .owner
        .commit(|batch| {
            let folds = [(TopicId(1), counts(0, 0, 1), Some(tally)), (TopicId(2), counts(0, 0, 2), None)];
            batch.folds.extend(folds);
            batch.drop_deltas = Some(0..batch.number);
        })
        .await;
    let bench = bench.succeed().await;
    let loaded = bench.owner.load().await;
    assert_eq!((loaded.topics, loaded.dormant_dead), (vec![with(1, counts(0, 0, 1))], 2));
    assert_eq!(bench.owner.reader.tallies(TopicId(0), 9).await.expect("reads"), [(TopicId(1), tally)]);
}
