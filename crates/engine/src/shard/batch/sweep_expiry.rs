//! The sweep of expired items: they are deleted. A leased one only loses its expiry row; its lease entry
//! carries the expiry, and the end of the lease is the end of the item.

use forebay_store::{DueItem, DueKey};
use forebay_types::Timestamp;

use super::{builder::BatchBuilder, page_share::PageShare};
use crate::{
    planted::{Bug, on},
    shard::work::SweepPage,
};

/// Puts a page into the batch, but for rows whose items are elsewhere, or that can't be stored.
pub(super) fn expire(builder: &mut BatchBuilder<'_>, page: &SweepPage) -> PageShare {
    let mut share = PageShare::new(page);
    let mut room = builder.page_rows_max();
    for row in &page.rows {
        let seq = row.seq;
        let shard = &builder.shard;
        if shard.upkeep.sweeps.expiry.is_parked(seq) {
            share.park(row.at);
            continue;
        }
        let elsewhere = shard.upkeep.sweeps.expiry.is_invalidated(seq)
            || builder.claims.contains(seq)
            || shard.contents.reserved.contains(&seq);
        if elsewhere || room == 0 {
            share.leave(row.at);
            continue;
        }
        room -= 1;
        share.done.push(true);
        builder.batch.expiry_deletes.push(DueKey { at: row.at, seq });
        if shard.contents.leases.get(seq).is_some() {
            continue;
        }
        builder.batch.deletes.push(seq);
        builder.claims.insert(seq);
        if !on(Bug::ExpiredNotCounted) {
            builder.tally(row.topic).expired += 1;
        }
        if let DueItem::Scheduled(item) = &row.item {
            let at = Timestamp::from_micros(item.key.rank);
            builder.batch.schedule_deletes.push(DueKey { at, seq });
            builder.count(row.topic, 0, -1, 0);
        } else {
            builder.count(row.topic, -1, 0, 0);
        }
    }
    share
}
