//! The sweep of dead letters: those that were kept for long enough are deleted.

use forebay_store::{DueItem, Sweep};

use super::{builder::BatchBuilder, page_share::PageShare};
use crate::shard::{commit::disk_room::Need, work::SweepPage};

/// Puts a page into the batch, but for dead letters that can't be changed.
///
/// The end of a dead letter was set when it died. If the retention has become longer since, it is kept for
/// longer: nobody loses what the present settings keep.
pub(super) fn delete(builder: &mut BatchBuilder<'_>, page: &SweepPage) -> PageShare {
    let mut share = PageShare::new(page);
    let mut room = builder.page_rows_max();
    for row in &page.rows {
        let DueItem::DeadLetter { name, died_at } = &row.item else { continue };
        if builder.shard.upkeep.sweeps.retention.is_parked(row.seq) {
            share.park(row.at);
            continue;
        }
        let end = builder.dead_letter_end(name, *died_at);
        let is_over = end <= builder.moment.now;
        // An operation may have made it an item again, or deleted it.
        let changed = builder.shard.upkeep.sweeps.retention.is_invalidated(row.seq);
        // To keep one is to change its row. Deletions free room on a full disk.
        if room == 0 || changed || !is_over && builder.allowed < Need::Rows {
            share.leave(row.at);
            continue;
        }
        room -= 1;
        share.done.push(true);
        if is_over {
            builder.delete_dead_letter(row.topic, &name.namespace, row.seq);
        } else {
            builder.claims.insert(row.seq);
            builder.batch.dead_letter_keeps.push((row.seq, end));
            builder.added.add(Sweep::Retention, end);
        }
    }
    share
}
