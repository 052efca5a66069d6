//! Reads what topics counted that are forgotten.

use forebay_types::Namespace;

use crate::{
    error::StoreError,
    sql::{
        pack,
        statement::{ReadConnection, Statement},
    },
    tally::NamespaceTally,
};

/// Reads the first rows behind a namespace.
pub(super) async fn tallies(
    connection: &dyn ReadConnection,
    after: &str,
    limit: usize,
) -> Result<Vec<NamespaceTally>, StoreError> {
    let sql = "SELECT namespace, tally, deleted_through, changed_in FROM namespace_tally \
               WHERE namespace > ? ORDER BY namespace LIMIT ?";
    let rows = connection.fetch(Statement::new(sql, vec![after.into(), (limit as u64).into()])).await?;
    let mut tallies = Vec::with_capacity(rows.len());
    for row in rows {
        let namespace = Namespace::from(row.str(0)?);
        let tally = row.optional_bytes(1)?.map(|tally| pack::unpack_tally(&tally)).transpose();
        // One row that can't be read does not keep all others from being counted.
        let tally = tally.unwrap_or_else(|error| {
            tracing::error!("forgotten topics of namespace {namespace} count from zero: {error}");
            None
        });
        tallies.push(NamespaceTally {
            namespace,
            tally,
            deleted_through: row.topic(2)?,
            changed_in: row.u64(3)?,
        });
    }
    Ok(tallies)
}
