//! Writes the lease log: deliveries begin and end.

use crate::{
    batch::Batch,
    error::StoreError,
    rows::LeaseChange,
    sql::{dialect::Dialect, pack, row_counts, statement::Statement},
};

pub(super) fn begin(batch: &Batch) -> Result<Vec<Statement>, StoreError> {
    if batch.leases.is_empty() {
        return Ok(Vec::new());
    }
    let values = vec![batch.number.into(), pack::entries(&batch.leases)?];
    Ok(vec![Statement::new("INSERT INTO lease (id, entries) VALUES (?, ?)", values)])
}

/// A lease row has a row in `lease_open` while some of its deliveries, but not all, have ended. Deliveries
/// mostly end together, so most lease rows never have one.
pub(super) fn end(batch: &Batch, dialect: Dialect, statement_bytes: usize) -> Vec<Statement> {
    let (open, over): (Vec<&LeaseChange>, Vec<&LeaseChange>) =
        batch.lease_changes.iter().partition(|row| row.open.contains(&true));
    let bits = open.into_iter().map(|row| vec![row.id.into(), pack::bits(&row.open)]).collect();
    let mut statements =
        row_counts::insert("REPLACE", "lease_open", &["id", "open_bits"], bits, statement_bytes);
    let partly_closed: Vec<u64> = over.iter().filter(|row| row.partly).map(|row| row.id).collect();
    let over: Vec<u64> = over.into_iter().map(|row| row.id).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM lease", "id", over));
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM lease_open", "id", partly_closed));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(partly: bool, open: &[bool]) -> Vec<String> {
        let change = LeaseChange { id: 7, partly, open: open.to_vec() };
        let batch = Batch { lease_changes: vec![change], ..Batch::default() };
        let statements = end(&batch, Dialect::MySql, 1 << 20);
        statements
            .iter()
            .map(|statement| statement.sql.split(' ').take(3).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// No row of `lease_open` is left behind, and a missing one is not deleted.
    #[test]
    fn lease_open_has_a_row_while_a_lease_row_is_partly_closed() {
        assert_eq!(tables(false, &[]), ["DELETE FROM lease"]);
        assert_eq!(tables(false, &[true, false]), ["REPLACE INTO lease_open"]);
        assert_eq!(tables(true, &[true, false]), ["REPLACE INTO lease_open"]);
        assert_eq!(tables(true, &[]), ["DELETE FROM lease", "DELETE FROM lease_open"]);
    }
}
