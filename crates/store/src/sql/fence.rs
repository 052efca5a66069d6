//! The fence: one row that every batch advances by compare-and-set.

use std::time::Duration;

use forebay_types::Incarnation;

use super::{
    pack,
    statement::{Statement, scalar},
    value::Row,
};
use crate::{
    batch::Batch,
    error::StoreError,
    rows::{Fence, HighWaterMarks, Observation},
    shard::Claim,
};

/// The owner that the fence must name for a batch to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The owner's epoch.
    pub(crate) epoch: u64,
    /// The owner's random name.
    pub(crate) incarnation: Incarnation,
}

/// Advances the fence from the previous batch to this one.
///
/// If another owner holds the fence, the expression yields NULL. The column is NOT NULL, so the statement
/// fails and the transaction rolls back. The statement must fail rather than match no row: a server stops at
/// the first failure, so COMMIT can travel in the same round trip.
pub(crate) fn advance(batch: &Batch, owner: Owner) -> Statement {
    let mut values = vec![
        owner.epoch.into(),
        owner.incarnation.0.as_slice().into(),
        batch.number.wrapping_sub(1).into(),
        batch.number.into(),
    ];
    let marks = match batch.marks {
        Some(HighWaterMarks { seq, topic, rank, time }) => {
            values.extend([seq.into(), topic.into(), rank.into(), time.into()]);
            ", last_seq = ?, last_topic = ?, last_rank_us = ?, last_time = ?"
        }
        None => "",
    };
    let sql = format!(
        "/* forebay batch */ UPDATE fence \
         SET batch = CASE WHEN epoch = ? AND incarnation = ? AND batch = ? THEN ? END{marks} WHERE id = 1"
    );
    Statement::new(sql, values)
}

/// Moves the fence to the next epoch, unless it has changed since it was seen.
pub(crate) fn claim(incarnation: Incarnation, seen: &Observation) -> Statement {
    Statement::new(
        "/* forebay take-over */ UPDATE fence SET epoch = epoch + 1, incarnation = ? \
         WHERE id = 1 AND epoch = ? AND batch = ?",
        vec![incarnation.0.as_slice().into(), seen.epoch.into(), seen.batch.into()],
    )
}

const READ: &str = "SELECT epoch, incarnation, batch, last_seq, last_topic, last_rank_us, last_time \
                    FROM fence WHERE id = 1";

/// Reads the fence.
pub(crate) fn read() -> Statement {
    Statement::new(READ, vec![])
}

/// Reads the fence after waiting for any transaction that holds its row lock.
pub(crate) fn read_locked() -> Statement {
    Statement::new(format!("/* forebay resolve */ {READ} FOR UPDATE"), vec![])
}

/// Decodes what [`read`] returns.
pub(crate) fn decode(rows: Vec<Row>) -> Result<Fence, StoreError> {
    let row = scalar(rows, "the fence")?;
    Ok(Fence {
        epoch: row.u64(0)?,
        incarnation: Incarnation(row.hash(1)?),
        batch: row.u64(2)?,
        marks: HighWaterMarks {
            seq: row.seq(3)?,
            topic: row.topic(4)?,
            rank: row.int(5)?,
            time: row.time(6)?,
        },
    })
}

/// How many columns [`decode_observation`] reads.
pub(crate) const OBSERVED: usize = 8;

const OBSERVE: &str = "SELECT f.epoch, f.batch, h.renewals, h.address, t.topologies, f.incarnation, \
                       h.lease_ms, h.successor";

/// Reads an observation.
pub(crate) fn observe() -> Statement {
    let from = "FROM fence f, heartbeat h, topology_history t WHERE f.id = 1 AND h.id = 1 AND t.id = 1";
    Statement::new(format!("{OBSERVE} {from}"), vec![])
}

/// One part of a query that reads the observations of many shards. The row has one more column, with
/// `place`. The schema's name contains no backtick.
pub(crate) fn observe_among(schema: &str, place: usize) -> String {
    format!(
        "{OBSERVE}, {place} FROM `{schema}`.fence f, `{schema}`.heartbeat h, `{schema}`.topology_history t \
         WHERE f.id = 1 AND h.id = 1 AND t.id = 1"
    )
}

/// Decodes what [`observe`] returns.
pub(crate) fn decode_observation(rows: Vec<Row>) -> Result<Observation, StoreError> {
    let row = scalar(rows, "the fence and the heartbeat")?;
    Ok(Observation {
        epoch: row.u64(0)?,
        batch: row.u64(1)?,
        renewals: row.u64(2)?,
        address: row.text(3)?,
        topology_history: pack::unpack_topologies(&row.bytes(4)?)?,
        incarnation: Incarnation(row.hash(5)?),
        lease: Duration::from_millis(row.u64(6)?),
        successor: row.text(7)?,
        orphaned: false,
    })
}

/// Writes the heartbeat in the transaction of a take-over, unless the old owner has renewed its claim since
/// it was seen: the old owner trusts such a renewal.
pub(crate) fn first_renewal(owner: Owner, claim: &Claim, seen: &Observation) -> Statement {
    let lease_ms = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX);
    Statement::new(
        "/* forebay take-over */ UPDATE heartbeat \
         SET epoch = ?, incarnation = ?, address = ?, lease_ms = ?, successor = ?, renewals = renewals + 1 \
         WHERE id = 1 AND renewals = ?",
        vec![
            owner.epoch.into(),
            owner.incarnation.0.as_slice().into(),
            claim.address.as_str().into(),
            lease_ms.into(),
            "".into(),
            seen.renewals.into(),
        ],
    )
}

/// Renews the heartbeat, if this owner still holds it.
pub(crate) fn renew(owner: Owner) -> Statement {
    Statement::new(
        "/* forebay renewal */ UPDATE heartbeat SET renewals = renewals + 1 \
         WHERE id = 1 AND epoch = ? AND incarnation = ?",
        vec![owner.epoch.into(), owner.incarnation.0.as_slice().into()],
    )
}

/// Releases the shard, if this owner still holds it.
pub(crate) fn release(owner: Owner, successor: &str) -> Statement {
    Statement::new(
        "/* forebay release */ UPDATE heartbeat SET renewals = renewals + 1, address = ?, successor = ? \
         WHERE id = 1 AND epoch = ? AND incarnation = ?",
        vec!["".into(), successor.into(), owner.epoch.into(), owner.incarnation.0.as_slice().into()],
    )
}
