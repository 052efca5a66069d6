//! Reads the rows that the sweeps look for.

use forebay_types::Timestamp;

use super::item::{self, ITEM, ITEM_COLUMNS};
use crate::{
    error::StoreError,
    rows::{DueRow, Sweep},
    sql::{
        statement::{ReadConnection, Statement, int_of},
        value::{Row, corrupt},
    },
};

pub(super) async fn due(
    connection: &dyn ReadConnection,
    sweep: Sweep,
    from: Timestamp,
    to: Timestamp,
    limit: usize,
) -> Result<Vec<DueRow>, StoreError> {
    let (table, at) = table(sweep);
    let join = connection.dialect().join_in_order();
    let sql = format!(
        "SELECT {ITEM}, i.topic, i.state, d.{at} FROM {table} d {join} item i ON i.seq = d.seq \
         WHERE d.{at} >= ? AND d.{at} <= ? ORDER BY d.{at}, d.seq LIMIT ?"
    );
    let values = vec![from.into(), to.into(), (limit as u64).into()];
    let rows = connection.fetch(Statement::new(sql, values)).await?;
    let decode = |row: &Row| {
        let scheduled = match row.int(ITEM_COLUMNS + 1)? {
            0 => false,
            1 => true,
            other => return Err(corrupt(format!("unknown item state {other}"))),
        };
        let topic = row.topic(ITEM_COLUMNS)?;
        Ok(DueRow { at: row.time(ITEM_COLUMNS + 2)?, topic, scheduled, item: item::decode(row)? })
    };
    rows.iter().map(decode).collect()
}

pub(super) async fn next_due(
    connection: &dyn ReadConnection,
    sweep: Sweep,
    from: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let (table, at) = table(sweep);
    let sql = format!("SELECT {at} FROM {table} WHERE {at} >= ? ORDER BY {at} LIMIT 1");
    let rows = connection.fetch(Statement::new(sql, vec![from.into()])).await?;
    Ok(int_of(&rows)?.map(Timestamp::from_micros))
}

/// A sweep's table and its time column.
const fn table(sweep: Sweep) -> (&'static str, &'static str) {
    match sweep {
        Sweep::Due => ("schedule", "deliver_at"),
        Sweep::Expiry => ("expiry", "expires_at"),
    }
}
