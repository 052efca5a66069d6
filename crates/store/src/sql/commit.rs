//! The two transactions. A batch runs its statements, then the fence's, then COMMIT. A take-over moves the
//! fence and writes the heartbeat.

use super::{
    dialect::Dialect,
    fence, highest,
    statement::{Session, Statement},
    write,
};
use crate::{
    batch::Batch,
    error::{CommitError, StoreError},
    rows::{Fence, Observation},
    shard::Claim,
};

/// Commits a batch. After an error the session may be unusable.
pub(crate) async fn commit(
    session: &mut dyn Session,
    batch: &Batch,
    owner: fence::Owner,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<(), CommitError> {
    let statements = write::statements(batch, dialect, statement_bytes).map_err(CommitError::RolledBack)?;
    let done = session.transact(statements, fence::advance(batch, owner), statement_bytes).await;
    if let Err(CommitError::RolledBack(_) | CommitError::FenceMoved) = done {
        roll_back(session).await;
    }
    done
}

async fn roll_back(session: &mut dyn Session) {
    // If this fails, the session drops its connection and the server rolls the transaction back.
    if let Err(error) = session.rollback().await {
        tracing::debug!(%error, "ROLLBACK failed; connection dropped");
    }
}

/// A fence that a take-over has moved.
pub(crate) struct MovedFence {
    /// As it is now.
    pub(crate) fence: Fence,
    /// As it was found, if it was behind the shard's rows.
    pub(crate) behind: Option<Fence>,
}

/// Takes a shard over: moves the fence to the next epoch and writes the heartbeat. `extra` adds a statement.
/// `None` means that the fence has moved, or the claim was renewed, since they were seen.
pub(crate) async fn take_over(
    session: &mut dyn Session,
    claim: &Claim,
    seen: &Observation,
    extra: impl FnOnce(fence::Owner) -> Option<Statement>,
) -> Result<Option<MovedFence>, StoreError> {
    let taken = async {
        session.begin().await?;
        if session.execute(fence::claim(claim.incarnation, seen)).await? != 1 {
            return Ok(None);
        }
        let found = fence::decode(session.fetch(fence::read()).await?)?;
        let fence = highest::raise(session, found).await?;
        let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
        if session.execute(fence::first_renewal(owner, claim, seen)).await? != 1 {
            return Ok(None);
        }
        if let Some(statement) = extra(owner) {
            session.execute(statement).await?;
        }
        Ok(Some(MovedFence { fence, behind: (found != fence).then_some(found) }))
    };
    match taken.await {
        Ok(Some(taken)) => session.commit().await.map(|()| Some(taken)),
        Ok(None) => {
            roll_back(session).await;
            Ok(None)
        }
        Err(error) => {
            roll_back(session).await;
            Err(error)
        }
    }
}
