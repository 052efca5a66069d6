//! The fence: one row that every batch moves on by compare-and-set.

use forebay_types::Incarnation;

use super::{Row, Statement, pack, scalar};
use crate::{Batch, Fence, HighWaterMarks, Observation, Outcome, StoreError};

/// Who owns the shard: what the fence must say for a batch to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) epoch: u64,
    pub(crate) incarnation: Incarnation,
}

/// Moves the fence from the batch before to this one. Where it stands elsewhere the number would become NULL, which the column
/// does not take: the statement *fails*, so that a COMMIT which was sent together with it is not run.
pub(crate) fn pass(batch: &Batch, owner: Owner) -> Statement {
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
        "UPDATE fence SET batch = CASE WHEN epoch = ? AND incarnation = ? AND batch = ? THEN ? END{marks} WHERE id = 1"
    );
    Statement::new(sql, values)
}

/// Moves the fence to the next epoch, if it stands where it was seen.
pub(crate) fn take(incarnation: Incarnation, seen: &Observation) -> Statement {
    Statement::new(
        "UPDATE fence SET epoch = epoch + 1, incarnation = ? WHERE id = 1 AND epoch = ? AND batch = ?",
        vec![incarnation.0.as_slice().into(), seen.epoch.into(), seen.batch.into()],
    )
}

const READ: &str = "SELECT epoch, incarnation, batch, last_seq, last_topic, last_rank_us, last_time \
                    FROM fence WHERE id = 1";

pub(crate) fn read() -> Statement {
    Statement::new(READ, vec![])
}

/// Waits for whoever holds the row.
pub(crate) fn read_locked() -> Statement {
    Statement::new(format!("{READ} FOR UPDATE"), vec![])
}

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

/// What the fence says about a batch whose COMMIT failed.
pub(crate) fn outcome(fence: &Fence, owner: Owner, number: u64) -> Outcome {
    if (Owner { epoch: fence.epoch, incarnation: fence.incarnation }) != owner {
        Outcome::Foreign
    } else if fence.batch >= number {
        Outcome::Committed
    } else {
        Outcome::NotCommitted
    }
}

/// What a bystander sees.
pub(crate) fn observe() -> Statement {
    Statement::new(
        "SELECT f.epoch, f.batch, h.renewals, h.address, t.topologies FROM fence f, heartbeat h, topology_history t \
         WHERE f.id = 1 AND h.id = 1 AND t.id = 1",
        vec![],
    )
}

pub(crate) fn decode_observation(rows: Vec<Row>) -> Result<Observation, StoreError> {
    let row = scalar(rows, "the fence and the heartbeat")?;
    Ok(Observation {
        epoch: row.u64(0)?,
        batch: row.u64(1)?,
        renewals: row.u64(2)?,
        address: row.text(3)?,
        topology_history: pack::unpack_topologies(&row.bytes(4)?)?,
        orphaned: false,
    })
}

/// Writes the heartbeat in the transaction of a take-over.
pub(crate) fn first_renewal(owner: Owner, address: &str) -> Statement {
    Statement::new(
        "UPDATE heartbeat SET epoch = ?, incarnation = ?, address = ?, renewals = renewals + 1 WHERE id = 1",
        vec![owner.epoch.into(), owner.incarnation.0.as_slice().into(), address.into()],
    )
}

/// Moves the heartbeat on, if it is still ours.
pub(crate) fn renew(owner: Owner) -> Statement {
    Statement::new(
        "UPDATE heartbeat SET renewals = renewals + 1 WHERE id = 1 AND epoch = ? AND incarnation = ?",
        vec![owner.epoch.into(), owner.incarnation.0.as_slice().into()],
    )
}

/// Gives the shard up, if it is still ours.
pub(crate) fn release(owner: Owner) -> Statement {
    Statement::new(
        "UPDATE heartbeat SET renewals = renewals + 1, address = ? WHERE id = 1 AND epoch = ? AND incarnation = ?",
        vec!["".into(), owner.epoch.into(), owner.incarnation.0.as_slice().into()],
    )
}
