//! Reads the keys of items in delivery order, from the index alone.

use forebay_types::{Key, State, TopicId};

use crate::{
    error::StoreError,
    sql::{
        statement::{ReadConnection, Statement},
        value::Value,
    },
};

/// The end of a query, with its values, and the order of what it finds.
type Range = (&'static str, Vec<Value>, &'static str);

/// The ranges of the index that hold the keys of a topic after a key, in order: a key's successors are three
/// tight ranges.
pub(super) fn ranges_after(after: Key) -> Vec<Range> {
    let Key { priority, rank, seq } = after;
    if after == Key::MIN {
        // No item has the key `Key::MIN`, so the whole topic follows it.
        return vec![("", vec![], "i.priority, i.rank_us, i.seq")];
    }
    let same_rank = vec![priority.into(), rank.into(), seq.into()];
    let same_priority = vec![priority.into(), rank.into()];
    vec![
        ("AND i.priority = ? AND i.rank_us = ? AND i.seq > ?", same_rank, "i.seq"),
        ("AND i.priority = ? AND i.rank_us > ?", same_priority, "i.rank_us, i.seq"),
        ("AND i.priority > ?", vec![priority.into()], "i.priority, i.rank_us, i.seq"),
    ]
}

/// Reads one range of the index after the other, until there are enough keys.
pub(super) async fn keys(
    connection: &dyn ReadConnection,
    topic: TopicId,
    state: State,
    after: Key,
    limit: usize,
) -> Result<Vec<Key>, StoreError> {
    let table = connection.dialect().item_in_delivery_order();
    let mut found: Vec<Key> = Vec::new();
    for (range, bounds, order) in ranges_after(after) {
        if found.len() >= limit {
            break;
        }
        let sql = format!(
            "SELECT i.priority, i.rank_us, i.seq FROM {table} \
             WHERE i.topic = ? AND i.state = ? {range} ORDER BY {order} LIMIT ?"
        );
        let mut values = vec![topic.into(), state.into()];
        values.extend(bounds);
        values.push(((limit - found.len()) as u64).into());
        for row in connection.fetch(Statement::new(sql, values)).await? {
            found.push(Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(2)? });
        }
    }
    Ok(found)
}
