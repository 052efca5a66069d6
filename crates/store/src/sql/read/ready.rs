//! The delivery order of one topic, from a key on.

use forebay_types::{Key, Seq, TopicId};

use super::{ITEM, ReadConnection, Statement, item};
use crate::{ReadyRow, StoreError};

/// Everything after a key is three tight ranges of the index, read one after the other until there is
/// enough. What a commit moves from one range to another meanwhile, the caller sees in that commit.
pub(super) async fn ready(
    source: &dyn ReadConnection,
    topic: TopicId,
    after: Key,
    limit: usize,
    bodies: bool,
) -> Result<Vec<ReadyRow>, StoreError> {
    let Key { priority, rank, seq } = after;
    let mut found = Vec::new();
    let mut ranges = Vec::with_capacity(3);
    if after == Key::MIN {
        // `Key::MIN` itself is no item's key, so the whole topic lies after it.
        ranges.push(("", vec![], "i.priority, i.rank_us, i.seq"));
    } else {
        let place = vec![priority.into(), rank.into(), seq.into()];
        ranges.push(("AND i.priority = ? AND i.rank_us = ? AND i.seq > ?", place, "i.seq"));
        let place = vec![priority.into(), rank.into()];
        ranges.push(("AND i.priority = ? AND i.rank_us > ?", place, "i.rank_us, i.seq"));
        ranges.push(("AND i.priority > ?", vec![priority.into()], "i.priority, i.rank_us, i.seq"));
    }
    for (range, place, order) in ranges {
        if found.len() >= limit {
            break;
        }
        let body = if bodies { ", i.payload, i.metadata" } else { "" };
        let table = source.dialect().item_in_delivery_order();
        let sql = format!(
            "SELECT {ITEM}{body} FROM {table} WHERE i.topic = ? AND i.state = 0 {range} ORDER BY {order} LIMIT ?"
        );
        let mut values = vec![topic.into()];
        values.extend(place);
        values.push(((limit - found.len()) as u64).into());
        for row in source.fetch(Statement::new(sql, values)).await? {
            found.push(item(&row, bodies)?);
        }
    }
    // An item that moved on while two ranges were read stands twice: where it was, and where it is.
    dedup(&mut found);
    Ok(found)
}

fn dedup(found: &mut Vec<ReadyRow>) {
    let mut seen = std::collections::HashMap::<Seq, Key>::with_capacity(found.len());
    for row in found.iter() {
        seen.insert(row.key.seq, row.key);
    }
    found.retain(|row| seen.get(&row.key.seq) == Some(&row.key));
}
