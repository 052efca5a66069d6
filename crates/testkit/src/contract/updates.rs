//! Items that wait and get other values.

use bytes::Bytes;
use forebay_store::{DueItem, ItemRow, NewAttributes, Sweep, UpdatedRow};
use forebay_types::{Body, Key, Seq, State, Timestamp};

use super::{
    Subject,
    bench::{Bench, NOW, Owner, TOPIC, as_ready, at, due_key, expiring, item, scheduled},
};

/// The item as it is.
fn same(item: &ItemRow) -> UpdatedRow {
    UpdatedRow {
        key: item.key,
        state: item.state,
        schedules: false,
        metadata: None,
        attributes: None,
        expires: false,
        is_operated: false,
    }
}

/// With an expiry, for which everything that is stored with it is given again.
fn with_expiry(item: &ItemRow, end: Timestamp) -> UpdatedRow {
    let attributes = expiring(item.clone(), end).attributes;
    let bytes = u32::try_from(item.body.bytes() - item.body.metadata.len()).expect("small");
    UpdatedRow {
        attributes: Some(NewAttributes { attributes, bytes, headers: item.body.headers.clone() }),
        expires: true,
        ..same(item)
    }
}

async fn times(owner: &Owner, sweep: Sweep) -> Vec<(Timestamp, u64)> {
    let due = owner.reader.due(sweep, Timestamp::MIN, at(10_000), 100).await.expect("reads");
    due.into_iter().map(|row| (row.at, row.seq.0)).collect()
}

/// Priority, metadata and expiry, each alone and all together. The rest stays.
pub async fn an_item_gets_other_values(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let body = Body {
        payload: Bytes::from_static(b"payload"),
        metadata: Bytes::from_static(b"old"),
        headers: vec![("k".into(), "v".into())],
    };
    let mut items: Vec<ItemRow> =
        (1..=4).map(|seq| ItemRow { body: body.clone(), ..expiring(item(seq), at(50)) }).collect();
    bench.owner.commit(|batch| batch.inserts.extend(items.clone())).await;
    items[0].key.priority = i32::MIN;
    items[1].body.metadata = Bytes::from_static(b"longer than before");
    let mut updates = vec![same(&items[0]), same(&items[1]), with_expiry(&items[2], at(90))];
    updates[1].metadata = Some(items[1].body.metadata.to_vec());
    items[3].key.priority = 7;
    items[3].body.metadata = Bytes::new();
    updates.push(UpdatedRow { metadata: Some(Vec::new()), ..with_expiry(&items[3], at(91)) });
    for (at_row, end) in [(2, at(90)), (3, at(91))] {
        items[at_row] = expiring(items[at_row].clone(), end);
    }
    bench
        .owner
        .commit(|batch| {
            batch.updates.extend(updates);
            batch.expiry_deletes.extend([due_key(at(50), 3), due_key(at(50), 4)]);
        })
        .await;
    let expected: Vec<_> = items.iter().map(as_ready).collect();
    assert_eq!(bench.owner.ready(TOPIC).await, expected);
    let ends = [(at(50), 1), (at(50), 2), (at(90), 3), (at(91), 4)];
    assert_eq!(times(&bench.owner, Sweep::Expiry).await, ends);
}

/// Between ready and scheduled, and to another time. A row of times may be deleted and written again.
pub async fn an_item_changes_its_times(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let all =
        [item(1), scheduled(2, at(200)), scheduled(3, at(300)), expiring(scheduled(4, at(400)), at(900))];
    bench.owner.commit(|batch| batch.inserts.extend(all.clone())).await;
    let moved = |item: &ItemRow, state, rank| {
        let key = Key { rank, ..item.key };
        UpdatedRow { key, state, schedules: state == State::Scheduled, ..same(item) }
    };
    bench
        .owner
        .commit(|batch| {
            batch.updates.push(moved(&all[0], State::Scheduled, at(150).as_micros()));
            batch.updates.push(moved(&all[1], State::Ready, NOW));
            batch.updates.push(moved(&all[2], State::Scheduled, at(350).as_micros()));
            let again = moved(&all[3], State::Scheduled, at(400).as_micros());
            batch.updates.push(UpdatedRow {
                attributes: with_expiry(&all[3], at(900)).attributes,
                expires: true,
                ..again
            });
            batch
                .schedule_deletes
                .extend([(200, 2), (300, 3), (400, 4)].map(|(due, seq)| due_key(at(due), seq)));
            batch.expiry_deletes.push(due_key(at(900), 4));
        })
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
    assert_eq!(times(&bench.owner, Sweep::Due).await, [(at(150), 1), (at(350), 3), (at(400), 4)]);
    assert_eq!(times(&bench.owner, Sweep::Expiry).await, [(at(900), 4)]);
    let due = bench.owner.reader.due(Sweep::Due, at(0), at(200), 9).await.expect("reads");
    let DueItem::Scheduled(row) = &due[0].item else { panic!("{due:?}") };
    assert_eq!(row.key, Key { rank: at(150).as_micros(), ..all[0].key });
}

/// Each gets its own values.
pub async fn many_items_are_updated_at_once(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend((1..=300).map(item))).await;
    let reversed = |seq: u64| {
        let (priority, rank) = (-(seq as i32), NOW + seq as i64 * 3);
        UpdatedRow { key: Key { priority, rank, seq: Seq(seq) }, ..same(&item(seq)) }
    };
    bench.owner.commit(|batch| batch.updates.extend((2..=300).map(reversed))).await;
    let expected: Vec<u64> = (2..=300).rev().chain([1]).collect();
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, expected);
    let found = bench.owner.ready(TOPIC).await;
    assert_eq!(found[0].key, reversed(300).key);
    assert_eq!(found[0].body, Some(item(300).body));
}

/// The mark of an operation is read with the item, and stays with it, also as a dead letter.
pub async fn a_mark_of_an_operation_stays(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items = [item(1), expiring(item(2), at(50))];
    bench.owner.commit(|batch| batch.inserts.extend(items.clone())).await;
    let marked = |item: &mut ItemRow, by| {
        item.attributes.updated_by = by;
        let bytes = u32::try_from(item.body.bytes() - item.body.metadata.len()).expect("small");
        let headers = item.body.headers.clone();
        let attributes = Some(NewAttributes { attributes: item.attributes, bytes, headers });
        UpdatedRow { attributes, is_operated: true, ..same(item) }
    };
    let updates = [(0, 7), (1, u32::MAX)].map(|(at, by)| marked(&mut items[at], by));
    bench.owner.commit(|batch| batch.updates.extend(updates)).await;
    let plain = UpdatedRow { metadata: Some(b"other".to_vec()), ..same(&items[0]) };
    bench.owner.commit(|batch| batch.updates.push(plain)).await;
    items[0].body.metadata = Bytes::from_static(b"other");
    let expected: Vec<_> = items.iter().map(as_ready).collect();
    assert_eq!(bench.owner.ready(TOPIC).await, expected);
    let walked =
        bench.owner.reader.walk_items(TOPIC, State::Ready, Key::MIN, Seq(9), 9).await.expect("reads");
    assert_eq!(walked.iter().map(|row| row.item.attributes.updated_by).collect::<Vec<_>>(), [7, u32::MAX]);
    assert_eq!((walked[0].metadata_bytes, &walked[0].headers), (5, &items[0].body.headers));
    assert_eq!(times(&bench.owner, Sweep::Expiry).await, [(at(50), 2)]);
}
