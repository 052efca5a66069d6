//! The lease log: deliveries begin and end.

use crate::{
    Batch, LeaseChange, StoreError,
    sql::{Dialect, Statement, pack, shape},
};

pub(super) fn begin(batch: &Batch) -> Result<Vec<Statement>, StoreError> {
    let Some(row) = &batch.lease else { return Ok(Vec::new()) };
    Ok(vec![
        Statement::new(
            "INSERT INTO lease (id, entries) VALUES (?, ?)",
            vec![row.id.into(), pack::entries(&row.entries)?],
        ),
        Statement::new(
            "INSERT INTO lease_open (id, earliest, open_bits) VALUES (?, ?, ?)",
            vec![row.id.into(), row.earliest().into(), pack::bits(&row.open)],
        ),
    ])
}

pub(super) fn end(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let (open, over): (Vec<&LeaseChange>, Vec<&LeaseChange>) =
        batch.lease_changes.iter().partition(|row| row.open.contains(&true));
    let changes = open
        .into_iter()
        .map(|row| (row.id.cast_signed(), vec![row.earliest.into(), pack::bits(&row.open)]))
        .collect();
    let mut statements = shape::update_each(dialect, "lease_open", "id", &["earliest", "open_bits"], changes);
    let over: Vec<u64> = over.into_iter().map(|row| row.id).collect();
    statements.extend(shape::by_keys(dialect, "DELETE FROM lease", "id", over.clone()));
    statements.extend(shape::by_keys(dialect, "DELETE FROM lease_open", "id", over));
    statements
}
