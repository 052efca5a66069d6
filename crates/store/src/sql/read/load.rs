//! Reads what a new owner needs. The items themselves are not read.

use crate::{
    error::StoreError,
    operation::{
        OperationId, OperationKind, OperationProgress, OperationRow, unpack_operation, unpack_position,
    },
    read_ahead::ReadAhead,
    rows::{Checkpoint, LeaseRow, ShardSnapshot, Sweep},
    sql::{
        pack,
        read::load_topics,
        statement::{ReadConnection, Statement},
        value::Row,
    },
};

pub(super) async fn load(
    connection: &dyn ReadConnection,
    ahead: ReadAhead,
) -> Result<ShardSnapshot, StoreError> {
    let (operations, unreadable_operations) = operations(connection).await?;
    let mut snapshot = ShardSnapshot {
        leases: leases(connection).await?,
        checkpoints: checkpoints(connection).await?,
        generations: generations(connection).await?,
        operations,
        unreadable_operations,
        ..ShardSnapshot::default()
    };
    load_topics::topics(connection, ahead, &mut snapshot).await?;
    Ok(snapshot)
}

async fn leases(connection: &dyn ReadConnection) -> Result<Vec<LeaseRow>, StoreError> {
    let sql = "SELECT l.id, l.entries, o.open_bits \
               FROM lease l LEFT JOIN lease_open o ON o.id = l.id ORDER BY l.id";
    let rows = connection.fetch(Statement::new(sql, vec![])).await?;
    let decode = |row: &Row| {
        let entries = pack::unpack_entries(&row.bytes(1)?)?;
        let open = match row.optional_bytes(2)? {
            Some(bits) => pack::unpack_bits(&bits, entries.len())?,
            None => vec![true; entries.len()],
        };
        Ok(LeaseRow { id: row.u64(0)?, entries, open })
    };
    rows.iter().map(decode).collect()
}

async fn checkpoints(connection: &dyn ReadConnection) -> Result<Vec<Checkpoint>, StoreError> {
    let rows = connection.fetch(Statement::new("SELECT sweep, at FROM checkpoint", vec![])).await?;
    let mut checkpoints = Vec::new();
    for row in &rows {
        let name = row.bytes(0)?;
        // Another version of this program may have other sweeps. They are ignored.
        if let Some(sweep) = Sweep::ALL.into_iter().find(|sweep| sweep.name().as_bytes() == name) {
            checkpoints.push(Checkpoint { sweep, at: row.time(1)? });
        }
    }
    checkpoints.sort_unstable();
    Ok(checkpoints)
}

/// There are few: an owner forgets those that ended long ago. Those of a later program, which this one can't
/// read, are only named.
async fn operations(
    connection: &dyn ReadConnection,
) -> Result<(Vec<OperationRow>, Vec<OperationId>), StoreError> {
    let sql = "SELECT id, spec, as_of, as_of_time, as_of_batch, position, scanned, matched, changed, \
               skipped, failed, ended_at FROM operation ORDER BY id";
    let (mut parts, mut unreadable) = (Vec::new(), Vec::new());
    for row in connection.fetch(Statement::new(sql, vec![])).await? {
        match operation(&row)? {
            Some(part) => parts.push(part),
            None => unreadable.push(OperationId(row.hash(0)?)),
        }
    }
    Ok((parts, unreadable))
}

fn operation(row: &Row) -> Result<Option<OperationRow>, StoreError> {
    let mut progress = OperationProgress {
        scanned: row.u64(6)?,
        matched: row.u64(7)?,
        changed: row.u64(8)?,
        skipped: row.u64(9)?,
        failed: row.u64(10)?,
        ended_at: row.optional_time(11)?,
        ..OperationProgress::begin(OperationKind::Purge, (row.seq(2)?, row.time(3)?, row.u64(4)?))
    };
    let spec = unpack_operation(&row.bytes(1)?);
    let is_read = unpack_position(&row.bytes(5)?, &mut progress);
    Ok(spec.filter(|_| is_read).map(|spec| OperationRow { spec, progress }))
}

async fn generations(connection: &dyn ReadConnection) -> Result<Vec<u64>, StoreError> {
    generations_of(&connection.fetch(Statement::new(connection.dialect().generations(), vec![])).await?)
}

/// The generations of the dedupe table, oldest first, from the names of tables.
pub(super) fn generations_of(rows: &[Row]) -> Result<Vec<u64>, StoreError> {
    let mut generations = Vec::new();
    for row in rows {
        let name = row.str(0)?;
        generations.extend(name.strip_prefix("dedupe_").and_then(|number| number.parse::<u64>().ok()));
    }
    generations.sort_unstable();
    Ok(generations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::value::Value;

    #[test]
    fn an_operation_of_a_later_program_is_not_read_and_fails_nothing() {
        use crate::operation::{OperationCursor, pack_operation};

        let cursor = pack_operation(&OperationCursor::first(OperationKind::Purge));
        let spec = "\0".repeat(300).into_bytes();
        let row = |spec: &[u8], position: &[u8]| {
            let mut values: Vec<Value> = vec![spec.into(), spec.into()];
            values.extend((0..3).map(|_| Value::Int(1)));
            values.push(position.into());
            values.extend((0..5).map(|_| Value::Int(2)));
            values.push(Value::Null);
            Row(values)
        };
        let read = operation(&row(&spec, &cursor)).unwrap().unwrap();
        assert_eq!((read.progress.failed, read.progress.ended_at, read.progress.estimated), (2, None, 0));
        for (spec, position) in [(&[9; 16][..], &cursor[..]), (&spec[..], b"\x09"), (b"", b"")] {
            assert!(operation(&row(spec, position)).unwrap().is_none());
        }
    }
}
