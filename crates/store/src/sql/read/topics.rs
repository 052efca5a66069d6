//! Reads topics for those who look at them: dormant ones, which memory has forgotten, and when scheduled
//! items are due.

use std::ops::Bound;

use forebay_types::{Timestamp, TopicId, TopicName};

use super::load_topics::DEAD_ALONE;
use crate::{
    error::StoreError,
    names::NameRange,
    rows::{TopicCounts, TopicRow},
    sql::{
        row_counts,
        statement::{ReadConnection, Statement},
        value::{Row, Value},
    },
};

/// Reads the first topics of a range that have dead letters and nothing else. Rows that are not dormant are
/// passed over, so the range should be as short as the caller knows it to be.
pub(super) async fn dormant(
    connection: &dyn ReadConnection,
    range: &NameRange,
    limit: usize,
) -> Result<Vec<TopicRow>, StoreError> {
    let table = connection.dialect().topics_by_name();
    let mut found: Vec<TopicRow> = Vec::new();
    for (condition, mut values) in pieces(range) {
        if found.len() >= limit {
            break;
        }
        let sql = format!(
            "SELECT id, namespace, name, dead FROM {table} WHERE {condition} AND {DEAD_ALONE} \
             ORDER BY namespace, name LIMIT ?"
        );
        values.push(((limit - found.len()) as u64).into());
        for row in connection.fetch(Statement::new(sql, values)).await? {
            found.push(decode(&row)?);
        }
    }
    Ok(found)
}

fn decode(row: &Row) -> Result<TopicRow, StoreError> {
    let name = TopicName::new(row.str(1)?, row.str(2)?);
    Ok(TopicRow {
        id: row.topic(0)?,
        name,
        counts: TopicCounts { dead: row.int(3)?, ..TopicCounts::default() },
    })
}

/// The range as up to three tight ranges of the index, in order: a server finds no end of a comparison of
/// pairs.
fn pieces(range: &NameRange) -> Vec<(String, Vec<Value>)> {
    let NameRange { from, through } = range;
    let (first, operator) = match from {
        Bound::Unbounded => (None, ""),
        Bound::Included(name) => (Some(name), ">="),
        Bound::Excluded(name) => (Some(name), ">"),
    };
    let text = |text: &str| Value::from(text);
    let mut pieces = Vec::with_capacity(3);
    if let Some(first) = first {
        let mut condition = format!("namespace = ? AND name {operator} ?");
        let mut values = vec![text(&first.namespace), text(&first.topic)];
        let same = through.as_ref().filter(|last| last.namespace == first.namespace);
        if let Some(last) = same {
            condition.push_str(" AND name <= ?");
            values.push(text(&last.topic));
        }
        pieces.push((condition, values));
        if same.is_some() {
            return pieces;
        }
    }
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    if let Some(first) = first {
        conditions.push("namespace > ?");
        values.push(text(&first.namespace));
    }
    if let Some(last) = through {
        conditions.push("namespace < ?");
        values.push(text(&last.namespace));
    }
    let between = if conditions.is_empty() { "1 = 1".to_owned() } else { conditions.join(" AND ") };
    pieces.push((between, values));
    if let Some(last) = through {
        pieces
            .push(("namespace = ? AND name <= ?".to_owned(), vec![text(&last.namespace), text(&last.topic)]));
    }
    pieces
}

/// Reads when the next scheduled item of each of these topics is due. Topics without one are left out. It
/// looks at each of their scheduled items.
pub(super) async fn first_due(
    connection: &dyn ReadConnection,
    topics: &[TopicId],
) -> Result<Vec<(TopicId, Timestamp)>, StoreError> {
    let table = connection.dialect().item_in_delivery_order();
    let mut found = Vec::with_capacity(topics.len());
    for ids in row_counts::key_lists(topics.to_vec()) {
        let placeholders = row_counts::placeholders(ids.len());
        let sql = format!(
            "SELECT i.topic, MIN(i.rank_us) FROM {table} \
             WHERE i.topic IN ({placeholders}) AND i.state = 1 GROUP BY i.topic"
        );
        let values = ids.into_iter().map(Into::into).collect();
        for row in connection.fetch(Statement::new(sql, values)).await? {
            found.push((row.topic(0)?, row.time(1)?));
        }
    }
    Ok(found)
}
