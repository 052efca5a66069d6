//! A sweep's page in the batch, and topics that have been empty for long.

use forebay_store::Sweep;

use super::{
    builder::{BatchBuilder, PageShare},
    sweep_due, sweep_expiry,
};
use crate::shard::in_flight::PlannedPage;

/// Topics that one batch drops.
const DROPS_MAX: usize = 64;

/// Adds the page that waits, if any.
pub(super) fn add_page(builder: &mut BatchBuilder<'_>) {
    if builder.is_bisecting() && builder.rows > 0 {
        return;
    }
    let Some(page) = builder.shard.sweeps.take_page() else { return };
    let PageShare { done, left_min } = match page.sweep {
        Sweep::Due => sweep_due::promote(builder, &page),
        Sweep::Expiry => sweep_expiry::expire(builder, &page),
    };
    builder.rows += done.iter().filter(|done| **done).count();
    let low = left_min.min(builder.earliest_added(page.sweep));
    let checkpoint = builder.shard.sweeps.get(page.sweep).target(&page, low);
    builder.page = Some(PlannedPage { page, done, checkpoint });
}

/// Drops topics that have been empty for long.
pub(super) fn drop_idle_topics(builder: &mut BatchBuilder<'_>) {
    let keep = builder.shard.settings.idle_topic;
    while builder.batch.drop_topics.len() < DROPS_MAX
        && let Some((since, id)) = builder.shard.topics.idle.front().copied()
        && builder.moment.at.since(since) >= keep
    {
        builder.shard.topics.idle.pop_front();
        let Some(topic) = builder.shard.topics.get(id) else { continue };
        let unused = topic.is_empty() && topic.idle_since == Some(since) && topic.reserved == 0;
        if unused && !topic.window().is_reading() && !builder.counts(id) {
            builder.batch.drop_topics.push(id);
            builder.rows += 1;
        }
    }
}
