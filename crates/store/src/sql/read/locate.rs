//! Finds an item that has no lease.

use forebay_types::Seq;

use crate::{
    error::StoreError,
    shard::ItemLocation,
    sql::statement::{ReadConnection, Statement, int_of},
};

pub(super) async fn locate(connection: &dyn ReadConnection, seq: Seq) -> Result<ItemLocation, StoreError> {
    let sql = "SELECT 0 FROM item WHERE seq = ? UNION ALL SELECT 1 FROM dead_letter WHERE seq = ?";
    let rows = connection.fetch(Statement::new(sql, vec![seq.into(), seq.into()])).await?;
    Ok(match int_of(&rows)? {
        Some(1) => ItemLocation::DeadLetter,
        Some(_) => ItemLocation::Waiting,
        None => ItemLocation::Gone,
    })
}
