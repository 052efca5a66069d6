//! Reads what an operation goes through: items of a topic in delivery order, and dead letters by their
//! deaths.

use forebay_types::{Key, Seq, State, Timestamp, TopicId, TopicName};

use super::{
    item::{self, ITEM},
    keys,
    unreadable::Unreadable,
};
use crate::{
    error::StoreError,
    rows::{DeadRow, ReadyRow, WalkedRow},
    sql::{
        statement::{ReadConnection, Statement},
        value::{Row, Value},
    },
};

/// Reads one range of the index after the other, until there are enough rows. Items with higher numbers are
/// passed over by the server.
pub(super) async fn walk_items(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    topic: TopicId,
    state: State,
    after: Key,
    as_of: Seq,
    limit: usize,
) -> Result<Vec<WalkedRow>, StoreError> {
    let table = connection.dialect().item_in_delivery_order();
    let mut found = Vec::new();
    for (range, bounds, order) in keys::ranges_after(after) {
        if found.len() >= limit {
            break;
        }
        let sql = format!(
            "SELECT {ITEM} FROM {table} \
             WHERE i.topic = ? AND i.state = ? AND i.seq <= ? {range} ORDER BY {order} LIMIT ?"
        );
        let mut values = vec![topic.into(), state.into(), as_of.into()];
        values.extend(bounds);
        values.push(((limit - found.len()) as u64).into());
        for row in connection.fetch(Statement::new(sql, values)).await? {
            let (item, headers) = item::decode_with_headers(&row, unreadable)?;
            found.push(WalkedRow { item, headers, metadata_bytes: row.u32(item::METADATA_BYTES)? });
        }
    }
    // An item that moved between two reads appears twice. The operation takes it once.
    Ok(found)
}

/// Reads the dead letters of all topics with a name. A name has a new topic each time it wakes from being
/// dormant.
pub(super) async fn walk_dead(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    name: &TopicName,
    after: (TopicId, Timestamp, Seq),
    until: Timestamp,
    limit: usize,
) -> Result<Vec<DeadRow>, StoreError> {
    let table = connection.dialect().topics_by_name();
    let sql = format!("SELECT id FROM {table} WHERE namespace = ? AND name = ? AND id >= ? ORDER BY id");
    let values = vec![(&*name.namespace).into(), (&*name.topic).into(), after.0.into()];
    let mut found = Vec::new();
    for row in connection.fetch(Statement::new(sql, values)).await? {
        let topic = row.topic(0)?;
        let after = if topic == after.0 { (after.1, after.2) } else { (Timestamp::MIN, Seq(0)) };
        of_topic(connection, unreadable, topic, after, until, limit, &mut found).await?;
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

async fn of_topic(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    topic: TopicId,
    after: (Timestamp, Seq),
    until: Timestamp,
    limit: usize,
    found: &mut Vec<DeadRow>,
) -> Result<(), StoreError> {
    let table = connection.dialect().dead_letters_by_death();
    let (died_at, seq) = after;
    let ranges: [(&str, Vec<Value>, &str); 2] = [
        ("d.died_at = ? AND d.seq > ?", vec![died_at.into(), seq.into()], "d.seq"),
        ("d.died_at > ? AND d.died_at <= ?", vec![died_at.into(), until.into()], "d.died_at, d.seq"),
    ];
    for (range, bounds, order) in ranges {
        if found.len() >= limit {
            break;
        }
        let sql = format!(
            "SELECT d.seq, d.died_at, d.priority, d.deliveries, d.failures, d.attributes, \
             LENGTH(d.metadata), d.reason, d.last_error FROM {table} WHERE d.topic = ? AND {range} \
             ORDER BY {order} LIMIT ?"
        );
        let mut values = vec![topic.into()];
        values.extend(bounds);
        values.push(((limit - found.len()) as u64).into());
        for row in connection.fetch(Statement::new(sql, values)).await? {
            found.push(decode(topic, &row, unreadable)?);
        }
    }
    Ok(())
}

fn decode(topic: TopicId, row: &Row, unreadable: &Unreadable) -> Result<DeadRow, StoreError> {
    let stored = row.bytes(5)?;
    let (packed, why) = unreadable.attributes(row.seq(0)?, &stored);
    let died_at = row.time(1)?;
    let item = ReadyRow {
        key: Key { priority: row.i32(2)?, rank: died_at.as_micros(), seq: row.seq(0)? },
        attributes: packed.with_counters(row.u32(3)?, row.u32(4)?),
        bytes: packed.bytes.saturating_add(row.u32(6)?),
        body: None,
        unreadable: why.is_some(),
    };
    let (cause, last_error) = (row.cut_text(7)?, row.cut_text(8)?);
    Ok(DeadRow { topic, died_at, item, cause, last_error, packed: stored.to_vec() })
}
