//! Calls with a request id: begun, ended, and deleted when they are old.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{
    call::{Call, Change, End, Failure},
    request_rows::{NewRequest, RequestEnd, RequestFound},
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Session, Statement},
};

/// Notes that a call begins, unless it has begun before.
pub(super) struct BeginRequest<'a> {
    /// The call.
    request: &'a NewRequest,
    /// Its row may be there already: the answer to COMMIT was lost.
    may_be_there: AtomicBool,
}

impl<'a> BeginRequest<'a> {
    /// Of a call that has not been noted yet.
    pub(super) fn new(request: &'a NewRequest) -> Self {
        Self { request, may_be_there: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Change for BeginRequest<'_> {
    type Answer = RequestFound;
    // The second time it finds itself.
    const REPEATABLE: bool = true;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<RequestFound>, StoreError> {
        let NewRequest { id, digest, begun_at, over_before, forget_before } = self.request;
        // All changes lock the cluster's row first, so that of two calls with one id one is the first.
        let lock = "UPDATE cluster SET last_shard = last_shard WHERE id = 1";
        session.execute(Statement::new(lock, vec![])).await?;
        let known = "SELECT digest, answer, begun_at FROM request WHERE id = ? AND begun_at >= ?";
        let known = Statement::new(known, vec![id.as_slice().into(), (*forget_before).into()]);
        if let Some(row) = session.fetch(known).await?.first() {
            let other = row.time(2)?;
            match row.optional_bytes(1)? {
                _ if row.hash::<32>(0)? != *digest => return Ok(End::RollBack(RequestFound::Differs)),
                Some(answer) => return Ok(End::RollBack(RequestFound::Answered(answer.to_vec()))),
                // The first time it is another call of the same moment.
                None if other == *begun_at && self.may_be_there.load(Ordering::Relaxed) => {
                    return Ok(End::RollBack(RequestFound::First));
                }
                None if other >= *over_before => return Ok(End::RollBack(RequestFound::UnderWay)),
                None => {}
            }
        }
        let sql = "/* forebay request */ REPLACE INTO request (id, digest, begun_at) VALUES (?, ?, ?)";
        let values = vec![id.as_slice().into(), digest.as_slice().into(), (*begun_at).into()];
        session.execute(Statement::new(sql, values)).await?;
        self.may_be_there.store(true, Ordering::Relaxed);
        Ok(End::Commit(RequestFound::First))
    }
}

/// Notes how a call ended, unless another one has taken its place: that one's row is not this one's to end.
pub(super) struct EndRequest<'a> {
    /// The call.
    pub(super) id: &'a [u8; 32],
    /// When it began. Of the calls with its id no other one has a row that says so: whoever takes a place
    /// begins later than the one before.
    pub(super) begun_at: Timestamp,
    /// How it ended.
    pub(super) end: &'a RequestEnd,
}

#[async_trait]
impl Call for EndRequest<'_> {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        let (sql, mut values) = match self.end {
            RequestEnd::Answered(answer) => ("UPDATE request SET answer = ?", vec![answer.as_slice().into()]),
            RequestEnd::NoEffect => ("DELETE FROM request", vec![]),
            RequestEnd::GivenUp(begun_at) => ("UPDATE request SET begun_at = ?", vec![(*begun_at).into()]),
        };
        values.extend([self.id.as_slice().into(), self.begun_at.into()]);
        let sql = format!("/* forebay request */ {sql} WHERE id = ? AND begun_at = ? AND answer IS NULL");
        let statement = Statement::new(sql, values);
        Ok(session.execute_alone(statement).await.map(drop)?)
    }
}

/// Deletes old calls, so many at most, and those that began at the same moment as the last of them.
pub(super) struct SweepRequests {
    /// Calls are deleted that began before this time.
    pub(super) before: Timestamp,
    /// At most this many calls are deleted.
    pub(super) most: u32,
}

#[async_trait]
impl Change for SweepRequests {
    type Answer = u64;
    const REPEATABLE: bool = true;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<u64>, StoreError> {
        let last = Statement::new(
            "SELECT begun_at FROM request WHERE begun_at < ? ORDER BY begun_at LIMIT 1 OFFSET ?",
            vec![self.before.into(), self.most.saturating_sub(1).into()],
        );
        let (until, compare) = match session.fetch(last).await?.first() {
            Some(row) => (row.time(0)?, "<="),
            None => (self.before, "<"),
        };
        let sql = format!("/* forebay request */ DELETE FROM request WHERE begun_at {compare} ?");
        Ok(End::Commit(session.execute(Statement::new(sql, vec![until.into()])).await?))
    }
}
