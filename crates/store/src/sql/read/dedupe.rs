//! What is stored under dedupe keys and request ids.

use super::{Source, Statement, Value};
use crate::{DedupeHit, StoreError, sql::shape};

pub(super) async fn dedupe(
    source: &dyn Source,
    generations: &[u64],
    hashes: &[[u8; 16]],
) -> Result<Vec<DedupeHit>, StoreError> {
    let lists = shape::key_lists(hashes.to_vec());
    let mut hits = Vec::new();
    for generation in generations {
        for keys in &lists {
            let marks = shape::marks(keys.len());
            let sql = format!("SELECT hash, at, answer FROM dedupe_{generation} WHERE hash IN ({marks})");
            let values = keys.iter().map(|hash| Value::from(hash.as_slice())).collect();
            for row in source.fetch(Statement::new(sql, values)).await? {
                let answer = row.bytes(2)?.into();
                hits.push(DedupeHit { hash: row.hash(0)?, at: row.time(1)?, answer });
            }
        }
    }
    Ok(hits)
}
