//! New items, with their rows in `schedule` and `expiry`.

use forebay_types::{Seq, State, Timestamp};

use crate::{
    ErrorClass, ItemRow, StoreError,
    sql::{Attributes, Statement, Value, row_counts},
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
    let due = |item: &ItemRow| Some((Timestamp::from_micros(item.key.rank), item.key.seq));
    let waiting = items.iter().filter(|item| item.state == State::Scheduled).filter_map(due);
    statements.extend(schedule(waiting.collect(), statement_bytes));
    let mortal = items.iter().filter_map(|item| item.expires_at.map(|at| (at, item.key.seq)));
    statements.extend(times("expiry", "expires_at", mortal.collect(), statement_bytes));
    Ok(statements)
}

/// Rows in `schedule`, for items that wait for their time.
pub(super) fn schedule(waiting: Vec<(Timestamp, Seq)>, statement_bytes: usize) -> Vec<Statement> {
    times("schedule", "deliver_at", waiting, statement_bytes)
}

fn times(
    table: &str,
    column: &str,
    mut times: Vec<(Timestamp, Seq)>,
    statement_bytes: usize,
) -> Vec<Statement> {
    times.sort_unstable();
    let rows = times.into_iter().map(|(at, seq)| vec![at.into(), seq.into()]).collect();
    row_counts::insert("INSERT", table, &[column, "seq"], rows, statement_bytes)
}

/// A new item that is ready and has no metadata. What is alike in nearly all items stands in the statement itself: a value
/// that a server is sent costs it more than a constant.
const PLAIN: &str = "(?,?,0,?,?,0,0,?,X'',?)";
const PLAIN_VALUES: usize = 6;

fn is_plain(item: &ItemRow) -> bool {
    item.state == State::Ready && (item.deliveries, item.failures) == (0, 0) && item.body.metadata.is_empty()
}

fn plain_row(item: &ItemRow) -> Result<[Value; PLAIN_VALUES], StoreError> {
    check(item)?;
    Ok([
        item.key.seq.into(),
        item.topic.into(),
        item.key.priority.into(),
        item.key.rank.into(),
        Attributes::pack(item)?,
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
        item.deliveries.into(),
        item.failures.into(),
        Attributes::pack(item)?,
        item.body.metadata.clone().into(),
        item.body.payload.clone().into(),
    ])
}
