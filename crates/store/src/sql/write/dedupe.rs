//! Dedupe keys and request ids.

use std::collections::BTreeMap;

use crate::{
    Batch, ErrorClass, StoreError,
    sql::{Statement, Value, pack, row_counts},
};

/// The lists of shards among which keys have had their homes.
pub(super) fn topology_history(batch: &Batch) -> Result<Option<Statement>, StoreError> {
    let Some(history) = &batch.topology_history else { return Ok(None) };
    let sql = "UPDATE topology_history SET topologies = ? WHERE id = 1";
    Ok(Some(Statement::new(sql, vec![pack::topologies(history)?])))
}

pub(super) fn remember(batch: &Batch, statement_bytes: usize) -> Result<Vec<Statement>, StoreError> {
    if batch.dedupes.is_empty() {
        return Ok(Vec::new());
    }
    let Some(marks) = batch.marks else {
        return Err(StoreError::new(ErrorClass::Poison, "dedupe keys are stored with the time of a marks"));
    };
    let mut generations: BTreeMap<u64, BTreeMap<[u8; 16], &[u8]>> = BTreeMap::new();
    for (generation, hash, answer) in &batch.dedupes {
        generations.entry(*generation).or_default().insert(*hash, answer);
    }
    let mut statements = Vec::new();
    for (generation, keys) in generations {
        let row = |(hash, answer): ([u8; 16], &[u8])| -> Vec<Value> {
            vec![hash.as_slice().into(), marks.time.into(), answer.into()]
        };
        let rows = keys.into_iter().map(row).collect();
        let table = format!("dedupe_{generation}");
        // A key whose window was over may still stand there.
        statements.extend(row_counts::insert(
            "REPLACE",
            &table,
            &["hash", "at", "answer"],
            rows,
            statement_bytes,
        ));
    }
    Ok(statements)
}
