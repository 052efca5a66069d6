//! Inserts items, with their rows in `schedule` and `expiry`.

use forebay_types::{State, Timestamp};

use super::times;
use crate::{
    batch::{DueKey, ItemRow},
    error::{ErrorClass, StoreError},
    sql::{attributes::PackedAttributes, row_counts, statement::Statement, value::Value},
};

const COLUMNS: [&str; 10] = [
    "seq",
    "topic",
    "state",
    "priority",
    "rank_us",
    "deliveries",
    "failures",
    "attributes",
    "metadata",
    "payload",
];

pub(super) fn items(items: &[ItemRow], statement_bytes: usize) -> Result<Vec<Statement>, StoreError> {
    let mut sorted: Vec<&ItemRow> = items.iter().collect();
    sorted.sort_unstable_by_key(|item| item.key.seq);
    let (plain, others): (Vec<&ItemRow>, Vec<&ItemRow>) = sorted.into_iter().partition(|item| is_plain(item));
    let head = format!("INSERT INTO item ({}) VALUES ", COLUMNS.join(","));
    let mut values = Vec::with_capacity(plain.len() * PLAIN_VALUES);
    for item in plain {
        values.extend(plain_row(item)?);
    }
    let mut statements = row_counts::insert_tuples(&head, PLAIN, PLAIN_VALUES, values, statement_bytes);
    let rows = others.into_iter().map(row).collect::<Result<_, _>>()?;
    statements.extend(row_counts::insert("INSERT", "item", &COLUMNS, rows, statement_bytes));
    let due = |item: &ItemRow| DueKey { at: Timestamp::from_micros(item.key.rank), seq: item.key.seq };
    let scheduled = items.iter().filter(|item| item.state == State::Scheduled).map(due);
    statements.extend(times::schedule(scheduled.collect(), statement_bytes));
    let expiry = |item: &ItemRow| Some(DueKey { at: item.attributes.expires_at?, seq: item.key.seq });
    statements.extend(times::expiry(items.iter().filter_map(expiry).collect(), statement_bytes));
    Ok(statements)
}

/// The tuple of a new item that is ready and has no metadata. Values that nearly all items share are
/// constants in the statement's text: a server handles a constant faster than a value.
const PLAIN: &str = "(?,?,0,?,?,0,0,?,X'',?)";
const PLAIN_VALUES: usize = 6;

fn is_plain(item: &ItemRow) -> bool {
    let counters = (item.attributes.deliveries, item.attributes.failures);
    item.state == State::Ready && counters == (0, 0) && item.body.metadata.is_empty()
}

fn plain_row(item: &ItemRow) -> Result<[Value; PLAIN_VALUES], StoreError> {
    check(item)?;
    Ok([
        item.key.seq.into(),
        item.topic.into(),
        item.key.priority.into(),
        item.key.rank.into(),
        PackedAttributes::pack(item)?,
        item.body.payload.clone().into(),
    ])
}

fn check(item: &ItemRow) -> Result<(), StoreError> {
    match item.key.seq.0 > i64::MAX.cast_unsigned() {
        true => Err(StoreError::new(ErrorClass::Poison, "an item number of 2^63 or more")),
        false => Ok(()),
    }
}

fn row(item: &ItemRow) -> Result<Vec<Value>, StoreError> {
    check(item)?;
    Ok(vec![
        item.key.seq.into(),
        item.topic.into(),
        item.state.into(),
        item.key.priority.into(),
        item.key.rank.into(),
        item.attributes.deliveries.into(),
        item.attributes.failures.into(),
        PackedAttributes::pack(item)?,
        item.body.metadata.clone().into(),
        item.body.payload.clone().into(),
    ])
}
