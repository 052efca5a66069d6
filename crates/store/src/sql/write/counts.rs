//! Topics with their counts, and the sweeps' checkpoints.

use forebay_types::TopicId;

use crate::{
    Batch, StoreError, TopicCounts,
    sql::{Dialect, Statement, Value, pack, row_counts},
};

/// A new topic's own counts are those of before this batch; the batch's deltas come on top.
pub(super) fn new_topics(batch: &Batch, statement_bytes: usize) -> Vec<Statement> {
    let row = |topic: &crate::TopicRow| -> Vec<Value> {
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
    row_counts::insert(
        "INSERT",
        "topic",
        &columns,
        batch.new_topics.iter().map(row).collect(),
        statement_bytes,
    )
}

pub(super) fn drop_topics(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    row_counts::by_keys(dialect, "DELETE FROM topic", "id", batch.drop_topics.clone())
}

pub(super) fn count(batch: &Batch, dialect: Dialect) -> Result<Vec<Statement>, StoreError> {
    let mut statements = Vec::new();
    if !batch.count_deltas.is_empty() {
        statements.push(Statement::new(
            "INSERT INTO count_delta (batch, deltas) VALUES (?, ?)",
            vec![batch.number.into(), pack::deltas(&batch.count_deltas)?],
        ));
    }
    let fold = |(topic, counts): &(TopicId, TopicCounts)| {
        let TopicCounts { ready, scheduled, dead } = *counts;
        (i64::from(topic.0), vec![ready.into(), scheduled.into(), dead.into(), batch.number.into()])
    };
    let columns = ["ready", "scheduled", "dead", "counted_at"];
    let folds = batch.count_folds.iter().map(fold).collect();
    statements.extend(row_counts::update_each(dialect, "topic", "id", &columns, folds));
    if let Some(before) = batch.deltas_before {
        statements.push(Statement::new("DELETE FROM count_delta WHERE batch < ?", vec![before.into()]));
    }
    Ok(statements)
}

pub(super) fn checkpoints(batch: &Batch, statement_bytes: usize) -> Vec<Statement> {
    let rows = batch.checkpoints.iter().map(|(sweep, at)| vec![sweep.name().into(), (*at).into()]).collect();
    row_counts::insert("REPLACE", "checkpoint", &["sweep", "at"], rows, statement_bytes)
}
