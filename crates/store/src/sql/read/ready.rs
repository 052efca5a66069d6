//! Reads the delivery order of one topic.

use std::collections::HashMap;

use forebay_types::{Body, Key, Seq, TopicId};

use super::{
    bodies::bodies,
    item::{self, ITEM},
    keys,
    unreadable::Unreadable,
};
use crate::{
    error::StoreError,
    rows::ReadyRow,
    sql::statement::{ReadConnection, Statement},
};

/// Reads the rows first. They say how large the bodies are, so exactly those that fit are read after them:
/// no guess of a size, and no row whose body is read and thrown away. If a commit changes an item between two
/// reads, the caller learns that from the commit.
pub(super) async fn ready(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    topic: TopicId,
    after: Key,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<ReadyRow>, StoreError> {
    let mut found = rows(connection, unreadable, topic, after, limit).await?;
    let mut left = max_bytes;
    let fitting = found.iter().map_while(|row| {
        left = left.checked_sub(row.bytes as usize)?;
        Some(row.key.seq)
    });
    let fitting: Vec<Seq> = if max_bytes > 0 { fitting.collect() } else { Vec::new() };
    let mut bodies: HashMap<Seq, Body> =
        bodies(connection, unreadable, &fitting).await?.into_iter().collect();
    for row in &mut found[..fitting.len()] {
        row.body = bodies.remove(&row.key.seq);
    }
    Ok(found)
}

/// Reads one range of the index after the other, until there are enough rows.
async fn rows(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    topic: TopicId,
    after: Key,
    limit: usize,
) -> Result<Vec<ReadyRow>, StoreError> {
    let mut found = Vec::new();
    for (range, bounds, order) in keys::ranges_after(after) {
        if found.len() >= limit {
            break;
        }
        let table = connection.dialect().item_in_delivery_order();
        let sql = format!(
            "SELECT {ITEM} FROM {table} \
             WHERE i.topic = ? AND i.state = 0 {range} ORDER BY {order} LIMIT ?"
        );
        let mut values = vec![topic.into()];
        values.extend(bounds);
        values.push(((limit - found.len()) as u64).into());
        let rows = connection.fetch(Statement::new(sql, values)).await?;
        found.extend(unreadable.rest(&rows, item::SEQ, |row| item::decode(row, unreadable)));
    }
    // An item that moved between two reads appears twice. Its last position counts.
    keep_last_positions(&mut found);
    Ok(found)
}

fn keep_last_positions(found: &mut Vec<ReadyRow>) {
    let mut last = HashMap::<Seq, Key>::with_capacity(found.len());
    for row in found.iter() {
        last.insert(row.key.seq, row.key);
    }
    found.retain(|row| last.get(&row.key.seq) == Some(&row.key));
}
