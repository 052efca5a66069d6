//! The lease log.

use forebay_store::LeaseRow;

use super::{
    Subject,
    bench::{Bench, at, entry},
};

fn row(id: u64, deliveries: u64) -> LeaseRow {
    let entries = (1..=deliveries).map(|seq| entry(id * 10_000 + seq, at(seq as i64))).collect();
    LeaseRow { id, entries, open: vec![true; deliveries as usize] }
}

/// Every field of every delivery.
pub async fn a_lease_is_loaded(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut large = row(1, 1_000);
    large.entries[7].expires_at = None;
    large.entries[8].consumer = "ü".repeat(100);
    bench.owner.commit(|batch| batch.lease = Some(large.clone())).await;
    let small = row(2, 1);
    bench.owner.commit(|batch| batch.lease = Some(small.clone())).await;
    assert_eq!(bench.owner.load().await.leases, [large.clone(), small.clone()]);
    let bench = bench.succeed().await;
    assert_eq!(bench.owner.load().await.leases, [large, small]);
}

/// With the last bit the row goes.
pub async fn a_lease_closes_bit_by_bit(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut one = row(1, 11);
    bench.owner.commit(|batch| batch.lease = Some(one.clone())).await;
    let two = row(2, 3);
    bench.owner.commit(|batch| batch.lease = Some(two.clone())).await;
    for closed in [0, 8, 10] {
        one.open[closed] = false;
        bench.owner.commit(|batch| batch.lease_changes.push(one.change())).await;
        assert_eq!(bench.owner.load().await.leases, [one.clone(), two.clone()]);
    }
    one.open.fill(false);
    bench.owner.commit(|batch| batch.lease_changes.push(one.change())).await;
    assert_eq!(bench.owner.load().await.leases, [two]);
}

/// Some close in part, some wholly, and a new one begins.
pub async fn many_lease_rows_change_at_once(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut rows = Vec::new();
    for id in 1..=80 {
        rows.push(row(id, 9));
        bench.owner.commit(|batch| batch.lease = rows.last().cloned()).await;
    }
    for row in &mut rows {
        match row.id % 3 {
            0 => row.open.fill(false),
            _ => row.open[(row.id % 9) as usize] = false,
        }
    }
    let new = row(81, 2);
    bench
        .owner
        .commit(|batch| {
            batch.lease = Some(new.clone());
            batch.lease_changes.extend(rows.iter().rev().map(LeaseRow::change));
        })
        .await;
    rows.retain(|row| row.open.contains(&true));
    rows.push(new);
    assert_eq!(bench.owner.load().await.leases, rows);
}
