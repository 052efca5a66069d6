//! New items, with their rows in `schedule` and `expiry`.

use forebay_types::{DeliveryPolicy, Seq, State, Timestamp};

use crate::{
    ErrorClass, ItemRow, StoreError,
    sql::{Statement, Value, pack, shape},
};

const COLUMNS: [&str; 16] = [
    "seq",
    "topic",
    "state",
    "priority",
    "rank_us",
    "enqueued_at",
    "expires_at",
    "lease_ms",
    "max_attempts",
    "policy",
    "deliveries",
    "failures",
    "body_bytes",
    "headers",
    "metadata",
    "payload",
];

pub(super) fn items(items: &[ItemRow], statement_bytes: usize) -> Result<Vec<Statement>, StoreError> {
    let mut sorted: Vec<&ItemRow> = items.iter().collect();
    sorted.sort_unstable_by_key(|item| item.key.seq);
    let (plain, others): (Vec<&ItemRow>, Vec<&ItemRow>) = sorted.into_iter().partition(|item| is_plain(item));
    let head = format!("INSERT INTO item ({}) VALUES ", COLUMNS.join(","));
    let mut values = Vec::with_capacity(plain.len() * PLAIN_MARKS);
    for item in plain {
        values.extend(plain_row(item)?);
    }
    let mut statements = shape::insert_tuples(&head, PLAIN, PLAIN_MARKS, values, statement_bytes);
    let rows = others.into_iter().map(row).collect::<Result<_, _>>()?;
    statements.extend(shape::insert("INSERT", "item", &COLUMNS, rows, statement_bytes));
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
    shape::insert("INSERT", table, &[column, "seq"], rows, statement_bytes)
}

/// A new item that is ready, does not expire and carries a payload alone. What is alike in nearly all items stands in the
/// statement itself: a value that a server is sent costs it more than a constant.
const PLAIN: &str = "(?,?,0,?,?,?,NULL,?,?,0,0,0,?,X'',X'',?)";
const PLAIN_MARKS: usize = 9;

fn is_plain(item: &ItemRow) -> bool {
    item.state == State::Ready
        && item.expires_at.is_none()
        && item.policy == DeliveryPolicy::AtLeastOnce
        && (item.deliveries, item.failures) == (0, 0)
        && item.body.headers.is_empty()
        && item.body.metadata.is_empty()
}

fn plain_row(item: &ItemRow) -> Result<[Value; PLAIN_MARKS], StoreError> {
    check(item)?;
    Ok([
        item.key.seq.into(),
        item.topic.into(),
        item.key.priority.into(),
        item.key.rank.into(),
        item.enqueued_at.into(),
        item.lease_ms.into(),
        item.max_attempts.into(),
        (item.body.bytes() as u64).into(),
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
        item.enqueued_at.into(),
        item.expires_at.into(),
        item.lease_ms.into(),
        item.max_attempts.into(),
        item.policy.into(),
        item.deliveries.into(),
        item.failures.into(),
        (item.body.bytes() as u64).into(),
        pack::headers(&item.body.headers)?,
        item.body.metadata.clone().into(),
        item.body.payload.clone().into(),
    ])
}
