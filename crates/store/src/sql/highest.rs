//! The highest numbers in a shard's rows. A fence that is behind them would give numbers out twice, and every
//! batch that did would fail at a duplicate key. A fence gets behind its rows where somebody restores it from
//! an older dump.

use forebay_types::{Seq, TopicId};

use super::{
    statement::{Session, Statement, scalar},
    value::Value,
};
use crate::{
    error::StoreError,
    rows::{Fence, HighWaterMarks},
};

/// Asks for one row behind the fence's numbers. There is none, so no table is searched.
const IS_BEHIND: &str = "SELECT EXISTS (SELECT 1 FROM item WHERE seq > ?) \
                         + EXISTS (SELECT 1 FROM dead_letter WHERE seq > ?) \
                         + EXISTS (SELECT 1 FROM topic WHERE id > ?) \
                         + EXISTS (SELECT 1 FROM lease WHERE id > ?) \
                         + EXISTS (SELECT 1 FROM count_delta WHERE batch > ?)";

/// Cast, since the servers make a decimal number of an unsigned one and a signed one.
const HIGHEST: &str = "SELECT CAST(COALESCE((SELECT MAX(seq) FROM item), 0) AS SIGNED), \
                       CAST(COALESCE((SELECT MAX(seq) FROM dead_letter), 0) AS SIGNED), \
                       CAST(COALESCE((SELECT MAX(id) FROM topic), 0) AS SIGNED), \
                       CAST(COALESCE((SELECT MAX(id) FROM lease), 0) AS SIGNED), \
                       CAST(COALESCE((SELECT MAX(batch) FROM count_delta), 0) AS SIGNED)";

/// Raises the fence's numbers to those of the shard's rows, in the transaction of a take-over. Returns the
/// fence as it is then.
pub(super) async fn raise(session: &mut dyn Session, fence: Fence) -> Result<Fence, StoreError> {
    let HighWaterMarks { seq, topic, rank, time } = fence.marks;
    let values: Vec<Value> =
        vec![seq.into(), seq.into(), topic.into(), fence.batch.into(), fence.batch.into()];
    let behind = session.fetch(Statement::new(IS_BEHIND, values)).await?;
    if scalar(behind, "whether rows are behind the fence")?.int(0)? == 0 {
        return Ok(fence);
    }
    let highest = scalar(session.fetch(Statement::new(HIGHEST, vec![])).await?, "the highest numbers")?;
    let seq: Seq = seq.max(highest.seq(0)?).max(highest.seq(1)?);
    let topic: TopicId = topic.max(highest.topic(2)?);
    let batch = fence.batch.max(highest.u64(3)?).max(highest.u64(4)?);
    let raised = Fence { batch, marks: HighWaterMarks { seq, topic, rank, time }, ..fence };
    let sql = "/* forebay take-over */ UPDATE fence SET batch = ?, last_seq = ?, last_topic = ? WHERE id = 1";
    let values: Vec<Value> = vec![batch.into(), seq.into(), topic.into()];
    session.execute(Statement::new(sql, values)).await?;
    Ok(raised)
}
