//! A sweep's page in the batch, and topics that have been empty for long.

use forebay_store::Sweep;
use forebay_types::TopicId;

use super::{builder::BatchBuilder, page_share::PageShare, sweep_due, sweep_expiry, sweep_retention};
use crate::shard::{
    commit::{disk_room::Need, in_flight::PlannedPage, row_costs::RowKind},
    contents::topics::state::TopicState,
};

/// Topics that one batch drops.
const DROPS_MAX: usize = 64;

/// Adds the page that waits, if any.
pub(super) fn add_page(builder: &mut BatchBuilder<'_>) {
    if builder.is_bisecting() && builder.rows > 0 {
        return;
    }
    let Some(page) = builder.shard.upkeep.sweeps.take_page() else { return };
    if page.sweep == Sweep::Due && builder.allowed < Need::Rows {
        return builder.shard.upkeep.sweeps.put_back(page);
    }
    let PageShare { done, left_min, parked_min } = match page.sweep {
        Sweep::Due => sweep_due::promote(builder, &page),
        Sweep::Expiry => sweep_expiry::expire(builder, &page),
        Sweep::Retention => sweep_retention::delete(builder, &page),
    };
    builder.spend(RowKind::of_sweep(page.sweep), done.iter().filter(|done| **done).count());
    let low = left_min.min(builder.added.of(page.sweep));
    let sweeper = builder.shard.upkeep.sweeps.get(page.sweep);
    let (checkpoint, cursor) = (sweeper.target(&page, low.min(parked_min)), sweeper.target(&page, low));
    builder.page = Some(PlannedPage { page, done, checkpoint, cursor });
}

/// Drops topics that have had no item for long. They stay listed until that is committed. A topic with dead
/// letters keeps its row, because they need its name: memory alone forgets it. What the topics counted is
/// kept for their namespaces.
pub(super) fn drop_idle_topics(builder: &mut BatchBuilder<'_>) {
    if builder.may_do_upkeep() && builder.allowed >= Need::Rows {
        choose_idle_topics(builder);
    } else if builder.removed_dormant.is_empty() {
        return;
    }
    let (last, number) = (builder.marks.topic, builder.batch.number);
    let topics = &mut builder.shard.contents.topics;
    builder.forgotten = topics.forget(&builder.dropped, &builder.removed_dormant, last, number);
    builder.spend(RowKind::Other, builder.dropped.len() + builder.forgotten.rows());
    builder.batch.namespace_tallies.clone_from(&builder.forgotten.written);
    builder.batch.namespace_tally_deletes.clone_from(&builder.forgotten.deleted);
}

/// Topics that had no item for long.
fn choose_idle_topics(builder: &mut BatchBuilder<'_>) {
    let (now, keep) = (builder.moment.at, builder.shard.settings.idle_topic);
    let topics = &builder.shard.contents.topics;
    let long = topics.unused().take_while(|(since, _)| now.since(*since) >= keep);
    let unused = long.map(|(_, id)| id).filter(|id| !builder.counts(*id));
    builder.dropped = unused.take(DROPS_MAX).collect();
    let (dormant, empty): (Vec<TopicId>, Vec<TopicId>) =
        builder.dropped.iter().partition(|id| topics.get(**id).is_some_and(TopicState::has_dead_letters));
    topics.fold_last(&mut builder.batch, &dormant);
    builder.batch.drop_topics = empty;
}
