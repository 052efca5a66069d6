//! The sweep of due items: items that waited for their time become ready. Where a step of the shard's time
//! has made the row of a delay due too early, that is put off.

use forebay_store::{DueKey, PutOff, Sweep};

use super::{builder::BatchBuilder, page_share::PageShare};
use crate::shard::work::SweepPage;

/// Puts a page into the batch, but for rows that can't be stored.
pub(super) fn promote(builder: &mut BatchBuilder<'_>, page: &SweepPage) -> PageShare {
    let mut share = PageShare::new(page);
    let mut room = builder.page_rows_max();
    for row in &page.rows {
        let seq = row.seq;
        if builder.shard.upkeep.sweeps.due.is_parked(seq) {
            share.park(row.at);
            continue;
        }
        // An operation may have removed the item since.
        let changed = builder.shard.upkeep.sweeps.due.is_invalidated(seq) || builder.claims.contains(seq);
        if room == 0 || changed {
            share.leave(row.at);
            continue;
        }
        room -= 1;
        share.done.push(true);
        builder.claims.insert(seq);
        // Its delay began before the time stepped.
        if let Some(to) = builder.shard.tenure.spans.moved(row).filter(|due| *due > builder.moment.now) {
            builder.batch.put_offs.push(PutOff { seq, from: row.at, to });
            builder.added.add(Sweep::Due, to);
            continue;
        }
        builder.batch.promotes.push(DueKey { at: row.at, seq });
        builder.count(row.topic, 1, -1, 0);
    }
    share
}
