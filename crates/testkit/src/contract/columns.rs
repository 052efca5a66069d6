//! Columns that are empty, and columns that hold what no program wrote.

use forebay_store::{
    DeadLetter, DedupeEntry, DueItem, ItemRow, LeaseEntry, LeaseRow, Requeue, Sweep, TopicCounts, TopicRow,
};
use forebay_types::{Body, Failure, Key, Seq, State, Timestamp, TopicId};

use super::{
    Subject,
    bench::{Bench, NOW, TOPIC, at, due_key, entry, expiring, failure, item, marks, scheduled, topic},
};

/// Behind all items.
const LAST: (Timestamp, Seq) = (Timestamp::MAX, Seq(i64::MAX as u64));

fn empty(item: ItemRow) -> ItemRow {
    ItemRow { body: Body::default(), ..item }
}

/// It failed, and nobody said why, nor who it was.
fn silent(attempt: u32) -> Failure {
    Failure { consumer: String::new(), ..failure(attempt, "") }
}

fn letter(seq: u64, died_at: i64) -> DeadLetter {
    DeadLetter {
        seq: Seq(seq),
        deliveries: 1,
        failures: 1,
        reason: "lease ended".to_owned(),
        last_error: String::new(),
        died_at: at(died_at),
        expires_at: at(died_at + 10),
        metadata: Some(Vec::new()),
        failure: silent(1),
    }
}

/// A ready item, a scheduled one, one that expires, and a dead letter: 1 to 4. 5 to 8 are the same.
async fn bench(subject: Subject, change: impl Fn(ItemRow) -> ItemRow) -> Bench {
    let mut bench = Bench::new(subject).await;
    let items = [0, 4].into_iter().flat_map(|before| {
        let expires = expiring(item(before + 3), at(60));
        [item(before + 1), scheduled(before + 2, at(50)), expires, item(before + 4)]
    });
    let items: Vec<ItemRow> = items.map(change).collect();
    let counts = TopicCounts { ready: 4, scheduled: 2, dead: 2 };
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.folds.push((TOPIC, counts, None));
            batch.inserts.extend(items);
        })
        .await;
    bench.owner.commit(|batch| batch.dead_letters.extend([letter(4, 20), letter(8, 30)])).await;
    bench
}

/// Whatever is read of them, by everything that reads.
pub async fn empty_columns_are_read(subject: Subject) {
    let mut bench = bench(subject, empty).await;
    bench.owner.heartbeat.create_generation(1).await.expect("creates");
    let unnamed = LeaseEntry { consumer: String::new(), ..entry(1, at(99)) };
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(9));
            batch.leases = vec![unnamed.clone()];
            batch.dedupes.push(DedupeEntry { generation: 1, hash: [7; 16], answer: Vec::new() });
        })
        .await;
    bench
        .owner
        .commit(|batch| {
            batch.requeues.push(Requeue {
                seq: Seq(5),
                state: State::Ready,
                rank: NOW + 5,
                deliveries: 1,
                failures: 1,
                metadata: Some(Vec::new()),
                failure: Some(silent(1)),
            });
        })
        .await;
    let leases = bench.owner.load().await.leases;
    assert_eq!(leases, [LeaseRow { id: 3, entries: vec![unnamed], open: vec![true] }]);
    let reader = bench.owner.reader.clone();
    assert_eq!(reader.dedupe(&[1], &[[7; 16]]).await.expect("reads")[0].answer, b"");
    assert_eq!(reader.bodies(&[Seq(1)]).await.expect("reads"), [(Seq(1), Body::default())]);
    for seq in 1..=8 {
        for payload_max in [0, 9] {
            let found = reader.items(&[Seq(seq)], payload_max).await.expect("reads");
            let [found] = &found[..] else { panic!("item {seq}: {found:?}") };
            assert_eq!((&*found.payload, &*found.metadata, found.payload_size), (&b""[..], &b""[..], 0));
            assert_eq!((&found.headers, &found.unreadable), (&Vec::new(), &None), "item {seq}");
            let failed = [4, 5, 8].contains(&seq).then(|| silent(1));
            assert_eq!(found.last_failures, failed.into_iter().collect::<Vec<_>>(), "item {seq}");
        }
    }
    let readable = Read::of(&bench).await;
    assert_eq!((readable.items, readable.dead), (8, 2), "an item and a dead letter is read by each list");
    assert_eq!(readable.unreadable, [0; 0]);
    for error_max in [0, 9] {
        let deaths = reader.deaths(TOPIC, LAST, 9, error_max).await.expect("reads");
        assert!(deaths.iter().all(|death| death.last_error.is_empty() && death.cause == "lease ended"));
    }
}

/// One row of each kind can't be read. The others are, and it is said of each list which one it is.
pub async fn a_damaged_row_hides_no_other(subject: Subject) {
    let mut bench = bench(subject, |item| item).await;
    let Some(damage) = bench.subject.damage.take() else {
        // A store of values has no bytes that could be wrong.
        return;
    };
    for seq in 1..=4 {
        damage(Seq(seq)).await;
    }
    let read = Read::of(&bench).await;
    assert_eq!((read.items, read.dead), (8, 2));
    assert_eq!(read.unreadable, [1, 2, 3, 4], "each list names them, and no others");
    let reader = bench.owner.reader.clone();
    let seqs: Vec<Seq> = (1..=9).map(Seq).collect();
    assert_eq!(reader.bodies(&[1, 5].map(Seq)).await.expect("reads").len(), 1, "no body without its headers");
    for found in reader.items(&seqs, 9).await.expect("reads") {
        let seq = found.key.seq.0;
        assert_eq!(found.unreadable.is_some(), seq <= 4, "item {seq}: {found:?}");
        assert_eq!((&*found.payload, &found.topic), (format!("payload {seq}").as_bytes(), &topic(1).name));
    }
    // An operator removes them, and their rows of times with them.
    bench
        .owner
        .commit(|batch| {
            batch.cancels.extend([1, 2, 3].map(Seq));
            batch.dead_letter_cancels.push(Seq(4));
            batch.schedule_deletes.push(due_key(at(50), 2));
        })
        .await;
    let left = Read::of(&bench).await;
    assert_eq!((left.items, left.dead, left.unreadable), (4, 1, Vec::new()));
}

/// Contents of the lists of a shard.
struct Read {
    /// Items and dead letters by their ids.
    items: usize,
    /// Dead letters of the topic.
    dead: usize,
    /// Items that some list said can't be read. Lists that could say so agree.
    unreadable: Vec<u64>,
}

impl Read {
    async fn of(bench: &Bench) -> Self {
        let reader = &bench.owner.reader;
        let seqs: Vec<Seq> = (1..=9).map(Seq).collect();
        let items = reader.items(&seqs, 9).await.expect("reads");
        let mut unreadable: Vec<u64> =
            items.iter().filter(|item| item.unreadable.is_some()).map(|item| item.key.seq.0).collect();
        unreadable.sort_unstable();
        let mut listed: Vec<(u64, bool)> = Vec::new();
        for row in bench.owner.ready(TOPIC).await {
            assert_ne!(row.body.is_some(), row.unreadable, "{row:?}");
            listed.push((row.key.seq.0, row.unreadable));
        }
        for (sweep, name) in [(Sweep::Due, "due"), (Sweep::Expiry, "expiry"), (Sweep::Retention, "retention")]
        {
            let rows = reader.due(sweep, Timestamp::MIN, at(1_000), 10).await.expect(name);
            listed.extend(rows.iter().map(|row| match &row.item {
                DueItem::DeadLetter { .. } => (row.seq.0, unreadable.contains(&row.seq.0)),
                DueItem::Ready(item) | DueItem::Scheduled(item) => (item.key.seq.0, item.unreadable),
            }));
        }
        for state in [State::Ready, State::Scheduled] {
            let rows = reader.walk_items(TOPIC, state, Key::MIN, Seq(99), 10).await.expect("walks");
            listed.extend(rows.iter().map(|row| (row.item.key.seq.0, row.item.unreadable)));
            let keys = reader.keys(TOPIC, state, Key::MIN, 10).await.expect("reads").len();
            assert_eq!(keys, rows.len());
        }
        let name = topic(TOPIC.0).name;
        let from = (TopicId(0), Timestamp::MIN, Seq(0));
        let walked = reader.walk_dead(&name, from, at(1_000), 10).await.expect("walks");
        let rows = reader.dead_rows(TOPIC, LAST, 10).await.expect("reads");
        let dead = reader.dead_letters(TOPIC, LAST, 10).await.expect("reads").len();
        assert_eq!(reader.deaths(TOPIC, LAST, 10, 9).await.expect("reads").len(), dead);
        assert_eq!((walked.len(), rows.len()), (dead, dead));
        let of_dead = walked.iter().chain(&rows).map(|row| (row.item.key.seq.0, row.item.unreadable));
        listed.extend(of_dead);
        for (seq, said) in listed {
            assert_eq!(said, unreadable.contains(&seq), "item {seq}");
        }
        let topics = reader.load(Default::default()).await.expect("loads").topics;
        assert_eq!(topics.iter().map(|row: &TopicRow| row.id).collect::<Vec<_>>(), [TOPIC]);
        Self { items: items.len(), dead, unreadable }
    }
}
