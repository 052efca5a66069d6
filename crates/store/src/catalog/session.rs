//! Abilities of a connection to a catalog beyond writing.

use async_trait::async_trait;

use crate::{
    error::StoreError,
    sql::{Row, Session, Statement},
};

/// One connection to a catalog.
#[async_trait]
pub(crate) trait CatalogSession: Session {
    /// Runs queries that all see one moment. Returns the rows of each.
    async fn snapshot(&mut self, queries: Vec<Statement>) -> Result<Vec<Vec<Row>>, StoreError>;
    /// Executes one statement as a transaction. Returns how many rows matched.
    async fn execute_alone(&mut self, statement: Statement) -> Result<u64, StoreError>;
}
