//! The transactions: a batch's statements, the fence last, then COMMIT; and the take-over.

use super::{Dialect, Session, fence, write};
use crate::{Batch, CommitError, StoreError};

/// Commits a batch. After anything but success the session may be of no use any more.
pub(crate) async fn commit(
    session: &mut dyn Session,
    batch: &Batch,
    owner: fence::Owner,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<(), CommitError> {
    let statements = write::statements(batch, dialect, statement_bytes).map_err(CommitError::RolledBack)?;
    let done = session.transact(statements, fence::pass(batch, owner), statement_bytes).await;
    if let Err(CommitError::RolledBack(_) | CommitError::FenceMoved) = done {
        roll_back(session).await;
    }
    done
}

async fn roll_back(session: &mut dyn Session) {
    // The session throws itself away when this fails, and the server rolls back what a lost connection left.
    if let Err(error) = session.rollback().await {
        tracing::debug!(%error, "ROLLBACK failed");
    }
}

/// The transaction `take over`: the fence's next epoch and the first beat. `None`: the fence has moved.
pub(crate) async fn take_over(
    session: &mut dyn Session,
    claim: &crate::Claim,
    seen: &crate::Observation,
    extra: impl FnOnce(fence::Owner) -> Option<super::Statement>,
) -> Result<Option<crate::Fence>, StoreError> {
    let taken = async {
        session.begin().await?;
        if session.execute(fence::take(claim.incarnation, seen)).await? != 1 {
            return Ok(None);
        }
        let fence = fence::decode(session.fetch(fence::read()).await?)?;
        let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
        session.execute(fence::first_renewal(owner, &claim.address)).await?;
        if let Some(statement) = extra(owner) {
            session.execute(statement).await?;
        }
        Ok(Some(fence))
    };
    match taken.await {
        Ok(Some(fence)) => session.commit().await.map(|()| Some(fence)),
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
