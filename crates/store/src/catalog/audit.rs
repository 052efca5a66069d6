//! Records of calls are added, ended once, read, and deleted when they are old.

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{
    audit_rows::{AuditEnd, AuditId, AuditOutcome, AuditQuery, AuditRecord, PrincipalKind},
    call::{Call, Change, End, Failure},
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Row, Session, Statement, Value},
};

/// The columns, in the order of [`values`].
const COLUMNS: &str = "id, principal, principal_kind, token_id, peer, method, namespace, target, reason, \
                       summary, outcome, failure, operation_id, node, trace_id, denied";

fn values(record: &AuditRecord) -> Vec<Value> {
    vec![
        record.id.0.as_slice().into(),
        record.principal.as_str().into(),
        of_kind(record.kind).into(),
        record.token_id.as_str().into(),
        record.peer.as_str().into(),
        record.method.as_str().into(),
        record.namespace.as_str().into(),
        record.target.as_str().into(),
        record.reason.as_str().into(),
        record.summary.as_str().into(),
        of_outcome(record.outcome).into(),
        record.failure.as_str().into(),
        record.operation_id.as_str().into(),
        record.node.as_str().into(),
        record.trace_id.as_str().into(),
        i64::from(record.outcome == AuditOutcome::Denied).into(),
    ]
}

const fn of_kind(kind: PrincipalKind) -> i64 {
    match kind {
        PrincipalKind::Anyone => 0,
        PrincipalKind::Token => 1,
        PrincipalKind::Certificate => 2,
        PrincipalKind::Operator => 3,
        PrincipalKind::Unknown(number) => number,
    }
}

const fn of_outcome(outcome: AuditOutcome) -> i64 {
    match outcome {
        AuditOutcome::Intended => 0,
        AuditOutcome::Done => 1,
        AuditOutcome::Failed | AuditOutcome::Denied => 2,
        AuditOutcome::Unknown(number) => number,
    }
}

fn record(row: &Row) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        id: AuditId(row.hash(0)?),
        principal: row.text(1)?,
        kind: match row.int(2)? {
            0 => PrincipalKind::Anyone,
            1 => PrincipalKind::Token,
            2 => PrincipalKind::Certificate,
            3 => PrincipalKind::Operator,
            other => PrincipalKind::Unknown(other),
        },
        token_id: row.text(3)?,
        peer: row.text(4)?,
        method: row.text(5)?,
        namespace: row.text(6)?,
        target: row.text(7)?,
        reason: row.text(8)?,
        summary: row.text(9)?,
        outcome: match row.int(10)? {
            0 => AuditOutcome::Intended,
            1 => AuditOutcome::Done,
            2 if row.int(15)? != 0 => AuditOutcome::Denied,
            2 => AuditOutcome::Failed,
            other => AuditOutcome::Unknown(other),
        },
        failure: row.text(11)?,
        operation_id: row.text(12)?,
        node: row.text(13)?,
        trace_id: row.text(14)?,
    })
}

/// Adds a record. To do it twice is harmless, as long as it has not ended.
pub(super) struct AddAudit<'a>(pub(super) &'a AuditRecord);

#[async_trait]
impl Call for AddAudit<'_> {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        let marks = ["?"; 16].join(", ");
        let sql = format!("/* forebay audit */ REPLACE INTO audit ({COLUMNS}) VALUES ({marks})");
        Ok(session.execute_alone(Statement::new(sql, values(self.0))).await.map(drop)?)
    }
}

/// Says how a call ended, if that is not known yet.
pub(super) struct EndAudit<'a> {
    /// The record.
    pub(super) id: AuditId,
    /// How it ended.
    pub(super) end: &'a AuditEnd,
}

#[async_trait]
impl Call for EndAudit<'_> {
    type Answer = bool;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<bool, Failure> {
        let AuditEnd { outcome, failure, target, operation_id, shortened } = self.end;
        let mut set = "outcome = ?, failure = ?, operation_id = ?".to_owned();
        let mut values: Vec<Value> =
            vec![of_outcome(*outcome).into(), failure.as_str().into(), operation_id.as_str().into()];
        if !target.is_empty() {
            set.push_str(", target = ?");
            values.push(target.as_str().into());
        }
        if let Some((reason, summary)) = shortened {
            set.push_str(", reason = ?, summary = ?");
            values.extend([reason.as_str().into(), summary.as_str().into()]);
        }
        let sql = format!("/* forebay audit */ UPDATE audit SET {set} WHERE id = ? AND outcome = 0");
        values.push(self.id.0.as_slice().into());
        Ok(session.execute_alone(Statement::new(sql, values)).await? == 1)
    }
}

/// Reads records, the latest first.
pub(super) struct ReadAudit<'a>(pub(super) &'a AuditQuery);

#[async_trait]
impl Call for ReadAudit<'_> {
    type Answer = Vec<AuditRecord>;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Vec<AuditRecord>, Failure> {
        let AuditQuery { namespace, from, before, limit } = self.0;
        let of_namespace = if namespace.is_some() { "namespace = ? AND " } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM audit WHERE {of_namespace}id >= ? AND id < ? ORDER BY id DESC LIMIT ?"
        );
        let mut values: Vec<Value> = Vec::new();
        values.extend(namespace.as_deref().map(Value::from));
        values.extend([from.0.as_slice().into(), before.0.as_slice().into(), (*limit).into()]);
        let answers = session.snapshot(vec![Statement::new(sql, values)]).await?;
        let rows = answers.into_iter().next().unwrap_or_default();
        Ok(rows.iter().map(record).collect::<Result<_, _>>()?)
    }
}

/// Deletes old records, so many at most.
pub(super) struct SweepAudit {
    /// Records of calls before this time are deleted.
    pub(super) before: Timestamp,
    /// At most this many records are deleted.
    pub(super) most: u32,
}

#[async_trait]
impl Change for SweepAudit {
    type Answer = u64;
    const REPEATABLE: bool = true;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<u64>, StoreError> {
        let before = AuditId::first_of(self.before);
        // Which one is the last of them, counted from the oldest.
        let last = Statement::new(
            "SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT 1 OFFSET ?",
            vec![before.0.as_slice().into(), self.most.saturating_sub(1).into()],
        );
        let (until, compare) = match session.fetch(last).await?.first() {
            Some(row) => (AuditId(row.hash(0)?), "<="),
            None => (before, "<"),
        };
        let sql = format!("/* forebay audit */ DELETE FROM audit WHERE id {compare} ?");
        let deleted = session.execute(Statement::new(sql, vec![until.0.as_slice().into()])).await?;
        Ok(End::Commit(deleted))
    }
}
