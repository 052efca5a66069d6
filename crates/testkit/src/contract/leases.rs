//! The lease log.

use forebay_store::{LeaseChange, LeaseRow};

use super::{
    Subject,
    bench::{Bench, at, entry},
};

fn row(id: u64, deliveries: u64) -> LeaseRow {
    let entries = (1..=deliveries).map(|seq| entry(id * 10_000 + seq, at(seq as i64))).collect();
    LeaseRow { id, entries, open: vec![true; deliveries as usize] }
}

/// Closes deliveries of a row. Returns the change for the store.
fn close(row: &mut LeaseRow, positions: impl IntoIterator<Item = usize>) -> LeaseChange {
    let partly = row.open.contains(&false);
    positions.into_iter().for_each(|position| row.open[position] = false);
    LeaseChange { id: row.id, partly, open: row.open.clone() }
}

/// Every field of every delivery.
pub async fn a_lease_is_loaded(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut large = row(1, 1_000);
    large.entries[7].attributes.expires_at = None;
    large.entries[8].consumer = "ü".repeat(100);
    bench.owner.commit(|batch| batch.leases = large.entries.clone()).await;
    let small = row(2, 1);
    bench.owner.commit(|batch| batch.leases = small.entries.clone()).await;
    assert_eq!(bench.owner.load().await.leases, [large.clone(), small.clone()]);
    let bench = bench.succeed().await;
    assert_eq!(bench.owner.load().await.leases, [large, small]);
}

/// The row is deleted with its last open delivery.
pub async fn a_lease_closes_bit_by_bit(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut one = row(1, 11);
    bench.owner.commit(|batch| batch.leases = one.entries.clone()).await;
    let two = row(2, 3);
    bench.owner.commit(|batch| batch.leases = two.entries.clone()).await;
    for closed in [0, 8, 10] {
        bench.owner.commit(|batch| batch.lease_changes.push(close(&mut one, [closed]))).await;
        assert_eq!(bench.owner.load().await.leases, [one.clone(), two.clone()]);
    }
    bench.owner.commit(|batch| batch.lease_changes.push(close(&mut one, 0..11))).await;
    assert_eq!(bench.owner.load().await.leases, [two]);
}

/// Some are closed in part, some completely, and a new one begins.
pub async fn many_lease_rows_change_at_once(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut rows = Vec::new();
    for id in 1..=80 {
        rows.push(row(id, 9));
        bench.owner.commit(|batch| batch.leases = row(id, 9).entries).await;
    }
    let mut first = Vec::new();
    for row in rows.iter_mut().filter(|row| row.id % 2 == 0) {
        first.push(close(row, [0, 4]));
    }
    bench.owner.commit(|batch| batch.lease_changes.extend(first)).await;
    assert_eq!(bench.owner.load().await.leases, rows);
    let mut changes = Vec::new();
    for row in rows.iter_mut().rev() {
        let positions = if row.id % 3 == 0 { 0..9 } else { 1..2 };
        changes.push(close(row, positions));
    }
    let new = row(82, 2);
    bench
        .owner
        .commit(|batch| {
            batch.leases = new.entries.clone();
            batch.lease_changes = changes;
        })
        .await;
    rows.retain(|row| row.open.contains(&true));
    rows.push(new);
    assert_eq!(bench.owner.load().await.leases, rows);
}
