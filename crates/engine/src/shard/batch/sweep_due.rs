//! The sweep of due items: items that waited for their time become ready.

use forebay_store::DueKey;
use forebay_types::Timestamp;

use super::builder::{BatchBuilder, PageShare};
use crate::shard::work::SweepPage;

/// Puts a page into the batch.
pub(super) fn promote(builder: &mut BatchBuilder<'_>, page: &SweepPage) -> PageShare {
    // Only sweeps touch a scheduled item, and they take turns: the page is right.
    for row in &page.rows {
        builder.batch.promotes.push(DueKey { at: row.at, seq: row.item.key.seq });
        builder.count(row.topic, 1, -1, 0);
        builder.claimed.insert(row.item.key.seq);
    }
    PageShare { done: vec![true; page.rows.len()], left_min: Timestamp::MAX }
}
