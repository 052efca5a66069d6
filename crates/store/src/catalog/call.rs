//! Calls that run on a connection to a catalog: a read, a single statement, or a transaction.

use async_trait::async_trait;

use super::session::CatalogSession;
use crate::{
    error::{ErrorClass, StoreError},
    sql::Session,
};

/// Something to run on a connection.
#[async_trait]
pub(super) trait Call: Send + Sync {
    /// The value that it returns.
    type Answer: Send;
    /// Runs it. After a failure the connection is dropped.
    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Self::Answer, Failure>;
}

/// A call failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// Why.
    pub(super) error: StoreError,
    /// It had no effect, or to have it twice is harmless.
    pub(super) repeatable: bool,
}

impl From<StoreError> for Failure {
    /// Of a statement before COMMIT.
    fn from(error: StoreError) -> Self {
        Self { error, repeatable: true }
    }
}

/// How a transaction ends.
pub(super) enum End<T> {
    /// It is committed.
    Commit(T),
    /// It is rolled back: there is nothing to change, or the change is refused.
    RollBack(T),
}

/// The statements of a transaction.
#[async_trait]
pub(super) trait Change: Send + Sync {
    /// The value that it returns.
    type Answer: Send;
    /// Whether it may be made again, though it may have been made already.
    const REPEATABLE: bool = false;
    /// Executes the statements in an open transaction.
    async fn execute(&self, session: &mut dyn Session) -> Result<End<Self::Answer>, StoreError>;
}

/// A change, as one transaction.
pub(super) struct Transaction<C>(pub(super) C);

#[async_trait]
impl<C: Change> Call for Transaction<C> {
    type Answer = C::Answer;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<C::Answer, Failure> {
        session.begin().await?;
        match self.0.execute(session).await? {
            End::RollBack(answer) => {
                session.rollback().await?;
                Ok(answer)
            }
            End::Commit(answer) => match session.commit().await {
                Ok(()) => Ok(answer),
                Err(error) => {
                    let message = format!("it is not known whether this was done: {}", error.message);
                    let error = StoreError::new(ErrorClass::Disconnected, message);
                    Err(Failure { error, repeatable: C::REPEATABLE })
                }
            },
        }
    }
}
