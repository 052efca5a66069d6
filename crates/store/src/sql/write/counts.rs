//! Writes topics with their counts, and the sweeps' checkpoints.

use std::ops::Range;

use forebay_types::{Timestamp, TopicId};

use crate::{
    batch::Batch,
    error::StoreError,
    rows::{Checkpoint, TopicCounts, TopicRow},
    sql::{dialect::Dialect, pack, row_counts, statement::Statement, value::Value},
    tally::NamespaceTally,
};

/// Inserts topics. A new topic's own counts are as of the previous batch: the batch's deltas are added.
pub(super) fn new_topics(batch: &Batch, statement_bytes: usize) -> Vec<Statement> {
    let row = |topic: &TopicRow| -> Vec<Value> {
        let TopicCounts { ready, scheduled, dead } = topic.counts;
        vec![
            topic.id.into(),
            (&*topic.name.namespace).into(),
            (&*topic.name.topic).into(),
            ready.into(),
            scheduled.into(),
            dead.into(),
            (batch.number - 1).into(),
        ]
    };
    let columns = ["id", "namespace", "name", "ready", "scheduled", "dead", "counted_at"];
    let rows = batch.new_topics.iter().map(row).collect();
    row_counts::insert("INSERT", "topic", &columns, rows, statement_bytes)
}

pub(super) fn drop_topics(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    row_counts::by_keys(dialect, "DELETE FROM topic", "id", batch.drop_topics.clone())
}

/// Writes the tallies of forgotten topics.
pub(super) fn namespace_tallies(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let mut rows = Vec::with_capacity(batch.namespace_tallies.len());
    for NamespaceTally { namespace, tally, deleted_through, changed_in } in &batch.namespace_tallies {
        let tally = tally.as_ref().map_or(Ok(Value::Null), pack::tally)?;
        rows.push(vec![(&**namespace).into(), tally, (*deleted_through).into(), (*changed_in).into()]);
    }
    let columns = ["namespace", "tally", "deleted_through", "changed_in"];
    let mut statements = row_counts::insert("REPLACE", "namespace_tally", &columns, rows, statement_bytes);
    let gone: Vec<&str> = batch.namespace_tally_deletes.iter().map(|namespace| &**namespace).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM namespace_tally", "namespace", gone));
    Ok(statements)
}

/// Topics that only have dead letters lose some. With the last one a topic goes.
pub(super) fn dormant_losses(batch: &Batch) -> Vec<Statement> {
    let lose = |(topic, count): &(TopicId, i64)| {
        [
            Statement::new(
                "UPDATE topic SET dead = dead - ? WHERE id = ?",
                vec![(*count).into(), (*topic).into()],
            ),
            Statement::new("DELETE FROM topic WHERE id = ? AND dead = 0", vec![(*topic).into()]),
        ]
    };
    batch.dormant_losses.iter().flat_map(lose).collect()
}

pub(super) fn count(batch: &Batch, dialect: Dialect) -> Result<Vec<Statement>, StoreError> {
    let mut statements = Vec::new();
    if !batch.count_deltas.is_empty() || !batch.tallies.is_empty() {
        let at = batch.marks.map_or(Timestamp::MIN, |marks| marks.time);
        let tallies = match batch.tallies.is_empty() {
            true => Value::Null,
            false => pack::tallies(at, &batch.tallies)?,
        };
        statements.push(Statement::new(
            "INSERT INTO count_delta (batch, deltas, tallies) VALUES (?, ?, ?)",
            vec![batch.number.into(), pack::deltas(&batch.count_deltas)?, tallies],
        ));
    }
    let mut folds = Vec::with_capacity(batch.folds.len());
    for (topic, TopicCounts { ready, scheduled, dead }, tally) in &batch.folds {
        let tally = tally.as_ref().map_or(Ok(Value::Null), pack::tally)?;
        let counts = [*ready, *scheduled, *dead].map(Value::from);
        let values = counts.into_iter().chain([batch.number.into(), tally]).collect();
        folds.push((i64::from(topic.0), values));
    }
    let sets = ["ready = {}", "scheduled = {}", "dead = {}", "counted_at = {}", "tally = {}"];
    statements.extend(row_counts::update_each(dialect, "topic", "id", &sets, folds));
    if let Some(Range { start, end }) = batch.drop_deltas.clone() {
        let sql = "DELETE FROM count_delta WHERE batch >= ? AND batch < ?";
        statements.push(Statement::new(sql, vec![start.into(), end.into()]));
    }
    Ok(statements)
}

pub(super) fn checkpoints(batch: &Batch, statement_bytes: usize) -> Vec<Statement> {
    let row = |checkpoint: &Checkpoint| -> Vec<Value> {
        vec![checkpoint.sweep.name().into(), checkpoint.at.into()]
    };
    let rows = batch.checkpoints.iter().map(row).collect();
    row_counts::insert("REPLACE", "checkpoint", &["sweep", "at"], rows, statement_bytes)
}
