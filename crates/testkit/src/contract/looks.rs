//! Looks of operators at a shard.

use std::ops::Bound;

use forebay_store::{DeadLetter, ItemRow, NameRange, StoredState, TopicCounts, TopicRow};
use forebay_types::{Key, Seq, State, Timestamp, TopicId, TopicName};

use super::{
    Subject,
    bench::{Bench, NOW, TOPIC, at, failure, item, scheduled, topic},
};

/// By namespace and name, in any range, and no more than the limit. A topic that has items is left out.
pub async fn dormant_topics_are_found_by_name(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let names = [("a", "x"), ("a", "y"), ("b", "a"), ("b", "m"), ("b", "z"), ("c", "a"), ("b", "live")];
    let rows: Vec<TopicRow> = (1..)
        .zip(names)
        .map(|(id, (namespace, topic))| {
            let ready = i64::from(topic == "live");
            let counts = TopicCounts { ready, scheduled: 0, dead: i64::from(id) };
            TopicRow { id: TopicId(id), name: TopicName::new(namespace, topic), counts }
        })
        .collect();
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.clone_from(&rows);
            batch.folds.extend(rows.iter().map(|row| (row.id, row.counts, None)));
        })
        .await;
    let name = |(namespace, topic): (&str, &str)| TopicName::new(namespace, topic);
    let ids = async |from, through: Option<(&str, &str)>, limit| {
        let range = NameRange { from, through: through.map(name) };
        let found = bench.owner.reader.dormant_topics(&range, limit).await.expect("reads");
        assert!(found.iter().all(|row| range.contains(&row.name) && row.counts.dead == i64::from(row.id.0)));
        found.iter().map(|row| row.id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids(Bound::Unbounded, None, 10).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(ids(Bound::Unbounded, None, 2).await, [1, 2]);
    assert_eq!(ids(Bound::Unbounded, Some(("b", "m")), 10).await, [1, 2, 3, 4]);
    assert_eq!(ids(Bound::Excluded(name(("a", "x"))), None, 10).await, [2, 3, 4, 5, 6]);
    assert_eq!(ids(Bound::Included(name(("a", "x"))), Some(("c", "a")), 10).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(ids(Bound::Excluded(name(("a", "x"))), Some(("c", "a")), 3).await, [2, 3, 4]);
    assert_eq!(ids(Bound::Included(name(("b", "b"))), Some(("b", "y")), 10).await, [4]);
    assert_eq!(ids(Bound::Excluded(name(("b", "z"))), Some(("b", "zz")), 10).await, [0; 0]);
}

/// Of each topic that has scheduled items.
pub async fn the_first_due_items_of_topics_are_found(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut other = scheduled(3, at(70));
    other.topic = TopicId(77);
    other.key.priority = -9;
    let mut urgent = scheduled(2, at(50));
    urgent.key.priority = -1;
    let items = [scheduled(1, at(30)), urgent, other, item(4)];
    bench.owner.commit(|batch| batch.inserts.extend(items)).await;
    let mut found = bench.owner.reader.first_due(&[TOPIC, TopicId(77), TopicId(5)]).await.expect("reads");
    found.sort_unstable();
    let mut expected = [(TOPIC, at(30)), (TopicId(77), at(70))];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(bench.owner.reader.first_due(&[]).await.expect("reads"), []);
}

/// In their order, of one state, behind a key, and no more than the limit.
pub async fn keys_are_read_in_order(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items = vec![item(1), item(2), item(3), item(4), scheduled(5, at(9)), scheduled(6, at(8))];
    items[1].key.priority = -3;
    items[2].key.rank = items[0].key.rank;
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let seqs = async |state, after, limit| {
        let keys = bench.owner.reader.keys(TOPIC, state, after, limit).await.expect("reads");
        keys.iter().map(|key| key.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(seqs(State::Ready, Key::MIN, 10).await, [2, 1, 3, 4]);
    assert_eq!(seqs(State::Ready, Key::MIN, 2).await, [2, 1]);
    assert_eq!(seqs(State::Ready, items[1].key, 2).await, [1, 3]);
    assert_eq!(seqs(State::Ready, items[0].key, 9).await, [3, 4]);
    assert_eq!(seqs(State::Scheduled, Key::MIN, 9).await, [6, 5]);
    assert_eq!(
        seqs(State::Scheduled, Key { priority: 0, rank: at(8).as_micros(), seq: Seq(6) }, 9).await,
        [5]
    );
    assert_eq!(bench.owner.reader.keys(TopicId(5), State::Ready, Key::MIN, 9).await.expect("reads"), []);
}

/// With all that is stored of them, and as much of their payloads as was asked for.
pub async fn items_are_looked_at(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items = [item(1), scheduled(2, at(30)), item(3)];
    items[0].body.headers = vec![("lang".to_owned(), "de".to_owned())];
    items[0].body.metadata = vec![7, 0].into();
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.inserts.extend(items.clone());
        })
        .await;
    let letter = DeadLetter { deliveries: 4, expires_at: Timestamp::MAX, ..letter(3, 50) };
    bench.owner.commit(|batch| batch.dead_letters.push(letter)).await;
    let seqs = [Seq(1), Seq(2), Seq(3), Seq(4)];
    let whole = ["payload 1", "payload 2", "payload 3"];
    for (payload_max, payloads) in [(0, [""; 3]), (4, ["payl"; 3]), (99, whole)] {
        let mut found = bench.owner.reader.items(&seqs, payload_max).await.expect("reads");
        found.sort_by_key(|item| item.key.seq);
        let shown: Vec<&[u8]> = found.iter().map(|item| &item.payload[..]).collect();
        assert_eq!(shown, payloads.map(str::as_bytes));
        assert!(found.iter().all(|item| item.payload_size == 9 && item.topic == topic(TOPIC.0).name));
        assert_eq!(
            (&found[0].headers, &found[0].metadata),
            (&items[0].body.headers, &items[0].body.metadata)
        );
        assert_eq!((&found[0].state, found[0].key), (&StoredState::Ready, items[0].key));
        assert_eq!((&found[1].state, found[1].key), (&StoredState::Scheduled, items[1].key));
        let StoredState::Dead(death) = &found[2].state else { panic!("{:?}", found[2]) };
        assert_eq!((&*death.reason, &*death.last_error, death.died_at), ("nacked", "no", at(50)));
        assert_eq!((death.kept_until, found[2].attributes.deliveries), (Timestamp::MAX, 4));
    }
}

/// Dead letters of a topic, behind a position, and no more than the limit.
pub async fn dead_letters_are_read_from_the_latest(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items: Vec<ItemRow> = (1..=5).map(item).collect();
    items[4].topic = TopicId(77);
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let odd = DeadLetter { last_error: "größe".to_owned(), ..letter(1, 30) };
    let letters = [odd, letter(2, 10), letter(3, 20), letter(4, 20), letter(5, 15)];
    bench.owner.commit(|batch| batch.dead_letters.extend(letters)).await;
    let seqs = async |before, limit| {
        let found = bench.owner.reader.dead_letters(TOPIC, before, limit).await.expect("reads");
        found.iter().map(|(at, seq)| (at.as_micros() - NOW, seq.0)).collect::<Vec<_>>()
    };
    let last = (Timestamp::MAX, Seq(i64::MAX as u64));
    assert_eq!(seqs(last, 9).await, [(30, 1), (20, 4), (20, 3), (10, 2)]);
    assert_eq!(seqs(last, 2).await, [(30, 1), (20, 4)]);
    assert_eq!(seqs((at(20), Seq(4)), 9).await, [(20, 3), (10, 2)]);
    assert_eq!(seqs((at(10), Seq(2)), 9).await.len(), 0);
    let whys = async |before, limit, error_max| {
        let found = bench.owner.reader.deaths(TOPIC, before, limit, error_max).await.expect("reads");
        assert!(found.iter().all(|death| death.cause == "nacked" && death.died_at > at(0)));
        found.into_iter().map(|death| (death.seq.0, death.last_error)).collect::<Vec<_>>()
    };
    let why = |seq, text: &str| (seq, text.to_owned());
    assert_eq!(whys(last, 2, 9).await, [why(1, "größe"), why(4, "no")]);
    assert_eq!(whys((at(20), Seq(4)), 9, 9).await, [why(3, "no"), why(2, "no")]);
    assert_eq!(whys(last, 1, 3).await, [why(1, "gr")], "cut between two characters");
    let rows = bench.owner.reader.dead_rows(TOPIC, (at(30), Seq(1)), 2).await.expect("reads");
    for (row, seq) in rows.iter().zip([4, 3]) {
        let key = Key { rank: at(20).as_micros(), ..item(seq).key };
        assert_eq!((row.topic, row.died_at, row.item.key, &*row.last_error), (TOPIC, at(20), key, "no"));
        assert_eq!((row.item.attributes.deliveries, row.item.attributes.failures), (1, 1));
        assert_eq!(row.item.bytes as usize, item(seq).body.bytes());
    }
    assert_eq!(rows.len(), 2);
}

fn letter(seq: u64, died_at: i64) -> DeadLetter {
    DeadLetter {
        seq: Seq(seq),
        deliveries: 1,
        failures: 1,
        reason: "nacked".to_owned(),
        last_error: "no".to_owned(),
        died_at: at(died_at),
        expires_at: at(1_000_000_000),
        metadata: None,
        failure: failure(1, "no"),
    }
}
