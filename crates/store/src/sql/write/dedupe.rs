//! Writes dedupe keys, request ids and the topology history that routes them.

use std::collections::BTreeMap;

use crate::{
    batch::Batch,
    error::{ErrorClass, StoreError},
    sql::{pack, row_counts, statement::Statement, value::Value},
};

pub(super) fn topology_history(batch: &Batch) -> Result<Option<Statement>, StoreError> {
    let Some(history) = &batch.topology_history else { return Ok(None) };
    let sql = "UPDATE topology_history SET topologies = ? WHERE id = 1";
    Ok(Some(Statement::new(sql, vec![pack::topologies(history)?])))
}

pub(super) fn keys(batch: &Batch, statement_bytes: usize) -> Result<Vec<Statement>, StoreError> {
    if batch.dedupes.is_empty() {
        return Ok(Vec::new());
    }
    let Some(marks) = batch.marks else {
        let message = "a batch with dedupe keys has no high-water marks, so no time to store them with";
        return Err(StoreError::new(ErrorClass::Poison, message));
    };
    let mut generations: BTreeMap<u64, BTreeMap<[u8; 16], &[u8]>> = BTreeMap::new();
    for entry in &batch.dedupes {
        generations.entry(entry.generation).or_default().insert(entry.hash, &entry.answer);
    }
    let mut statements = Vec::new();
    for (generation, keys) in generations {
        let row = |(hash, answer): ([u8; 16], &[u8])| -> Vec<Value> {
            vec![hash.as_slice().into(), marks.time.into(), answer.into()]
        };
        let rows = keys.into_iter().map(row).collect();
        let table = format!("dedupe_{generation}");
        // The table may still hold a key whose window is over.
        let columns = ["hash", "at", "answer"];
        statements.extend(row_counts::insert("REPLACE", &table, &columns, rows, statement_bytes));
    }
    Ok(statements)
}
