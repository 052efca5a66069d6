//! Reads the stored answers of dedupe keys and request ids.

use crate::{
    error::StoreError,
    rows::DedupeHit,
    sql::{
        row_counts,
        statement::{ReadConnection, Statement},
        value::Value,
    },
};

pub(super) async fn dedupe(
    connection: &dyn ReadConnection,
    generations: &[u64],
    hashes: &[[u8; 16]],
) -> Result<Vec<DedupeHit>, StoreError> {
    let lists = row_counts::key_lists(hashes.to_vec());
    let mut hits = Vec::new();
    for generation in generations {
        for keys in &lists {
            let placeholders = row_counts::placeholders(keys.len());
            let sql =
                format!("SELECT hash, at, answer FROM dedupe_{generation} WHERE hash IN ({placeholders})");
            let values = keys.iter().map(|hash| Value::from(hash.as_slice())).collect();
            for row in connection.fetch(Statement::new(sql, values)).await? {
                let answer = row.bytes(2)?.into();
                hits.push(DedupeHit { hash: row.hash(0)?, at: row.time(1)?, answer });
            }
        }
    }
    Ok(hits)
}
