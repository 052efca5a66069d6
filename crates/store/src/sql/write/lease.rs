//! The lease log: deliveries begin and end.

use crate::{
    Batch, LeaseChange, StoreError,
    sql::{Dialect, Statement, pack, row_counts},
};

pub(super) fn begin(batch: &Batch) -> Result<Vec<Statement>, StoreError> {
    if batch.leases.is_empty() {
        return Ok(Vec::new());
    }
    let values = vec![batch.number.into(), pack::entries(&batch.leases)?];
    Ok(vec![Statement::new("INSERT INTO lease (id, entries) VALUES (?, ?)", values)])
}

/// A row of the log has a row in `lease_open` from the first of its deliveries that ends until the last one: mostly they end
/// together, and it never has one.
pub(super) fn end(batch: &Batch, dialect: Dialect, statement_bytes: usize) -> Vec<Statement> {
    let (open, over): (Vec<&LeaseChange>, Vec<&LeaseChange>) =
        batch.lease_changes.iter().partition(|row| row.open.contains(&true));
    let bits = open.into_iter().map(|row| vec![row.id.into(), pack::bits(&row.open)]).collect();
    let mut statements =
        row_counts::insert("REPLACE", "lease_open", &["id", "open_bits"], bits, statement_bytes);
    let noted: Vec<u64> = over.iter().filter(|row| row.partly).map(|row| row.id).collect();
    let over: Vec<u64> = over.into_iter().map(|row| row.id).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM lease", "id", over));
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM lease_open", "id", noted));
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

    /// No row of `lease_open` is left behind, and none is looked for where there is none.
    #[test]
    fn a_row_is_noted_from_its_first_end_to_its_last() {
        assert_eq!(tables(false, &[]), ["DELETE FROM lease"]);
        assert_eq!(tables(false, &[true, false]), ["REPLACE INTO lease_open"]);
        assert_eq!(tables(true, &[true, false]), ["REPLACE INTO lease_open"]);
        assert_eq!(tables(true, &[]), ["DELETE FROM lease", "DELETE FROM lease_open"]);
    }
}
