//! Reads the rows that the sweeps look for.

use forebay_types::{Timestamp, TopicName};

use super::{
    item::{self, ITEM, ITEM_COLUMNS},
    unreadable::Unreadable,
};
use crate::{
    error::StoreError,
    rows::{DueItem, DueRow, Sweep},
    sql::{
        dialect::Dialect,
        statement::{ReadConnection, Statement, int_of},
        value::{Row, corrupt},
    },
};

pub(super) async fn due(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    sweep: Sweep,
    from: Timestamp,
    to: Timestamp,
    limit: usize,
) -> Result<Vec<DueRow>, StoreError> {
    let values = vec![from.into(), to.into(), (limit as u64).into()];
    let rows = connection.fetch(Statement::new(sql(sweep, connection.dialect()), values)).await?;
    rows.iter()
        .map(|row| match sweep {
            Sweep::Due | Sweep::Expiry => decode_item(row, unreadable),
            Sweep::Retention => decode_dead_letter(row),
        })
        .collect()
}

fn sql(sweep: Sweep, dialect: Dialect) -> String {
    let (table, at) = table(sweep);
    let (columns, from, joined) = match sweep {
        Sweep::Due | Sweep::Expiry => {
            (format!("{ITEM}, i.topic, i.state"), format!("{table} d"), "item i ON i.seq = d.seq")
        }
        Sweep::Retention => (
            "d.seq, d.topic, d.died_at, t.namespace, t.name".to_owned(),
            dialect.dead_letters_by_end().to_owned(),
            "topic t ON t.id = d.topic",
        ),
    };
    let join = dialect.join_in_order();
    format!(
        "SELECT {columns}, d.{at} FROM {from} {join} {joined} \
         WHERE d.{at} >= ? AND d.{at} <= ? ORDER BY d.{at}, d.seq LIMIT ?"
    )
}

fn decode_item(row: &Row, unreadable: &Unreadable) -> Result<DueRow, StoreError> {
    let item = item::decode(row, unreadable)?;
    let (at, seq, topic) = (row.time(ITEM_COLUMNS + 2)?, item.key.seq, row.topic(ITEM_COLUMNS)?);
    let item = match row.int(ITEM_COLUMNS + 1)? {
        0 => DueItem::Ready(item),
        1 => DueItem::Scheduled(item),
        other => return Err(corrupt(format!("unknown item state {other}"))),
    };
    Ok(DueRow { at, seq, topic, item })
}

fn decode_dead_letter(row: &Row) -> Result<DueRow, StoreError> {
    let item = DueItem::DeadLetter { name: TopicName::new(row.str(3)?, row.str(4)?), died_at: row.time(2)? };
    Ok(DueRow { at: row.time(5)?, seq: row.seq(0)?, topic: row.topic(1)?, item })
}

pub(super) async fn next_due(
    connection: &dyn ReadConnection,
    sweep: Sweep,
    from: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let (table, at) = table(sweep);
    let sql = format!("SELECT {at} FROM {table} WHERE {at} >= ? ORDER BY {at} LIMIT 1");
    let rows = connection.fetch(Statement::new(sql, vec![from.into()])).await?;
    // A dead letter that is kept for ever has the latest of all times.
    Ok(int_of(&rows)?.map(Timestamp::from_micros).filter(|at| *at < Timestamp::MAX))
}

/// A sweep's table and its time column.
const fn table(sweep: Sweep) -> (&'static str, &'static str) {
    match sweep {
        Sweep::Due => ("schedule", "deliver_at"),
        Sweep::Expiry => ("expiry", "expires_at"),
        Sweep::Retention => ("dead_letter", "expires_at"),
    }
}
