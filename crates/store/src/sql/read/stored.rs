//! Reads items with all that is stored of them, for those who look at them, and the order of dead letters.

use forebay_types::{Key, Seq, Timestamp, TopicId, TopicName};

use super::unreadable::Unreadable;
use crate::{
    error::StoreError,
    looked::{Death, DeathRow, StoredItem, StoredState},
    rows::{DeadRow, ReadyRow},
    sql::{
        failures, row_counts,
        statement::{ReadConnection, Statement},
        value::{Row, Value, corrupt},
    },
};

/// Columns that `item` and `dead_letter` have in common.
const COMMON: &str = "i.seq, i.topic, t.namespace, t.name, i.priority, i.deliveries, i.failures, \
                      i.attributes, i.metadata, SUBSTR(i.payload, 1, ?), LENGTH(i.payload), \
                      i.last_failures";

/// Reads items and dead letters. Payloads are cut.
pub(super) async fn items(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    seqs: &[Seq],
    payload_max: usize,
) -> Result<Vec<StoredItem>, StoreError> {
    let mut found = Vec::with_capacity(seqs.len());
    for keys in row_counts::key_lists(seqs.to_vec()) {
        let placeholders = row_counts::placeholders(keys.len());
        let values = || -> Vec<Value> {
            std::iter::once((payload_max as u64).into()).chain(keys.iter().map(|seq| (*seq).into())).collect()
        };
        let waiting = format!(
            "SELECT {COMMON}, i.state, i.rank_us FROM item i JOIN topic t ON t.id = i.topic \
             WHERE i.seq IN ({placeholders})"
        );
        let rows = connection.fetch(Statement::new(waiting, values())).await?;
        found.extend(unreadable.rest(&rows, 0, |row| {
            let state = match row.int(12)? {
                0 => StoredState::Ready,
                1 => StoredState::Scheduled,
                other => return Err(corrupt(format!("unknown item state {other}"))),
            };
            decode(row, unreadable, state, row.int(13)?)
        }));
        let dead = format!(
            "SELECT {COMMON}, i.reason, i.last_error, i.died_at, i.expires_at \
             FROM dead_letter i JOIN topic t ON t.id = i.topic WHERE i.seq IN ({placeholders})"
        );
        let rows = connection.fetch(Statement::new(dead, values())).await?;
        found.extend(unreadable.rest(&rows, 0, |row| {
            let (died_at, kept_until) = (row.time(14)?, row.time(15)?);
            let (reason, last_error) = (row.cut_text(12)?, row.cut_text(13)?);
            let death = Death { reason, last_error, died_at, kept_until };
            decode(row, unreadable, StoredState::Dead(death), died_at.as_micros())
        }));
    }
    Ok(found)
}

fn decode(
    row: &Row,
    unreadable: &Unreadable,
    state: StoredState,
    rank: i64,
) -> Result<StoredItem, StoreError> {
    let seq = row.seq(0)?;
    let (packed, wrong) = unreadable.attributes(seq, &row.bytes(7)?);
    let (last_failures, wrong) = match failures::unpack(row.optional_bytes(11)?.as_deref()) {
        Ok(failures) => (failures, wrong),
        Err(error) => (Vec::new(), wrong.or_else(|| Some(unreadable.note(Some(seq), &error)))),
    };
    Ok(StoredItem {
        topic: TopicName::new(row.str(2)?, row.str(3)?),
        topic_id: row.topic(1)?,
        key: Key { priority: row.i32(4)?, rank, seq },
        attributes: packed.with_counters(row.u32(5)?, row.u32(6)?),
        headers: packed.headers,
        metadata: row.bytes(8)?,
        payload: row.cut_bytes(9)?,
        payload_size: row.u32(10)?,
        state,
        last_failures,
        unreadable: wrong,
    })
}

/// Reads the dead letters of a topic that died before a position, the newest first.
pub(super) async fn dead_letters(
    connection: &dyn ReadConnection,
    topic: TopicId,
    before: (Timestamp, Seq),
    limit: usize,
) -> Result<Vec<(Timestamp, Seq)>, StoreError> {
    let rows = from_the_latest(connection, topic, before, limit, "", &[]).await?;
    rows.iter().map(|row| Ok((row.time(0)?, row.seq(1)?))).collect()
}

/// Reads why the dead letters of a topic died, in the same order.
pub(super) async fn deaths(
    connection: &dyn ReadConnection,
    topic: TopicId,
    before: (Timestamp, Seq),
    limit: usize,
    error_max: usize,
) -> Result<Vec<DeathRow>, StoreError> {
    let why = ", d.reason, SUBSTR(d.last_error, 1, ?)";
    let rows = from_the_latest(connection, topic, before, limit, why, &[(error_max as u64).into()]).await?;
    let death = |row: &Row| {
        let (died_at, seq, cause) = (row.time(0)?, row.seq(1)?, row.cut_text(2)?);
        Ok(DeathRow { died_at, seq, cause, last_error: row.cut_text(3)? })
    };
    rows.iter().map(death).collect()
}

/// Reads dead letters of a topic in the same order, with all that a filter may name.
pub(super) async fn dead_rows(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    topic: TopicId,
    before: (Timestamp, Seq),
    limit: usize,
) -> Result<Vec<DeadRow>, StoreError> {
    let columns = ", d.priority, d.deliveries, d.failures, d.attributes, LENGTH(d.metadata), d.reason, \
                   d.last_error";
    let rows = from_the_latest(connection, topic, before, limit, columns, &[]).await?;
    let dead = |row: &Row| {
        let (packed, why) = unreadable.attributes(row.seq(1)?, &row.bytes(5)?);
        let died_at = row.time(0)?;
        let item = ReadyRow {
            key: Key { priority: row.i32(2)?, rank: died_at.as_micros(), seq: row.seq(1)? },
            attributes: packed.with_counters(row.u32(3)?, row.u32(4)?),
            bytes: packed.bytes.saturating_add(row.u32(6)?),
            body: None,
            unreadable: why.is_some(),
        };
        let (cause, last_error) = (row.cut_text(7)?, row.cut_text(8)?);
        Ok(DeadRow { topic, died_at, item, cause, last_error, packed: Vec::new() })
    };
    rows.iter().map(dead).collect()
}

/// Reads time and number of a topic's dead letters before a position, and further columns, which begin with a
/// comma and may have values.
async fn from_the_latest(
    connection: &dyn ReadConnection,
    topic: TopicId,
    before: (Timestamp, Seq),
    limit: usize,
    columns: &str,
    of_columns: &[Value],
) -> Result<Vec<Row>, StoreError> {
    let table = connection.dialect().dead_letters_by_death();
    let (died_at, seq) = before;
    let ranges: [(&str, Vec<Value>, &str); 2] = [
        ("d.died_at = ? AND d.seq < ?", vec![died_at.into(), seq.into()], "d.seq DESC"),
        ("d.died_at < ?", vec![died_at.into()], "d.died_at DESC, d.seq DESC"),
    ];
    let mut found = Vec::new();
    for (range, bounds, order) in ranges {
        if found.len() >= limit {
            break;
        }
        let sql = format!(
            "SELECT d.died_at, d.seq{columns} FROM {table} \
             WHERE d.topic = ? AND {range} ORDER BY {order} LIMIT ?"
        );
        let mut values = of_columns.to_vec();
        values.push(topic.into());
        values.extend(bounds);
        values.push(((limit - found.len()) as u64).into());
        found.extend(connection.fetch(Statement::new(sql, values)).await?);
    }
    Ok(found)
}
